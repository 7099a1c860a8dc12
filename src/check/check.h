/* Runs a kernel on fresh inputs and judges what it wrote: references, guards, unchanged inputs, bitwise repeats. */
#ifndef FA_CHECK_H
#define FA_CHECK_H

#include "run/buffers.h"
#include "check/rules.h"

typedef struct fa_check_result {
    bool done, passed;
    int32_t seeds; /* that were checked */
    double atol, rtol;
    bool loosened;   /* atol or rtol other than 1e-3 */
    int32_t repeats; /* launches compared bit by bit */
    int32_t verdict_count;
    fa_verdict verdicts[2];
    char missing[256]; /* references asked for that could not run here, and why */
    char failure[1024];
} fa_check_result;

/* One candidate ready to launch on one device. */
typedef struct fa_candidate {
    fa_device *device;
    fa_kernel *kernel;
    const fa_spec *spec;
    fa_launch launch;
    bool nondeterministic;
} fa_candidate;

/* FA_USAGE unless `list` names one or more of the references, comma-separated. */
fa_status fa_check_references_parse(const char *list, fa_reason *why);

/* Every seed: inputs, launch on a NaN-filled output, guards, inputs, rules against each reference asked for. The first
 * seed also: ten more launches, bit by bit (skipped for kernels that say they are not deterministic; on a device
 * without a clock as many as fit in two seconds). A library is a reference only where its own result passes the rules
 * on this very input; `missing` says when not, and FA_NOT_RUN when no reference is left. FA_WRONG with the failure in
 * words; FA_ERROR when a launch faults. Leaves the last seed's tensors in the buffers. */
fa_status fa_check(const fa_candidate *candidate, const fa_problem *problem, const fa_options *options,
                   const fa_buffers *buffers, fa_check_result *result, fa_reason *why);
/* Once more, on the buffers that were timed, with contents from `seed`: rule 6. */
fa_status fa_check_again(const fa_candidate *candidate, const fa_problem *problem, const fa_options *options,
                         const fa_buffers *buffers, uint64_t seed, fa_check_result *result, fa_reason *why);

#endif
