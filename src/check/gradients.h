/* The expected gradients: FP64 on the CPU, of the FP64 forward, and the same products in the tensors' type. */
#pragma once

#include "check/gradient_inputs.h"

/* Of one tensor, for `row_count` of its stored rows: those of dQ are query rows (fa_problem_row), those of dK and dV
 * key rows (fa_problem_key_at), and dsinks are one row of `heads` columns.
 * baseline: from O and the log-sum-exp as a kernel gets them; P and dS rounded to the type, sums in FP32, the result
 * rounded to the type (dsinks: FP32). */
typedef struct fa_gradient {
    int32_t columns;
    int64_t row_count;
    int64_t *rows;   /* ascending, none between sequences; NULL: all stored rows */
    double *exact;   /* [row_count, columns] */
    float *baseline; /* NULL: not known */
    double *noise; /* [row_count]: length of the error that rounding O, P and dS to the type makes of a row, at most */
    /* [row_count]: what FP32 may lose of an element: where terms cancel, 2^-19 of the sum of their sizes; where a
     * log-sum-exp L is large, |L| 2^-23 of a term; and half of the type's smallest number. Where a row sees one key, dS
     * is exactly 0, and what a kernel finds is this. */
    double *slack;
} fa_gradient;

typedef struct fa_gradients {
    fa_gradient of[FA_GRADS]; /* dsinks have no row without --sinks */
} fa_gradients;

/* All rows while the work is small, otherwise a seeded sample of each tensor's. */
fa_gradients fa_gradients_make(const fa_problem *problem, const fa_tensors *tensors, const double *forward,
                               int32_t tile_m, int32_t tile_n, uint64_t seed);
/* Of these rows, malloc'd and ascending, which the result owns: query rows, key rows. */
fa_gradients fa_gradients_of_rows(const fa_problem *problem, const fa_tensors *tensors, const double *forward,
                                  int64_t *q_rows, int64_t q_count, int64_t *k_rows, int64_t k_count);
/* Of all rows, from the plain kernel: exact points into `plain`. */
fa_gradients fa_gradients_of_plain(const fa_problem *problem, const fa_tensors *tensors, const double *plain);
void fa_gradients_free_plain(fa_gradients *gradients); /* that was made so */
void fa_gradients_free(fa_gradients *gradients);

/* A mistake, for a diagnosis; zeroed: none. */
typedef struct fa_slip {
    double delta_more;                 /* so many times delta too much; -1: it is missing */
    bool modulo;                       /* the K/V head is the head modulo kv_heads */
    bool delta_of_dout;                /* delta is the sum of dO dO */
    bool no_slope;                     /* the softcap's derivative is left out */
    bool no_mask;                      /* all keys of the sequence count */
    bool top_left;                     /* rows stand at the positions of their numbers */
    int32_t later;                     /* the last key that a row sees is so many later */
    int32_t sooner;                    /* the first key so many sooner */
    bool no_alibi;                     /* ALiBi is left out */
    int32_t delta_of, lse_of, sink_of; /* of another head or row: its way (fa_rows_of_head); fa_sink_taken */
    double lse_times;                  /* the log-sum-exp is in another unit; 0: it is not */
    bool weights_swapped;              /* P stands for dS, and dS for P */
    bool rows_swapped;                 /* V is summed for dQ, dO for dK, Q for dV */
    double sink_more;                  /* so many times the sink too much in it; -1: it is without */
    int32_t k_by, v_by, dq_by; /* for dQ, K of the scores, V, and K of the last product are of a K/V head so far on */
    int32_t lost, only;        /* of each group a query head does not count, or counts alone: its number from 1 on */
} fa_slip;
/* Rows as a kernel with the mistake has them: [count, columns]. */
void fa_gradients_slip(const fa_problem *problem, const fa_tensors *tensors, const double *forward, const fa_slip *slip,
                       int32_t tensor, const int64_t *rows, int64_t count, double *out);
