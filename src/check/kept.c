#include "check/kept.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/choose_rows.h"

enum { OF_INPUTS = 48 }; /* characters of a key that tell inputs; the others tell the rows of the sample */

#define EMULATED_MOST ((size_t)4 << 20)
#define GPU_MOST ((size_t)4 << 30)

/* An entry of the list, the last used first. */
typedef struct entry {
    fa_kept kept; /* first: callers hold a pointer to it */
    fa_digest key;
    size_t rows, elements; /* of O */
    size_t gradients;      /* numbers in `plain`, of --op backward */
    size_t pairs;          /* elements of a bias for one head */
    uint64_t sum;          /* of all bytes, when it was closed; 0: not taken */
    bool suspicious;
    struct entry *next;
} entry;

static entry *newest; /* of this process: a worker of the pool */

typedef struct part {
    const void *at;
    size_t bytes;
} part;
enum { PARTS = 17 + 7 * FA_GRADS };

static void parts_of(const entry *e, part parts[PARTS])
{
    const fa_tensors *t = &e->kept.tensors;
    const fa_reference *r = &e->kept.reference;
    const size_t count = (size_t)r->row_count, each = e->rows > 0 ? e->elements / e->rows : 0;
    const size_t planes = (size_t)t->scores.bias_batch * (size_t)t->scores.bias_heads;
    const bool backward = e->kept.forward != NULL;
    part all[PARTS] = {
        {&e->kept, sizeof e->kept},
        {t->q, t->q_count * 2},
        {t->k, t->k_count * 2},
        {t->v, t->v_count * 2},
        {t->scores.bias, planes * e->pairs * 2},
        {r->rows, count * sizeof *r->rows},
        {r->exact, count * each * sizeof *r->exact},
        {r->baseline, count * each * sizeof *r->baseline},
        {r->lse, count * sizeof *r->lse},
        {r->baseline_lse, count * sizeof *r->baseline_lse},
        {r->sway, count * sizeof *r->sway},
        {e->kept.library, e->elements * sizeof(float)},
        {e->kept.plain, backward ? e->gradients * sizeof(double) : (e->elements + e->rows) * sizeof(double)},
        {t->dout, e->elements * 2},
        {t->o, e->elements * 2},
        {t->lse, e->rows * sizeof *t->lse},
        {e->kept.forward, (e->elements + e->rows) * sizeof(double)}};
    for (int32_t i = 0; i < FA_GRADS; i++) {
        const fa_gradient *g = &e->kept.gradients.of[i];
        const size_t elements = (size_t)g->row_count * (size_t)g->columns;
        all[PARTS - 5 * i - 1] = (part){g->rows, (size_t)g->row_count * sizeof *g->rows};
        all[PARTS - 5 * i - 2] = (part){g->exact, elements * sizeof *g->exact};
        all[PARTS - 5 * i - 3] = (part){g->baseline, elements * sizeof *g->baseline};
        all[PARTS - 5 * i - 5] = (part){g->slack, (size_t)g->row_count * sizeof *g->slack};
        all[PARTS - 5 * i - 4] = (part){g->noise, (size_t)g->row_count * sizeof *g->noise};
        const fa_gradient *every = &e->kept.every.of[i];
        all[17 + 2 * i] = (part){every->slack, (size_t)every->row_count * sizeof *every->slack};
        all[18 + 2 * i] = (part){every->noise, (size_t)every->row_count * sizeof *every->noise};
    }
    for (int i = 0; i < PARTS; i++)
        parts[i] = all[i];
}

static size_t bytes_of(const entry *e)
{
    part parts[PARTS];
    size_t bytes = 0;
    parts_of(e, parts);
    for (int i = 0; i < PARTS; i++)
        bytes += parts[i].at != NULL ? parts[i].bytes : 0;
    return bytes;
}

/* FNV-1a over words of 16 bits, which all parts are made of. */
static uint64_t sum_of(const entry *e)
{
    part parts[PARTS];
    uint64_t sum = 0xCBF29CE484222325u;
    parts_of(e, parts);
    for (int i = 0; i < PARTS; i++)
        for (size_t at = 0; parts[i].at != NULL && at < parts[i].bytes / 2; at++)
            sum = (sum ^ ((const uint16_t *)parts[i].at)[at]) * 0x100000001B3u;
    return sum;
}

void fa_kept_free(fa_kept *kept)
{
    if (kept->has_tensors)
        fa_tensors_free(&kept->tensors);
    if (kept->has_reference)
        fa_reference_free(&kept->reference);
    free(kept->library);
    free(kept->plain);
    free(kept->forward);
    fa_gradients_free(&kept->gradients);
    fa_gradients_free_plain(&kept->every);
    *kept = (fa_kept){.has_tensors = false};
}

/* Members that are added later are part of the key, too. */
#if defined __has_builtin && __has_builtin(__builtin_clear_padding)
#define CLEAR_PADDING(object) __builtin_clear_padding(object)
#else
#define CLEAR_PADDING(object) (void)(object)
#endif

static void extend_by(char **text, const void *data, size_t bytes)
{
    fa_extend(text, "%s ", fa_sha256(data, bytes).hex);
}

fa_digest fa_kept_key(const fa_problem *problem, const fa_draw *draw, int32_t tile_m, bool acc_fp16)
{
    const fa_lengths *lengths = problem->lengths;
    const fa_pages *pages = problem->pages;
    fa_problem bare = *problem;
    fa_draw drawn = *draw;
    const int32_t sampled = fa_chooses_all_rows(problem) ? 0 : tile_m;
    char *text = fa_format("%d ", acc_fp16);
    bare.lengths = NULL;
    bare.pages = NULL;
    drawn.max_abs_err = 0.0; /* of a candidate */
    CLEAR_PADDING(&bare);
    CLEAR_PADDING(&drawn);
    extend_by(&text, &bare, sizeof bare);
    extend_by(&text, &drawn, sizeof drawn);
    const size_t count = (size_t)problem->batch * sizeof(int32_t);
    if (lengths != NULL) {
        extend_by(&text, lengths->q, count);
        extend_by(&text, lengths->kv, count);
        extend_by(&text, lengths->q_start, count + sizeof(int32_t));
        extend_by(&text, lengths->kv_start, count + sizeof(int32_t));
    }
    if (pages != NULL) {
        fa_extend(&text, "%d %d %d %d ", pages->size, pages->nhd, pages->compressed, pages->count);
        extend_by(&text, pages->start, count + sizeof(int32_t));
        extend_by(&text, pages->table, (size_t)pages->start[problem->batch] * sizeof *pages->table);
    }
    fa_digest key = fa_sha256(text, strlen(text)), rows = fa_sha256(&sampled, sizeof sampled);
    memcpy(key.hex + OF_INPUTS, rows.hex + OF_INPUTS, sizeof key.hex - OF_INPUTS);
    free(text);
    return key;
}

/* Another tile samples other rows: all else comes from the entry that has it, which keeps its own rows alone. */
static void take_inputs(entry *to)
{
    entry *e = newest;
    while (e != NULL && (!e->kept.has_tensors || e->suspicious || memcmp(&e->key, &to->key, OF_INPUTS) != 0))
        e = e->next;
    if (e == NULL || to->suspicious || to->kept.has_tensors)
        return;
    const fa_kept rows = to->kept, from = e->kept;
    to->kept = from;
    to->kept.has_reference = rows.has_reference;
    to->kept.reference = rows.reference;
    to->kept.has_gradients = rows.has_gradients;
    to->kept.gradients = rows.gradients;
    e->kept = (fa_kept){.has_reference = from.has_reference,
                        .reference = from.reference,
                        .has_gradients = from.has_gradients,
                        .gradients = from.gradients};
}

fa_kept *fa_kept_open(const fa_digest *key, const fa_problem *problem, bool suspicious)
{
    entry **link = &newest, *found;
    while (*link != NULL && memcmp(&(*link)->key, key, sizeof *key) != 0)
        link = &(*link)->next;
    if (*link != NULL) {
        found = *link;
        *link = found->next;
    } else {
        found = fa_alloc(sizeof *found);
        *found = (entry){.key = *key,
                         .rows = (size_t)fa_problem_rows(problem),
                         .elements = fa_problem_o_count(problem),
                         .gradients = problem->backward ? fa_gradient_doubles(problem) : 0,
                         .pairs = (size_t)problem->seq_q * (size_t)problem->seq_kv};
    }
    if (found->suspicious && found->sum != sum_of(found))
        fa_kept_free(&found->kept);
    found->suspicious = suspicious;
    take_inputs(found);
    found->next = newest;
    newest = found;
    return &found->kept;
}

void fa_kept_close(fa_kept *kept, size_t most)
{
    size_t bytes = 0;
    FA_ASSERT(&newest->kept == kept, "another one is open");
    if (newest->suspicious)
        newest->sum = sum_of(newest);
    for (entry **link = &newest; *link != NULL;) {
        entry *e = *link;
        bytes += bytes_of(e);
        if (bytes <= most) {
            link = &e->next;
            continue;
        }
        bytes -= bytes_of(e);
        *link = e->next;
        fa_kept_free(&e->kept);
        free(e);
    }
}

size_t fa_kept_most(bool emulated)
{
    const size_t share = (size_t)sysconf(_SC_PHYS_PAGES) / 32 * (size_t)sysconf(_SC_PAGE_SIZE);
    return emulated ? EMULATED_MOST : share < GPU_MOST ? share : GPU_MOST;
}

void fa_kept_clear(void)
{
    while (newest != NULL) {
        entry *e = newest;
        newest = e->next;
        fa_kept_free(&e->kept);
        free(e);
    }
}
