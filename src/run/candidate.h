/* A kernel that can be checked and timed: compiled, loaded, with tensors of its own on the device. */
#pragma once

#include "device/library_facts.h"
#include "run/buffers.h"

/* What the record says of a candidate before it is checked. No pointers to what a process owns. */
typedef struct fa_candidate_record {
    bool module_known;
    fa_spec spec;
    fa_module module;
    fa_launch launch;
    fa_library_facts library; /* of FA_KIND_LIBRARY */
} fa_candidate_record;

/* A kernel ready to launch on a problem, with its tensors. Zeroed: nothing is loaded. */
typedef struct fa_candidate {
    fa_device *device;
    const fa_problem *problem;
    const fa_spec *spec;
    fa_kernel *kernel;
    fa_launch launch;
    bool nondeterministic; /* repeats may differ in the last bits */
    int32_t needs;         /* FA_NEEDS_*: draws offer it */
    double about_us;       /* of one launch; 0: not timed yet */
    fa_buffers buffers;
} fa_candidate;

/* Compiles for the target and, when the device is the emulator, for the emulator too. `device`: NULL without one.
 * Without a CUDA compiler the emulator still runs: ptxas stays unknown, with the reason.
 * A library is asked what it is and whether it serves the problem; without a GPU it is FA_NOT_RUN then. */
fa_status fa_candidate_compile(const fa_options *options, const fa_problem *problem, const fa_device *device,
                               fa_candidate_record *record, fa_reason *why);
/* --cubin: writes the compiled module to a file, which appears whole or not at all. */
fa_status fa_candidate_keep(const fa_options *options, const fa_device *device, const fa_candidate_record *record,
                            fa_reason *why);
/* FA_INFEASIBLE when the launch needs too many blocks or more memory than there is. The candidate points into `problem`
 * and `record`; unload it in every case. */
fa_status fa_candidate_load(const fa_options *options, const fa_problem *problem, fa_device *device,
                            fa_candidate_record *record, fa_candidate *candidate, fa_reason *why);
/* FA_NEEDS_* of the file's line, of the module and of the library. */
int32_t fa_candidate_needs(const fa_candidate_record *record);
void fa_candidate_unload(fa_candidate *candidate);

/* Launches once and waits. */
fa_status fa_candidate_launch(const fa_candidate *candidate, fa_reason *why);
