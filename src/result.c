#include "result.h"

void fa_stage_enter(fa_result *result, fa_stage stage)
{
    static const fa_turn turns[] = {[FA_AT_CHECK] = FA_TURN_SHARED,
                                    [FA_AT_TIMING] = FA_TURN_ALONE,
                                    [FA_AT_RECHECK] = FA_TURN_SHARED,
                                    [FA_AT_END] = FA_TURN_NONE};
    fa_device_turn(&result->device, turns[stage]);
    result->stage = stage;
    result->seconds[stage] = fa_now_s();
}
