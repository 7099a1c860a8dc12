#include "input/splits.h"

#include <math.h>

int64_t fa_packed_rows(const fa_problem *problem)
{
    return (int64_t)problem->seq_q * (problem->heads / problem->kv_heads);
}

static int64_t packed_tiles(const fa_knobs *knobs, const fa_problem *problem)
{
    return (fa_packed_rows(problem) + knobs->m - 1) / knobs->m * problem->kv_heads * problem->batch;
}

/* Splits for packed tiles, which are few and bound by memory: the least number that fills whole waves of blocks to 95
 * %, or the one that fills them best. Small blocks share a multiprocessor in pairs. */
static int32_t choose_packed_splits(const fa_knobs *knobs, const fa_problem *problem, int32_t sm_count, int32_t most)
{
    const int64_t slots = (int64_t)sm_count * (knobs->warps <= 4 ? 2 : 1);
    const int64_t tiles = packed_tiles(knobs, problem);
    int32_t best = 1;
    double best_filled = 0;
    for (int32_t splits = 1; splits <= most && best_filled < 0.95; splits++) {
        const int64_t blocks = tiles * splits, waves = (blocks + slots - 1) / slots;
        const double filled = (double)blocks / (double)(waves * slots);
        if (filled > best_filled) {
            best_filled = filled;
            best = splits;
        }
    }
    return best;
}

/* Splits for packed tiles of wgmma: those of the least time by a model measured on an H200 (studies/serving_steps.md).
 * Its unit is the time that a block takes for a key. `memory`: K and V, which half the multiprocessors can take as fast
 * as they come. `chain`: the keys that a multiprocessor takes one after the other. The larger of the two counts most. A
 * block begins and ends, and the parts are read one by one, or by four warps together where a tile has 16 rows at most.
 * Of 8 rows 17 parts are read at once. Two rounds are cheap; more are for parts that would be long.
 * Two blocks of one warpgroup share a multiprocessor: each is slower, and memory is read at more places. */
static int32_t choose_wgmma_packed_splits(const fa_knobs *knobs, const fa_problem *problem, int32_t sm_count,
                                          int32_t most)
{
    const int64_t rows = fa_packed_rows(problem);
    const double begin_end = 750, part = rows <= 8 ? 3 : rows <= 16 ? 20 : 50;
    const int32_t limit = rows <= 8 ? (int32_t)fmin(most, fmax(34, problem->seq_kv / 4096)) : most;
    const double bytes = problem->fp8_kv ? 0.5 : 1; /* of 16 bits; the conversion is in the chain */
    const int64_t heads = (int64_t)problem->kv_heads * problem->batch;
    const int64_t tiles = packed_tiles(knobs, problem);
    int32_t best = 1;
    double least = INFINITY;
    for (int32_t splits = 1; splits <= limit || splits == 1; splits++) {
        const double waves = (double)((tiles * splits + sm_count - 1) / sm_count);
        const bool paired = knobs->warps <= 4 && waves > 1;
        const double memory = (paired ? 2.16 : 2.0) * bytes * (double)heads * problem->seq_kv / sm_count;
        const double key_tiles = ceil(ceil((double)problem->seq_kv / knobs->n) / splits); /* of the longest part */
        const double chain = (paired ? 0.62 : 1.0) * waves * key_tiles * knobs->n;
        const double time = pow(pow(memory, 4) + pow(chain, 4), 0.25) + (paired ? 0.5 : 1.0) * waves * begin_end +
                            (splits > 1 ? splits * part : 0);
        if (time < least) {
            least = time;
            best = splits;
        }
    }
    return best;
}

/* What sequences of unlike lengths take with so many splits, in keys of a place for a block. A kernel cuts each by its
 * own length, so that no block has more than `most` keys (kernels/shared/packed.cuh). More blocks than places share the
 * work, and the longest is on average half over when the others end. */
static double time_of_unlike_splits(const fa_knobs *knobs, const fa_problem *problem, int32_t sm_count, int32_t splits)
{
    const double begin_end = 750, places = (double)sm_count * (knobs->warps <= 4 ? 2 : 1);
    const int64_t group = problem->heads / problem->kv_heads, m = knobs->m;
    const int64_t of_grid = (fa_problem_stored_q(problem) * group + problem->batch * (m - 1)) / m * splits;
    double tiles = 0, work = 0, blocks = 0, longest = 0;
    for (int32_t batch = 0; batch < problem->batch; batch++) {
        const double of_rows = (double)((fa_problem_seq_q(problem, batch) * group + m - 1) / m);
        tiles += of_rows;
        work += of_rows * fa_problem_seq_kv(problem, batch);
    }
    const double most = splits > 1 ? fmax(1, ceil(work / fmax(1, (double)of_grid - tiles))) : INFINITY;
    for (int32_t batch = 0; batch < problem->batch; batch++) {
        const double keys = fa_problem_seq_kv(problem, batch), parts = fmax(1, ceil(keys / most));
        blocks += (double)((fa_problem_seq_q(problem, batch) * group + m - 1) / m) * parts * problem->kv_heads;
        longest = fmax(longest, keys / parts);
    }
    if (blocks <= places)
        return longest + begin_end;
    return (work * problem->kv_heads + begin_end * blocks) / places + longest / 2;
}

static int64_t query_tiles(const fa_knobs *knobs, const fa_problem *problem)
{
    return (int64_t)problem->batch * problem->heads * ((problem->seq_q + knobs->m - 1) / knobs->m);
}

/* Blocks of one a multiprocessor, the longest first. */
static double time_of_waves(double waves, double longest, double shortest)
{
    return fmax(longest, waves * (longest + shortest) / 2 + (ceil(waves) - waves) * shortest);
}

/* What `splits` parts of every query tile take on blocks of one a multiprocessor that take the longest parts first, in
 * key tiles. A part has a begin and an end; parts are combined. */
static double time_of_splits(const fa_knobs *knobs, const fa_problem *problem, int32_t sm_count, int32_t splits)
{
    const double begin_end = 1.5, combine = splits > 1 ? 2.5 + 0.4 * splits : 0;
    const int64_t tiles = query_tiles(knobs, problem);
    const double waves = (double)tiles * splits / sm_count, fixed = begin_end + combine;
    const double per_key = 1.0 / knobs->n / splits;
    const double keys_of_first = problem->causal ? fmax(0, problem->seq_kv - problem->seq_q) : problem->seq_kv;
    return time_of_waves(waves, problem->seq_kv * per_key + fixed, keys_of_first * per_key + fixed);
}

/* What gradients take where `splits` blocks share n keys of a K/V head, each with a part of the query tiles that see
 * them, in query tiles. The causal mask leaves few rows to the last keys, a window or a chunk few to all. A block
 * begins and ends; the parts of dK and dV are added. Blocks with few rows are at other heads than those with many, but
 * with the causal mask alone: the more heads a block meets, the less of them the L2 still has (measured on an H100).
 * Deterministic: blocks wait for those of later keys, which are ahead where a mask is and each has whole heads. */
static double time_of_shared_keys(const fa_knobs *knobs, const fa_problem *problem, int32_t sm_count, int32_t splits)
{
    const bool masked = problem->causal || problem->windowed || problem->chunk > 0;
    if (problem->deterministic && masked && problem->heads / problem->kv_heads % splits != 0)
        return INFINITY;
    const double fixed = splits > 1 ? 6 : 5, keys = knobs->n;
    double most = fmin(problem->seq_q, problem->causal ? problem->seq_kv : INFINITY);
    if (problem->chunk > 0)
        most = fmin(most, problem->chunk + keys);
    if (problem->windowed && problem->window_left >= 0 && problem->window_right >= 0)
        most = fmin(most, problem->window_left + problem->window_right + keys);
    const double least = problem->causal ? fmin(most, keys) : most;
    const double blocks = ceil(problem->seq_kv / keys) * problem->kv_heads * problem->batch * splits;
    const double heads = (double)problem->heads / problem->kv_heads / splits;
    const bool together = problem->causal && problem->dim > 64 && !problem->deterministic && !problem->windowed &&
                          problem->chunk <= 0 && problem->lengths == NULL &&
                          (problem->dim <= 128 || problem->seq_q <= 8192); /* at 16k they drift apart */
    const double from_memory =
        together ? 0 : 0.05 * problem->dim / 128 * fmax(0, heads - 512.0 / problem->dim) * (1 - least / most);
    const double per_row = (1 + from_memory) * heads / knobs->m;
    const double waves = blocks / sm_count, longest = most * per_row + fixed, shortest = least * per_row + fixed;
    if (problem->deterministic && waves > 1) /* the shortest first */
        return time_of_waves(waves, longest, shortest) + 0.6 * (longest - shortest);
    return time_of_waves(waves, longest, shortest);
}

typedef double time_model(const fa_knobs *knobs, const fa_problem *problem, int32_t sm_count, int32_t splits);

/* Splits up to `most`, all or powers of two: more of them where that takes 3 % less time. */
static int32_t choose_by_time(time_model *time_of, const fa_knobs *knobs, const fa_problem *problem, int32_t sm_count,
                              int32_t most, bool powers)
{
    int32_t best = 1;
    double least = time_of(knobs, problem, sm_count, best);
    for (int32_t splits = 2; splits <= most; splits += powers ? splits : 1) {
        const double time = time_of(knobs, problem, sm_count, splits);
        if (time < 0.97 * least) {
            best = splits;
            least = time;
        }
    }
    return best;
}

/* The problem with as many keys as its query rows see together, where a window or a chunk leaves less than all. */
static fa_problem with_keys_seen(const fa_problem *problem)
{
    fa_problem seen = *problem;
    int64_t keys = problem->seq_kv;
    if (problem->chunk > 0 && problem->chunk + (int64_t)problem->seq_q < keys)
        keys = problem->chunk + (int64_t)problem->seq_q;
    if (problem->windowed && problem->window_left >= 0 && problem->window_right >= 0) {
        const int64_t window = (int64_t)problem->window_left + problem->window_right + problem->seq_q;
        keys = window < keys ? window : keys;
    }
    seen.seq_kv = (int32_t)keys;
    return seen;
}

int32_t fa_splits_choose(const fa_kernel_row *row, const fa_knobs *knobs, const fa_problem *of, int32_t sm_count)
{
    const fa_problem seen = with_keys_seen(of), *problem = &seen;
    enum { SPLIT_KEYS = 1024, PACKED_SPLIT_KEYS = 256, BALANCED_SPLIT_KEYS = 512, SPLITS_MAX = 64, CLUSTER_MAX = 8 };
    if (row == NULL || row->space.splits == NULL)
        return 1;
    if (row->traits.backward)
        return choose_by_time(time_of_shared_keys, knobs, of, sm_count, CLUSTER_MAX, true);
    const int32_t keys = row->traits.pack_heads ? PACKED_SPLIT_KEYS
                         : row->traits.wgmma    ? BALANCED_SPLIT_KEYS
                                                : SPLIT_KEYS;
    const int32_t most = problem->seq_kv / keys < SPLITS_MAX ? problem->seq_kv / keys : SPLITS_MAX;
    const bool by_length = of->lengths != NULL && !of->windowed && of->chunk == 0 && !(of->v_in_k && row->traits.wgmma);
    if (row->traits.pack_heads && by_length)
        return choose_by_time(time_of_unlike_splits, knobs, of, sm_count, most, false);
    if (row->traits.pack_heads && row->traits.wgmma)
        return choose_wgmma_packed_splits(knobs, problem, sm_count, most);
    if (row->traits.pack_heads)
        return choose_packed_splits(knobs, problem, sm_count, most);
    if (row->traits.wgmma)
        return choose_by_time(time_of_splits, knobs, problem, sm_count, most, false);
    const int64_t tiles = query_tiles(knobs, problem);
    const int64_t splits = sm_count / tiles < most ? sm_count / tiles : most;
    return splits < 1 ? 1 : (int32_t)splits;
}
