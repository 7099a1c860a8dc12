#include "emu/hopper/wgmma.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "emu/core/report.h"
#include "emu/hopper/registers.h"
#include "emu/hopper/wgmma_operand.h"
#include "emu/race/async.h"
#include "ptx/fp8.h"
#include "ptx/hopper.h"

/* One lane's part; lives on its stack until all lanes have arrived. */
typedef struct lane_part {
    const fa_emu_ptx_run *run;
} lane_part;

typedef struct warp_part {
    fa_emu_worker *worker;
    fa_emu_products *products;
    uint32_t warp;
    const fa_ptx_instr *instr;
    const fa_emu_ptx_run *lane[FA_EMU_WARP];
} warp_part;

static bool refuse(const warp_part *w, const char *kind, int lane, const char *what)
{
    const fa_emu_place *site = w->lane[lane]->at;
    fa_emu_report(w->worker, kind, &w->worker->fibres[w->warp * FA_EMU_WARP + (uint32_t)lane], site->file, site->line,
                  "%.100s: %s", w->instr->text, what);
    return false;
}

static fa_emu_products *products_of(fa_emu_pending *pending, uint32_t warp)
{
    if (pending->products[warp] == NULL)
        pending->products[warp] = fa_alloc(sizeof(fa_emu_products));
    return pending->products[warp];
}

void fa_emu_ptx_wgmma(fa_emu_ptx_run *run)
{
    lane_part part = {run};
    fa_emu_op op = fa_emu_ptx_op(run, FA_EMU_PTX, run->instr->text);
    op.a = run->instr;
    op.d = &part;
    fa_emu_ptx_wait(&op);
    if (fa_emu_self->race != NULL && fa_ptx_has(run->instr, FA_PTX_W_FENCE_))
        fa_emu_registers_fenced();
}

/* Element e of a lane's accumulators: PTX ISA, "wgmma.mma_async: Register Fragments". */
static inline float *element(fa_emu_tile *tile, int lane, int e)
{
    return &tile->sum[lane / 4 + 8 * (e / 2 % 2)][8 * (e / 4) + 2 * (lane % 4) + e % 2];
}

static uint16_t narrow(float value) { return fa_ptx_half_bits((double)value); }

static void load_tile(fa_emu_tile *tile, const warp_part *w)
{
    const fa_ptx_arg d = w->instr->arg[0];
    for (int lane = 0; lane < FA_EMU_WARP; lane++)
        for (int k = 0; k < tile->registers; k++) {
            const uint32_t bits = (uint32_t)fa_ptx_read(&w->instr->value[d.first + k], w->lane[lane]->r);
            if (tile->halves) {
                *element(tile, lane, 2 * k) = fa_emu_widen((uint16_t)bits, false);
                *element(tile, lane, 2 * k + 1) = fa_emu_widen((uint16_t)(bits >> 16), false);
            } else {
                memcpy(element(tile, lane, k), &bits, sizeof bits);
            }
        }
}

static void deliver(fa_emu_tile *tile)
{
    for (int lane = 0; lane < FA_EMU_WARP; lane++)
        for (int k = 0; k < tile->registers; k++) {
            void *place = tile->places[lane * tile->registers + k];
            const uint32_t pair =
                (uint32_t)narrow(*element(tile, lane, 2 * k)) | (uint32_t)narrow(*element(tile, lane, 2 * k + 1)) << 16;
            if (tile->halves)
                memcpy(place, &pair, sizeof pair);
            else
                memcpy(place, element(tile, lane, k), sizeof(float));
        }
    free(tile->places);
    tile->used = false;
}

static void *place_of(const warp_part *w, int lane, int k)
{
    const fa_ptx_value *v = &w->instr->value[w->instr->arg[0].first + k];
    const fa_emu_ptx_run *run = w->lane[lane];
    return v->kind == FA_PTX_REG && v->reg < run->operands && run->places != NULL ? run->places[v->reg] : NULL;
}

static fa_emu_tile *new_tile(const warp_part *w, const fa_ptx_instr *i)
{
    fa_emu_tile *tile = NULL;
    for (int t = 0; t < FA_EMU_TILES_MAX && tile == NULL; t++)
        if (!w->products->tiles[t].used)
            tile = &w->products->tiles[t];
    if (tile == NULL) {
        refuse(w, FA_EMU_NOT_MODELLED, 0, "more than 64 accumulators of this warp are under way");
        return NULL;
    }
    tile->used = true;
    tile->halves = i->type[0] == FA_PTX_F16;
    tile->columns = i->columns;
    tile->registers = fa_ptx_wgmma_accumulators(i);
    tile->file = w->lane[0]->at->file;
    tile->line = w->lane[0]->at->line;
    tile->places = fa_alloc((size_t)(FA_EMU_WARP * tile->registers) * sizeof *tile->places);
    for (int lane = 0; lane < FA_EMU_WARP; lane++)
        for (int k = 0; k < tile->registers; k++)
            if ((tile->places[lane * tile->registers + k] = place_of(w, lane, k)) == NULL) {
                refuse(w, FA_EMU_NOT_MODELLED, lane, "its accumulators are no operands of the asm statement");
                return NULL;
            }
    load_tile(tile, w);
    for (int at = 0; at < FA_EMU_WARP * tile->registers; at++)
        memset(tile->places[at], 0xff, 4); /* the kernel's variables are NaN until it waits for the products */
    return tile;
}

/* The chain of products that the accumulators are in, or a new one. NULL: invalid, and reported. */
static fa_emu_tile *tile_of(const warp_part *w, const fa_ptx_instr *i)
{
    const void *first = place_of(w, 0, 0);
    for (int t = 0; t < FA_EMU_TILES_MAX; t++) {
        fa_emu_tile *tile = &w->products->tiles[t];
        bool shares = false;
        for (int k = 0; tile->used && k < tile->registers; k++)
            shares |= tile->places[k] == first;
        if (!shares)
            continue;
        if (tile->places[0] == first && tile->columns == i->columns && tile->halves == (i->type[0] == FA_PTX_F16))
            return tile;
        refuse(w, FA_EMU_WGMMA, 0, "another product, of another shape, still writes these accumulators");
        return NULL;
    }
    return new_tile(w, i);
}

static void read_a(fa_emu_product *product, const warp_part *w)
{
    for (int lane = 0; lane < FA_EMU_WARP; lane++)
        for (int r = 0; r < 4; r++)
            fa_emu_register_of_a(lane, r,
                                 (uint32_t)fa_ptx_read(&w->instr->value[w->instr->arg[1].first + r], w->lane[lane]->r),
                                 product->a_type, product->a_sign, product->a_values);
}

static fa_emu_operand operand_a(const fa_emu_worker *worker, uint32_t warp, const fa_emu_product *p)
{
    return fa_emu_operand_of(worker, p->a, p->a_transposed, p->a_type, (int)(warp % 4) * 16, 16);
}

static fa_emu_operand operand_b(const fa_emu_worker *worker, const fa_emu_product *p)
{
    return fa_emu_operand_of(worker, p->b, p->b_transposed, p->b_type, 0, p->tile->columns);
}

static bool check_operand(const warp_part *w, const fa_emu_operand *operand)
{
    if (!fa_emu_operand_inside(w->worker, operand))
        return refuse(w, FA_EMU_FAULT, 0, "a matrix does not lie in the block's shared memory");
    if (operand->base_offset != 0)
        return refuse(w, FA_EMU_NOT_MODELLED, 0, "a base offset: matrices begin on multiples of the swizzle");
    if (w->worker->race == NULL)
        return true;
    const fa_race_actor actor = fa_race_actor_of_products(w->worker, w->warp, w->products->groups);
    for (int i = 0; i < fa_emu_operand_chunks(operand) && !w->worker->stopped; i++)
        fa_race_actor_touch(w->worker, &actor, w->worker, fa_emu_operand_chunk(operand, i), FA_EMU_CHUNK, 0,
                            w->lane[0]->pc);
    return !w->worker->stopped;
}

/* Must be equal in every lane, and in every warp of the warpgroup. */
static bool check_uniform(const warp_part *w, const fa_emu_product *p)
{
    const fa_ptx_instr *i = w->instr;
    for (int lane = 1; lane < FA_EMU_WARP; lane++)
        if ((!p->a_in_registers && fa_ptx_in(i, 1, w->lane[lane]->r) != p->a) ||
            fa_ptx_in(i, 2, w->lane[lane]->r) != p->b || (fa_ptx_in(i, 3, w->lane[lane]->r) != 0) != p->accumulate)
            return refuse(w, FA_EMU_WGMMA, lane, "lanes of one warp give different descriptors");
    for (uint32_t other = w->warp & ~3u; other < (w->warp & ~3u) + 4 && other < w->worker->warps; other++) {
        const fa_emu_products *theirs = w->worker->pending->products[other];
        const uint32_t number = w->products->issued;
        if (theirs == NULL || theirs->issued <= number || theirs->issued - number > FA_EMU_PRODUCTS_MAX)
            continue;
        if (theirs->queue[number % FA_EMU_PRODUCTS_MAX].trace != p->trace)
            return refuse(w, FA_EMU_WGMMA, 0, "the warps of a warpgroup issue different products");
    }
    return true;
}

static uint64_t trace_of(const warp_part *w, const fa_emu_product *p)
{
    uint64_t hash = (uint64_t)w->lane[0]->at->line * 0x9e3779b97f4a7c15u;
    hash = (hash ^ p->b) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (p->a_in_registers ? 0 : p->a)) * 0x94d049bb133111ebu;
    return hash ^ (uint64_t)p->accumulate ^ (uint64_t)w->instr->columns << 32;
}

/* d, a, b, scale-d, sign of a, sign of b, {transposed a,} transposed b; of FP8 nothing is transposed */
static fa_emu_product describe(const warp_part *w)
{
    const fa_ptx_instr *i = w->instr;
    const uint64_t *r = w->lane[0]->r;
    const bool registers = fa_ptx_wgmma_a_in_registers(i), halves = !fa_ptx_is_fp8(i->type[1]);
    fa_emu_product p = {.a = registers ? 0 : fa_ptx_in(i, 1, r),
                        .b = fa_ptx_in(i, 2, r),
                        .a_in_registers = registers,
                        .a_transposed = halves && !registers && fa_ptx_in(i, 6, r) != 0,
                        .b_transposed = halves && fa_ptx_in(i, registers ? 6 : 7, r) != 0,
                        .accumulate = fa_ptx_in(i, 3, r) != 0,
                        .a_type = i->type[1],
                        .b_type = i->type[2],
                        .a_sign = (int64_t)fa_ptx_in(i, 4, r) == -1 ? -1.0f : 1.0f,
                        .b_sign = (int64_t)fa_ptx_in(i, 5, r) == -1 ? -1.0f : 1.0f,
                        .name = i->text,
                        .file = w->lane[0]->at->file,
                        .line = w->lane[0]->at->line};
    p.a_sign *= p.b_sign;
    p.trace = trace_of(w, &p);
    return p;
}

static bool issue(const warp_part *w)
{
    fa_emu_products *all = w->products;
    if (w->worker->warps % 4 != 0 && w->warp >= w->worker->warps / 4 * 4)
        return refuse(w, FA_EMU_WGMMA, 0, "this warp belongs to no whole warpgroup of four warps");
    if (!all->fenced)
        return refuse(w, FA_EMU_WGMMA_FENCE, 0, "no wgmma.fence came before the first product");
    if (all->issued - all->done == FA_EMU_PRODUCTS_MAX)
        fa_emu_wgmma_step(w->worker, w->warp);
    fa_emu_product p = describe(w);
    if (!check_uniform(w, &p))
        return false;
    if (w->worker->race != NULL && !fa_emu_registers_ready(w->worker, w->warp, w->lane, w->instr))
        return false;
    p.tile = tile_of(w, w->instr);
    if (p.tile == NULL)
        return false;
    const fa_emu_operand b = operand_b(w->worker, &p);
    if (p.a_in_registers) {
        read_a(&p, w);
    } else {
        const fa_emu_operand a = operand_a(w->worker, w->warp, &p);
        if (!check_operand(w, &a))
            return false;
    }
    if (!check_operand(w, &b))
        return false;
    if (w->worker->race != NULL)
        fa_emu_registers_taken(w->worker, w->warp, w->lane, w->instr, all->issued);
    p.tile->end = all->issued + 1;
    all->queue[all->issued++ % FA_EMU_PRODUCTS_MAX] = p;
    w->worker->pending->busy++;
    if (w->worker->launch->grid->schedule == FA_SCHEDULE_ASCENDING)
        fa_emu_wgmma_step(w->worker, w->warp);
    return true;
}

void fa_emu_wgmma_step(fa_emu_worker *worker, uint32_t warp)
{
    static _Thread_local float b[32 * 256];
    fa_emu_products *all = worker->pending->products[warp];
    fa_emu_product *p = &all->queue[all->done++ % FA_EMU_PRODUCTS_MAX];
    const fa_emu_operand operand = operand_b(worker, p);
    worker->pending->busy--;
    if (!p->a_in_registers) {
        const fa_emu_operand a = operand_a(worker, warp, p);
        fa_emu_operand_by_row(&a, p->a_sign, p->a_values);
    }
    fa_emu_operand_by_depth(&operand, b);
    if (!p->accumulate)
        memset(p->tile->sum, 0, sizeof p->tile->sum);
    fa_emu_multiply(p, b);
}

/* How many products a warp must have issued for all but `left` of its committed groups. */
static uint32_t end_of_groups(const fa_emu_products *all, uint32_t left)
{
    return left < all->groups ? all->group_ends[(all->groups - left - 1) % FA_EMU_PRODUCTS_MAX] : 0;
}

bool fa_emu_wgmma_can_go_on(const fa_emu_worker *worker, uint32_t warp, const fa_emu_op *op)
{
    const fa_emu_products *all = worker->pending != NULL ? worker->pending->products[warp] : NULL;
    const fa_ptx_instr *instr = op->kind == FA_EMU_PTX ? op->a : NULL;
    if (all == NULL || instr == NULL || instr->op != FA_PTX_OP_WGMMA || !fa_ptx_has(instr, FA_PTX_W_WAIT_GROUP))
        return true;
    uint32_t *awaited = &worker->pending->awaited_warp[warp];
    *awaited = warp;
    const fa_emu_ptx_run *run = ((const lane_part *)op->d)->run;
    const uint32_t end = end_of_groups(all, (uint32_t)fa_ptx_in(instr, 0, run->r));
    for (uint32_t other = warp & ~3u; other < (warp & ~3u) + 4 && other < worker->warps; other++) {
        const fa_emu_products *theirs = worker->pending->products[other];
        if ((int32_t)(end - (theirs != NULL ? theirs->issued : 0)) > 0)
            *awaited = other;
    }
    return *awaited == warp;
}

/* Every warp of a warpgroup commits the same products as one group. */
static bool same_groups(const warp_part *w, uint32_t group)
{
    for (uint32_t other = w->warp & ~3u; other < w->warp; other++) {
        const fa_emu_products *theirs = w->worker->pending->products[other];
        if (theirs != NULL && theirs->groups > group && theirs->groups - group <= FA_EMU_PRODUCTS_MAX &&
            theirs->group_ends[group % FA_EMU_PRODUCTS_MAX] != w->products->group_ends[group % FA_EMU_PRODUCTS_MAX])
            return refuse(w, FA_EMU_WGMMA, 0, "the warps of a warpgroup commit different groups");
    }
    return true;
}

/* At most `left` of the committed groups are under way afterwards: in no warp, as a product is the warpgroup's. */
static bool wait_for_groups(const warp_part *w, uint32_t left)
{
    fa_emu_products *all = w->products;
    if (left >= all->groups)
        return true;
    if (!same_groups(w, all->groups - left - 1))
        return false;
    const uint32_t end = end_of_groups(all, left), first = w->warp & ~3u;
    for (uint32_t warp = first; end > 0 && warp < first + 4 && warp < w->worker->warps; warp++)
        while ((int32_t)(end - w->worker->pending->products[warp]->done) > 0)
            fa_emu_wgmma_step(w->worker, warp);
    for (int t = 0; t < FA_EMU_TILES_MAX; t++)
        if (all->tiles[t].used && (int32_t)(end - all->tiles[t].end) >= 0)
            deliver(&all->tiles[t]);
    if (w->worker->race == NULL)
        return true;
    fa_race_products_waited(w->worker, w->warp, all->groups - left - 1);
    fa_emu_registers_released(w->warp, end);
    return true;
}

bool fa_emu_wgmma_compute(fa_emu_worker *worker, uint32_t warp, fa_emu_op *const op[FA_EMU_WARP])
{
    fa_emu_pending *pending = fa_emu_pending_now();
    warp_part w = {.worker = worker, .products = products_of(pending, warp), .warp = warp, .instr = op[0]->a};
    for (int lane = 0; lane < FA_EMU_WARP; lane++)
        w.lane[lane] = ((const lane_part *)op[lane]->d)->run;
    if (fa_ptx_has(w.instr, FA_PTX_W_MMA_ASYNC))
        return issue(&w);
    if (fa_ptx_has(w.instr, FA_PTX_W_WAIT_GROUP))
        return wait_for_groups(&w, (uint32_t)fa_ptx_in(w.instr, 0, w.lane[0]->r));
    if (fa_ptx_has(w.instr, FA_PTX_W_FENCE_))
        w.products->fenced = true;
    else
        w.products->group_ends[w.products->groups++ % FA_EMU_PRODUCTS_MAX] = w.products->issued;
    return true;
}

void fa_emu_wgmma_block_ends(fa_emu_worker *worker)
{
    const fa_emu_pending *pending = worker->pending;
    for (uint32_t warp = 0; warp < worker->warps && !worker->stopped; warp++) {
        const fa_emu_products *all = pending->products[warp], *first = pending->products[warp & ~3u];
        const uint32_t issued = all != NULL ? all->issued : 0, of_first = first != NULL ? first->issued : 0;
        for (int t = 0; all != NULL && t < FA_EMU_TILES_MAX && !worker->stopped; t++)
            if (all->tiles[t].used) {
                fa_emu_report(worker, FA_EMU_WGMMA_LEFT, &worker->fibres[warp * FA_EMU_WARP], all->tiles[t].file,
                              all->tiles[t].line, "a product was issued, never waited for, and the thread exits");
                worker->stopped = true;
            }
        if (issued != of_first && !worker->stopped) {
            fa_emu_report(worker, FA_EMU_WGMMA, &worker->fibres[warp * FA_EMU_WARP], NULL, 0,
                          "warp %u issued %u products, warp %u of the same warpgroup %u", warp, issued, warp & ~3u,
                          of_first);
            worker->stopped = true;
        }
    }
}
