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
