#include "input/schedule.h"

/* Gives `keys` to the multiprocessor that has the least. The heap's first load is the least. Returns the new load. */
static int64_t add_to_least(int64_t *heap, int32_t count, int64_t keys)
{
    const int64_t load = heap[0] + keys;
    int32_t at = 0;
    for (int32_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= load)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = load;
    return load;
}

/* What tile `index` of the query rows counts: the keys from the first that its first row sees to the last of its last
 * row. */
static int64_t keys_of_tile(const fa_knobs *knobs, const fa_problem *problem, int64_t index)
{
    enum { BEGIN_END = 256 };
    const int64_t rows = (index + 1) * knobs->m, end = rows < problem->seq_q ? rows : problem->seq_q;
    const int64_t before = (int64_t)problem->seq_kv - problem->seq_q;
    const fa_keys first = fa_problem_keys_at(problem, index * knobs->m + before, problem->seq_kv);
    const fa_keys last = fa_problem_keys_at(problem, end - 1 + before, problem->seq_kv);
    const int64_t seen = last.end - first.first, keys = seen > 1 ? seen : 1;
    return (keys + knobs->n - 1) / knobs->n * knobs->n + BEGIN_END;
}

int64_t fa_busiest_keys(const fa_knobs *knobs, const fa_problem *problem, int32_t sm_count)
{
    enum { SM_MOST = 1024, TILES_MOST = 64 };
    const int64_t heads = (int64_t)problem->batch * problem->heads;
    const int64_t tiles = ((int64_t)problem->seq_q + knobs->m - 1) / knobs->m;
    const bool one_by_one = sm_count <= SM_MOST && tiles * heads <= (int64_t)TILES_MOST * sm_count;
    int64_t loads[SM_MOST] = {0}, busiest = 0, total = 0;
    for (int64_t index = tiles - 1; index >= 0; index--) {
        const int64_t keys = keys_of_tile(knobs, problem, index);
        total += keys * heads;
        for (int64_t head = 0; one_by_one && head < heads; head++) {
            const int64_t load = add_to_least(loads, sm_count, keys);
            busiest = load > busiest ? load : busiest;
        }
    }
    return one_by_one ? busiest : total / sm_count;
}
