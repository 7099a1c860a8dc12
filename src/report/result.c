#include "report/result.h"

#include <string.h>

#include "base/process.h"
#include "device/gpu_lock.h"

const char *fa_stage_name(fa_stage stage)
{
    static const char *const names[] = {
        [FA_AT_START] = "starting",  [FA_AT_COMPILE] = "compiling", [FA_AT_LOAD] = "loading",
        [FA_AT_CHECK] = "checking",  [FA_AT_TIMING] = "timing",     [FA_AT_RECHECK] = "checking after timing",
        [FA_AT_END] = "cleaning up",
    };
    return names[stage];
}

fa_result fa_result_of(const fa_command *run)
{
    fa_result result = {.status = FA_ERROR,
                        .problem = run->problem,
                        .vs_problem = run->problem,
                        .main.spec = run->spec,
                        .other.spec = run->other};
    result.vs_problem.dtype = run->other.dtype;
    return result;
}

void fa_result_lend(fa_result *result, const fa_command *run)
{
    result->problem.lengths = result->vs_problem.lengths = run->problem.lengths;
    result->problem.pages = result->vs_problem.pages = run->problem.pages;
    result->main.spec.include = run->spec.include;
    result->main.spec.define = run->spec.define;
    result->other.spec.include = run->other.include;
    result->other.spec.define = run->other.define;
}

fa_status fa_result_on(fa_result *result, const fa_device *device)
{
    const fa_device_info *info = &device->info;
    fa_spec *other = &result->other.spec;
    memcpy(result->device_choice, device->choice, sizeof result->device_choice);
    result->device = device->info;
    result->device_known = true;
    FA_TRY(fa_spec_for_device(&result->problem, info->arch, info->sm_count, &result->main.spec, &result->reason));
    if (other->name[0] == '\0')
        return FA_PASS;
    return fa_spec_for_device(&result->vs_problem, info->arch, info->sm_count, other, &result->reason);
}

void fa_stage_enter(fa_result *result, fa_stage stage)
{
    /* a check takes its share of the GPU itself, when its inputs are drawn */
    fa_gpu_lock(result->device.bus_id, stage == FA_AT_TIMING ? FA_GPU_LOCK_EXCLUSIVE : FA_GPU_LOCK_NONE);
    const double now_s = fa_now_s();
    if (result->since_s > 0)
        result->stage_s[result->stage] += now_s - result->since_s;
    result->stage = stage;
    result->since_s = now_s;
    if (stage == FA_AT_START)
        result->waited_s = fa_gpu_lock_waited_s();
    result->gpu_lock_s = fa_gpu_lock_waited_s() - result->waited_s;
}
