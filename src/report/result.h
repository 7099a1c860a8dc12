/* Everything a run found out, filled stage by stage in memory the parent shares with the child: whatever ends the child,
 * the parent can still write the record. No pointers inside. */
#ifndef FA_RESULT_H
#define FA_RESULT_H

#include "timing/measure.h"

/* The last stage that began: where a hang or a crash was. Stages come again for the other candidate of --vs. */
typedef enum { FA_AT_START, FA_AT_COMPILE, FA_AT_LOAD, FA_AT_CHECK, FA_AT_TIMING, FA_AT_RECHECK, FA_AT_END } fa_stage;

typedef struct fa_side {
    bool spec_known, module_known;
    fa_spec spec;
    fa_module module;
    fa_launch launch;
    fa_check_result check;
} fa_side;

typedef struct fa_result {
    fa_status status;
    fa_reason reason;
    fa_stage stage;
    fa_problem problem;
    bool problem_known, device_known;
    fa_device_info device;
    char device_choice[256]; /* what --device auto took and why */
    fa_side main, other;     /* other: --vs */
    fa_timing timing;
    fa_throughput throughput;
    fa_comparison comparison;
    double stage_s[FA_AT_END]; /* spent in each stage that ended */
    double turn_s;             /* of that, waiting for a turn on the GPU */
    double waited_s;           /* what the process had waited for its turns before this run */
    double since_s;            /* when the present stage began */
} fa_result;

/* Notes where the run is and how long it was where it came from, and takes the turn on the GPU that the stage needs. */
void fa_stage_enter(fa_result *result, fa_stage stage);

#endif
