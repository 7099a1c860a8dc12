/* From the products q.k of one row to its weights: what the features do to a score, and the softmax. */
#pragma once

#include "input/score_tensors.h"

/* x[key] holds q.k for every key of `keys`, and becomes the key's weight; a hidden key's is 0. The score is scale q.k,
 * then softcap * tanh(score / softcap), then bias is added and ALiBi's slope |pos - key| taken off; a sink adds e^sink
 * to the sum. Returns the log-sum-exp: -inf where there is neither a key nor a sink. */
double fa_scores_softmax(const fa_problem *problem, const fa_score_tensors *tensors, const fa_row *at, fa_keys keys,
                         double *x);
/* The baseline of fa_reference, which rounds every step to the type. *sway: see fa_reference. */
double fa_scores_baseline(const fa_problem *problem, const fa_score_tensors *tensors, const fa_row *at, fa_keys keys,
                          bool acc_fp16, float *x, double *sway);
