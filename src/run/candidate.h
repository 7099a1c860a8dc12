/* From a spec to something that can be checked and timed: compiled, loaded, with its own buffers on the device. */
#ifndef FA_CANDIDATE_H
#define FA_CANDIDATE_H

#include "report/result.h"

/* Bad input is refused here, before any work and without a record: FA_USAGE. */
fa_status fa_candidate_validate(const fa_options *options, fa_reason *why);
/* Compiles for the target, for the emulator too when that is the device. Without a CUDA compiler the emulator goes on:
 * ptxas stays unknown, with the reason. */
fa_status fa_candidate_compile(const fa_options *options, const fa_device *device, fa_side *side, fa_reason *why);
/* --cubin: the compiled module as a file, which appears whole or not at all. `device`: NULL without one, as above. */
fa_status fa_candidate_keep(const fa_options *options, const fa_device *device, const fa_side *side, fa_reason *why);
/* What a candidate has on a device; zeroed: nothing. */
typedef struct fa_loaded {
    fa_candidate candidate;
    fa_buffers buffers;
} fa_loaded;
/* FA_INFEASIBLE when the launch would need too many blocks or more memory than the device has. */
fa_status fa_candidate_load(const fa_options *options, const fa_problem *problem, fa_device *device, fa_side *side,
                            fa_loaded *on, fa_reason *why);
void fa_candidate_unload(fa_loaded *on);

#endif
