/* The rules, against each reference of a check. */
#pragma once

#include "check/session.h"

/* FA_NOT_RUN when there is no reference to ask. Opens those of the device where the CPU is not asked; otherwise they
 * are opened when an input comes whose result is not kept. */
fa_status fa_judge_need_reference(fa_session *s, fa_reason *why);
/* --op backward: s->kept gets the forward, and its tensors O and the log-sum-exp. Else nothing. */
fa_status fa_judge_give_forward(fa_session *s, fa_reason *why);
/* The FP64 rows of s->problem and s->draw, where s->kept has none. */
void fa_judge_need_rows(fa_session *s);
/* The first broken rule is the reason. References that s->kept lacks are made. Where cuBLAS is asked and cannot serve,
 * on a GPU the plain reference takes its place. */
fa_status fa_judge_all(fa_session *s, fa_reason *why);
void fa_judge_merge(fa_check_result *result, const fa_verdict *verdict);
void fa_judge_merge_gradient(fa_check_result *result, const fa_gradient_verdict *verdict); /* and tensor */
