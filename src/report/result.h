/* Everything a run found out, filled stage by stage in memory that parent and child share: however the child ends, the
 * parent can still write the record. No pointers to what a process owns, but for the words that fa_result_lend sets. */
#pragma once

#include "check/check.h"
#include "input/runs.h"
#include "timing/machine_bound.h"
#include "timing/measure.h"
#include "timing/paired.h"
#include "timing/roofline.h"

/* The last stage that began: where a hang or a crash was. The other candidate of --vs goes through stages again. */
typedef enum { FA_AT_START, FA_AT_COMPILE, FA_AT_LOAD, FA_AT_CHECK, FA_AT_TIMING, FA_AT_RECHECK, FA_AT_END } fa_stage;

typedef struct fa_result {
    fa_status status;
    fa_reason reason;
    fa_stage stage;
    fa_problem problem, vs_problem; /* of --vs, which may ask for another element type */
    bool device_known;
    fa_device_info device;
    char device_choice[256];         /* what --device auto took and why */
    bool other_begun;                /* `other` is being compared: --vs, after the first candidate has passed */
    fa_candidate_record main, other; /* other: --vs */
    fa_check_result check, other_check;
    fa_timing timing;
    fa_throughput throughput;
    fa_machine_bound bound; /* with --bound, and of every timed kernel of ours */
    fa_paired paired;
    double stage_s[FA_AT_END]; /* spent in each stage that ended */
    double gpu_lock_s;         /* of that, waiting for the lock of the GPU */
    double waited_s;           /* what the process had waited for the lock before this run */
    double since_s;            /* when the present stage began */
} fa_result;

const char *fa_stage_name(fa_stage stage); /* "compiling", ... */

/* The result of a run that has not begun: an error, until its end says otherwise. */
fa_result fa_result_of(const fa_command *run);
/* The words of --include and --define become those of this process: parent and child may have read the line apart. */
void fa_result_lend(fa_result *result, const fa_command *run);
/* The run is on this device: the rules choose for it. */
fa_status fa_result_on(fa_result *result, const fa_device *device);
/* Notes that a stage begins and how long the one before took, and takes the GPU lock as the stage needs it. */
void fa_stage_enter(fa_result *result, fa_stage stage);
