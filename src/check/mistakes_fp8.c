#include "check/mistakes_fp8.h"

enum { NO_K, NO_V, NO_Q, NO_Q_AND_K, NONE };
void fa_mistake_no_descale(fa_recipe *r, int32_t way)
{
    if (way == NO_Q || way >= NO_Q_AND_K)
        r->q_times = 1.0;
    if (way == NO_K || way >= NO_Q_AND_K)
        r->k_times = 1.0;
    if (way == NO_V || way == NONE)
        r->v_times = 1.0;
}

enum { BOTH, V_FOR_K, K_FOR_V };
void fa_mistake_swapped_descales(fa_recipe *r, int32_t way)
{
    const double k = r->k_times, v = r->v_times;
    r->k_times = way == K_FOR_V ? k : v;
    r->v_times = way == V_FOR_K ? v : k;
}

/* Of the table [batches, heads], one of another place, or of the right place in a table [heads, batches]. */
enum { NEXT_HEAD, HEAD_BEFORE, NEXT_BATCH, BATCH_BEFORE, FIRST_HEAD, FIRST_BATCH, TURNED, OF_QUERY_HEAD };
static double other(const fa_recipe *r, const float *descales, bool query, int32_t place)
{
    const fa_problem *p = r->problem;
    const int32_t heads = query ? p->heads : p->kv_heads, batches = p->batch, group = p->heads / p->kv_heads;
    const int32_t head = query ? r->at.head : r->kv_head, batch = r->at.batch;
    const int32_t other_heads[FA_DESCALE_PLACES] = {(head + 1) % heads,
                                                    (head + heads - 1) % heads,
                                                    head,
                                                    head,
                                                    0,
                                                    head,
                                                    0,
                                                    query ? head / group : r->at.head % heads};
    const int32_t other_batches[FA_DESCALE_PLACES] = {
        batch, batch, (batch + 1) % batches, (batch + batches - 1) % batches, batch, 0, 0, batch};
    if (place == TURNED && descales != NULL)
        return (double)descales[(int64_t)head * batches + batch];
    return (double)fa_descale(descales, p, query, other_batches[place], other_heads[place]);
}

enum { OF_K, OF_V, OF_K_AND_V, OF_Q, OF_Q_AND_K, OF_ALL };
void fa_mistake_other_descale(fa_recipe *r, int32_t way)
{
    const fa_score_tensors *t = &r->tensors->scores;
    const int32_t of = way / FA_DESCALE_PLACES, place = way % FA_DESCALE_PLACES;
    if (of >= OF_Q)
        r->q_times = other(r, t->q_descale, true, place);
    if (of == OF_K || of == OF_K_AND_V || of >= OF_Q_AND_K)
        r->k_times = other(r, t->k_descale, false, place);
    if (of == OF_V || of == OF_K_AND_V || of == OF_ALL)
        r->v_times = other(r, t->v_descale, false, place);
}
