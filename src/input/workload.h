/* --workload: the values of its files, and what is called right where it was published. */
#pragma once

#include "input/tensors.h"

/* The values of the workload's safetensors files go over those of `tensors`. FA_USAGE: a file is missing, has another
 * type or shape than the definition, a value that is not finite, or is of a problem of another size. */
fa_status fa_workload_values(const char *definition, const char *workload, const fa_problem *problem,
                             fa_tensors *tensors, fa_reason *why);

/* What the project that published a workload calls right. An element is outside where it is off by more than
 *   flashinfer-bench: atol, and by more than rtol of its size;   sol-execbench: atol + rtol of its size.
 * Any infinity or NaN fails, but for the -inf that is right where it is allowed. */
typedef struct fa_tolerance {
    enum { FA_TOLERANCE_NONE, FA_TOLERANCE_FLASHINFER, FA_TOLERANCE_SOL } rule;
    double atol, rtol, matched_ratio, error_cap;
    bool allow_negative_inf;
} fa_tolerance;
const char *fa_tolerance_name(const fa_tolerance *tolerance); /* "flashinfer-bench", "sol-execbench" */
fa_status fa_workload_tolerance(const char *definition, const char *workload, fa_tolerance *tolerance, fa_reason *why);
