#include "check/mistakes_layout.h"

static int32_t turn_of(int32_t way) { return way < FA_TURNS ? 1 << way : 0; }
static int32_t swap_of(int32_t way) { return way < FA_TURNS ? 0 : way == FA_TURNS ? 8 : 7; }

void fa_mistake_turned_k(fa_recipe *r, int32_t way)
{
    r->k_turn = (fa_turn){.columns = turn_of(way) % r->problem->dim, .swapped = swap_of(way)};
}

void fa_mistake_turned_keys(fa_recipe *r, int32_t way)
{
    r->v_turn = (fa_turn){.keys = turn_of(way), .swapped = swap_of(way)};
}

void fa_mistake_turned_columns(fa_recipe *r, int32_t way) { r->v_turn.columns = turn_of(way); }

void fa_mistake_last_columns(fa_recipe *r, int32_t way)
{
    (void)way;
    r->v = r->tensors->k;
    r->v_turn.first = r->problem->dim - fa_problem_dim_v(r->problem);
}

void fa_mistake_fewer_columns(fa_recipe *r, int32_t way)
{
    const int32_t ends[] = {r->problem->dim, 64, 128, 256};
    r->columns = ends[way] < r->columns ? ends[way] : r->columns;
}

void fa_mistake_fewer_dims(fa_recipe *r, int32_t way)
{
    const int32_t dim = r->dims, dims[] = {r->columns, dim / 64 * 64, dim / 32 * 32, dim / 16 * 16, dim - 1};
    r->dims = dims[way] <= 0 || dims[way] > dim ? dim : dims[way];
}

void fa_mistake_starts_of_queries(fa_recipe *r, int32_t way)
{
    const fa_lengths *l = r->problem->lengths;
    const int32_t by = l->q_start[r->at.batch] - l->kv_start[r->at.batch];
    (void)way;
    if (r->problem->pages != NULL || r->first + by < 0)
        return;
    r->first += by;
    r->readable -= by > 0 ? by : 0;
    r->keys.end = r->keys.end < r->readable ? r->keys.end : r->readable;
}

/* Three batches, two rows, then heads. */
void fa_mistake_other_query(fa_recipe *r, int32_t way)
{
    const fa_problem *p = r->problem;
    const int32_t batches[] = {0, (r->at.batch + 1) % p->batch, (r->at.batch + p->batch - 1) % p->batch};
    const int32_t at = r->at.row, row = way == 3 && at + 1 < r->at.seq_q ? at + 1 : way == 4 && at > 0 ? at - 1 : at;
    const int32_t head = way < 5 ? r->at.head : fa_other_head(p, r->at.head, way - 4);
    const int64_t flat = fa_problem_flat(p, way < 3 ? batches[way] : r->at.batch, head, row);
    if (flat < fa_problem_rows(p))
        r->q = r->tensors->q + flat * p->dim;
}
