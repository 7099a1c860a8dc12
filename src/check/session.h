/* What a check finds, and what its parts share on the way. */
#pragma once

#include "check/device_reference.h"
#include "check/errors.h"
#include "check/gradient_rules.h"
#include "check/lse.h"
#include "check/rules.h"
#include "device/gpu_lock.h"

enum { FA_REFERENCES = 3 }; /* cpu, cublas, plain */
#define FA_DRAWS_MAX 64     /* later seeds use the requested inputs */

typedef struct fa_check_result {
    bool done, passed;
    int32_t seeds; /* that were checked */
    double atol, rtol;
    bool loosened;     /* atol or rtol other than fa_rule_tolerance */
    int32_t repeats;   /* launches that were compared with the first: bit by bit, or by the rules (repeats.h) */
    int32_t schedules; /* emulator schedules with launches: a bit for each fa_schedule */
    int32_t draw_count;
    fa_draw draws[FA_DRAWS_MAX];
    int32_t verdict_count; /* over seeds with the requested inputs, and a failed draw */
    fa_verdict verdicts[FA_REFERENCES];
    int32_t gradient_count; /* of --op backward, in place of the verdicts: as many for each reference */
    fa_gradient_verdict gradients[FA_GRADS * 2];
    fa_lse_verdict lse;             /* done with --lse only */
    fa_published_verdict published; /* of a workload: what its project would have said */
    char unrepeated[96];            /* why there was no repeated launch */
    fa_findings found;              /* by the emulator; memory that is not the output's was written */
    char missing[FA_MISSING_SIZE];  /* requested references that could not run, and why */
    char failure[1024];
} fa_check_result;

/* One check: its subject, and what is made once for all seeds. */
typedef struct fa_session {
    fa_candidate *candidate; /* with the problem and layout of the seed's draw */
    const fa_problem *problem;
    const fa_draw *draw;
    fa_kept *kept; /* the seed's inputs and references */
    const fa_options *options;
    fa_check_result *result;
    int32_t asked; /* FA_REFERENCE_* */
    fa_device_reference cublas, plain;
    fa_device_reference forward; /* of --op backward: the plain kernel, as `plain` has the gradients */
    int32_t tile_m, tile_n;
    bool acc_fp16;
    size_t count; /* elements of the output */
    uint16_t *output;
    float *lse; /* NULL without --lse */
    size_t lse_count;
    fa_finding damage; /* by a launch, beside its output */
} fa_session;

/* Release the GPU lock during the CPU reference, so that other processes can time. */
static inline void fa_session_gpu_lock(const fa_session *s, fa_gpu_lock_mode mode)
{
    fa_gpu_lock(s->candidate->device->info.bus_id, mode);
}
