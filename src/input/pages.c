#include "input/pages.h"

#include <stdlib.h>

#include "base/random.h"

#define MUCH_ROWS ((int64_t)1 << 20) /* stored rows of a head */

fa_pages *fa_pages_make(int32_t size, bool nhd, int32_t batch, const int32_t *keys, int32_t count, bool share,
                        uint64_t seed)
{
    fa_pages *p = fa_alloc(sizeof *p);
    uint64_t state = fa_random_mix(seed + FA_RANDOM_STEP);
    *p = (fa_pages){.size = size, .nhd = nhd, .compressed = share, .batch = batch};
    p->start = fa_alloc((size_t)(batch + 1) * sizeof *p->start);
    for (int32_t b = 0; b < batch; b++) {
        const int32_t entries = (keys[b] + size - 1) / size;
        p->start[b + 1] = p->start[b] + entries;
        p->row_entries = entries > p->row_entries ? entries : p->row_entries;
    }
    p->row_entries += 3; /* so that a row has unused entries */
    const int32_t used = p->start[batch];
    p->count = count > 0 ? count : 3 * (int64_t)used * size <= MUCH_ROWS ? 3 * used + 1 : used + used / 8 + 1;
    FA_ASSERT(p->count >= used, "%d pages for %d entries", p->count, used);
    p->table = fa_alloc((size_t)(used + 1) * sizeof *p->table);
    p->owner = fa_alloc((size_t)p->count * sizeof *p->owner);
    int32_t *order = fa_alloc((size_t)p->count * sizeof *order);
    for (int32_t i = 0; i < p->count; i++) { /* Fisher and Yates, from the front */
        const int32_t at = (int32_t)(fa_random_next(&state) % (uint64_t)(i + 1));
        order[i] = order[at];
        order[at] = i;
        p->owner[i] = -1;
    }
    for (int32_t entry = 0; entry < used; entry++)
        p->table[entry] = order[entry];
    free(order);
    const int32_t whole[2] = {keys[0] / size, batch > 1 ? keys[1] / size : 0}; /* pages without a tail */
    const int32_t shared = share ? ((whole[0] < whole[1] ? whole[0] : whole[1]) + 1) / 2 : 0;
    for (int32_t i = 0; i < shared; i++)
        p->table[p->start[1] + i] = p->table[i];
    for (int32_t entry = used - 1; entry >= 0; entry--)
        p->owner[p->table[entry]] = entry;
    return p;
}

void fa_pages_free(fa_pages *pages)
{
    if (pages == NULL)
        return;
    free(pages->start);
    free(pages->table);
    free(pages->owner);
    free(pages);
}

int32_t fa_pages_sequence(const fa_pages *pages, int32_t entry)
{
    return fa_lengths_sequence(pages->start, pages->batch, entry);
}
