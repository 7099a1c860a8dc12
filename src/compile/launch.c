#include "compile/launch.h"

static int32_t round_up(int32_t value, int32_t to) { return (value + to - 1) / to * to; }

fa_occupancy fa_occupancy_of(const fa_arch_limits *limits, int32_t threads, int32_t registers, int32_t smem_bytes)
{
    /* Allocation units of the CUDA occupancy calculator: registers per warp by 256, warps by 4, shared memory by 128
     * bytes with 1 KiB kept by the system per block from cc 8.0 on. */
    const int32_t warps = (threads + 31) / 32;
    const int32_t registers_block = round_up(registers * 32, 256) * round_up(warps, 4);
    const int32_t smem_block = round_up(smem_bytes + (limits->cc >= 80 ? 1024 : 0), 128);
    int32_t blocks = limits->blocks_sm;
    if (limits->warps_sm / warps < blocks)
        blocks = limits->warps_sm / warps;
    if (registers_block > 0 && limits->registers_sm / registers_block < blocks)
        blocks = limits->registers_sm / registers_block;
    if (smem_block > 0 && limits->smem_sm_bytes / smem_block < blocks)
        blocks = limits->smem_sm_bytes / smem_block;
    return (fa_occupancy){.blocks_per_sm = blocks,
                          .warps_per_sm = blocks * warps,
                          .fraction = (double)(blocks * warps) / limits->warps_sm};
}

/* By the lines of the file. */
static fa_launch planned(const fa_module *module, int32_t tiles_m, int32_t tiles)
{
    const fa_step *s = module->plan.steps;
    while (s->entry != 0)
        s++;
    const int64_t blocks = (int64_t)s->grid[0] * s->grid[1] * s->grid[2];
    return (fa_launch){
        .grid = blocks > INT32_MAX ? 0 : (uint32_t)blocks,
        .threads = (uint32_t)(s->block[0] * s->block[1] * s->block[2]),
        .smem_dynamic_bytes = (uint32_t)s->shared_bytes,
        .cluster = 1,
        .tiles_m = tiles_m,
        .tiles = tiles,
        .workspace_bytes = module->plan.workspace_bytes,
        .plan = module->plan,
    };
}

/* Adds fa_before and fa_after to a launch of fa_kernel. */
static fa_launch surrounded(const fa_module *module, fa_launch launch, int64_t around)
{
    const struct {
        bool there;
        fa_i32 entry, grid;
    } parts[] = {{module->has_before, FA_STEP_BEFORE, module->info.pre_grid},
                 {true, 0, (fa_i32)launch.grid},
                 {module->has_after, FA_STEP_AFTER, module->info.post_grid}};
    for (size_t i = 0; (module->has_before || module->has_after) && i < sizeof parts / sizeof *parts; i++)
        if (parts[i].there)
            launch.plan.steps[launch.plan.count++] =
                (fa_step){.grid = {parts[i].grid > 0 ? parts[i].grid : (fa_i32)around, 1, 1},
                          .block = {(fa_i32)launch.threads, 1, 1},
                          .shared_bytes = parts[i].entry == 0 ? (fa_i32)launch.smem_dynamic_bytes : 0,
                          .entry = parts[i].entry};
    return launch;
}

/* Blocks of FA_GRID_KEYS: with lengths every sequence may end in a partial tile of keys. */
static int64_t blocks_of_keys(const fa_module *module, const fa_problem *problem)
{
    const int64_t n = module->info.n, heads = module->info.pack_heads ? problem->kv_heads : problem->heads;
    const bool unlike = problem->lengths != NULL;
    const int64_t rows = fa_problem_stored_kv(problem) + (unlike ? problem->batch : 1) * (n - 1);
    return rows / n * heads * fa_problem_stored_batch(problem) * (module->info.splits > 1 ? module->info.splits : 1);
}

int32_t fa_launch_steps(const fa_launch *launch) { return launch->plan.count > 0 ? launch->plan.count : 1; }

bool fa_launch_step_of(const fa_launch *launch, const fa_params *params, int32_t i, fa_step *step)
{
    *step = (fa_step){.grid = {(fa_i32)launch->grid, 1, 1},
                      .block = {(fa_i32)launch->threads, 1, 1},
                      .shared_bytes = (fa_i32)launch->smem_dynamic_bytes};
    if (launch->plan.count == 0)
        return true;
    *step = launch->plan.steps[i];
    if (step->tensor == FA_OF_LSE && params->lse == NULL)
        return false;
    return step->tensor == FA_OF_NONE || !step->as_is || !fa_lies_so(params, step->tensor, step->order);
}

fa_launch fa_launch_of(const fa_module *module, const fa_problem *problem, int32_t sm_count)
{
    const fa_kernel_info *info = &module->info;
    const int64_t heads = info->pack_heads ? problem->kv_heads : problem->heads;
    /* With lengths every sequence may end in a partial tile: tiles of all of them, counted from above. */
    const bool unlike = problem->lengths != NULL;
    const int64_t batch = fa_problem_stored_batch(problem);
    const int64_t rows = (int64_t)fa_problem_stored_q(problem) * (problem->heads / heads) +
                         (unlike ? problem->batch * ((int64_t)info->m - 1) : 0);
    const int64_t tiles_m = unlike ? rows / info->m : (rows + info->m - 1) / info->m;
    const int64_t tiles = tiles_m * heads * batch;
    const int64_t cluster = info->cluster > 1 ? info->cluster : 1; /* a grid is whole clusters */
    const int64_t splits = info->splits > 1 ? info->splits : 1, step = splits % cluster == 0 ? 1 : cluster;
    const int64_t blocks = (tiles_m + step - 1) / step * step * heads * batch * splits;
    if (module->plan.count > 0)
        return planned(module, (int32_t)tiles_m, (int32_t)tiles);
    const int64_t of_keys = info->grid == FA_GRID_KEYS ? blocks_of_keys(module, problem) : 0;
    if (blocks > INT32_MAX || of_keys > INT32_MAX)
        return (fa_launch){.grid = 0};
    const int64_t resident =
        (int64_t)sm_count * (info->blocks_per_sm > 0 ? info->blocks_per_sm : 1) / cluster * cluster;
    const int64_t all = of_keys > 0 ? (of_keys + cluster - 1) / cluster * cluster : blocks;
    const bool persistent = info->grid == FA_GRID_PERSISTENT || (of_keys > 0 && info->blocks_per_sm > 0);
    const fa_launch launch = {
        .grid = (uint32_t)(persistent && resident < all ? resident : all),
        .threads = (uint32_t)info->threads,
        .smem_dynamic_bytes = (uint32_t)info->smem_dynamic_bytes,
        .cluster = (uint32_t)cluster,
        .tiles_m = (int32_t)tiles_m,
        .tiles = (int32_t)tiles,
        .workspace_bytes = info->workspace_bytes_per_block * blocks + info->workspace_bytes_fixed,
    };
    return surrounded(module, launch, of_keys > 0 ? all : launch.grid);
}
