/* The tensors that --op backward writes, and the forward that it starts from. */
#pragma once

#include "check/recompute.h"

enum { FA_GRAD_DQ, FA_GRAD_DK, FA_GRAD_DV, FA_GRAD_DSINKS, FA_GRADS };

const char *fa_gradient_name(int32_t tensor); /* "dq", "dk", "dv", "dsinks" */
/* Where a tensor begins in what fa_buffers_output gives, in halves, and its stored rows and columns. */
size_t fa_gradient_offset(const fa_problem *problem, int32_t tensor);
int64_t fa_gradient_rows(const fa_problem *problem, int32_t tensor);
int32_t fa_gradient_columns(const fa_problem *problem, int32_t tensor);
/* The place of a stored row; of dsinks the column is the head. */
fa_row fa_gradient_row(const fa_problem *problem, int32_t tensor, int64_t row);

/* Element i of a tensor in what fa_buffers_output gives. */
double fa_gradient_value(const fa_problem *problem, int32_t tensor, const uint16_t *output, size_t i);

/* What each query row has where it takes that of another head (recompute.h), row or batch, times a factor; malloc'd. */
enum { FA_NEXT_ROW = FA_OTHER_HEADS, FA_ROW_BEFORE, FA_FIRST_BATCH, FA_OTHER_ROWS };
double *fa_rows_of_head(const fa_problem *problem, const double *rows, int32_t way, double factor);

/* A head's sink, or what stands for it: that of another head, or from FA_OTHER_HEADS on clamped at 0. */
double fa_sink_taken(const fa_problem *problem, const fa_tensors *tensors, int32_t head, int32_t way);
/* Log-sum-exps get their row's sink so many times more. */
void fa_add_sinks(const fa_problem *problem, const fa_tensors *tensors, double times, double *lse);

/* Elements as numbers; malloc'd. */
float *fa_numbers_of(const fa_problem *problem, const uint16_t *elements, size_t count);
/* The largest element and the longest row; poison does not count. */
typedef struct fa_most {
    double element, row;
} fa_most;
fa_most fa_most_of(const float *numbers, int64_t rows, int32_t columns);

/* Doubles of all gradients, and of what the plain kernel (src/cuda/plain_gradients.cuh) adds for each row. */
size_t fa_gradient_doubles(const fa_problem *problem);

/* The forward of all rows in FP64: [stored rows, dim_v], then the log-sum-exp, [stored rows]; malloc'd. */
double *fa_gradients_forward(const fa_problem *problem, const fa_tensors *tensors);
/* tensors->o and tensors->lse: the same rounded as a forward rounds them; poison between sequences. */
void fa_gradients_give(const fa_problem *problem, const double *forward, fa_tensors *tensors);

/* Rows of a tensor that the CPU computes: all that are used while the work is small, otherwise a seeded sample with the
 * ends of its tiles. */
int64_t *fa_gradient_choose(const fa_problem *problem, int32_t tensor, int32_t tile, uint64_t seed, int64_t *count);
