#include "emu/hopper/registers.h"

#include "base/status.h"
#include "emu/race/found.h"
#include "emu/race/thread.h"

enum { TOUCHES = 512, TAKEN = 2 * FA_EMU_PRODUCTS_MAX, WORD = 4 };

/* An access of the thread to its stack since its last wgmma.fence. */
typedef struct touch {
    uint64_t address;
    uint32_t size, place, stack;
    bool write;
} touch;

/* Registers of a pending product: from `low` to `high` - 1. */
typedef struct range {
    uint64_t low, high;
    bool written; /* an accumulator, not A */
    uint32_t end; /* number of the last product that uses them, plus 1 */
    uint32_t place, stack;
} range;

struct fa_emu_registers {
    touch touches[TOUCHES]; /* a ring */
    uint32_t touch_count, taken_count;
    range taken[TAKEN];
    uint64_t low, high; /* range of all of them */
};

static fa_emu_registers *registers_of(uint32_t thread)
{
    fa_emu_registers **all = &fa_emu_pending_now()->registers_of_thread[thread];
    if (*all == NULL)
        *all = fa_alloc(sizeof **all);
    return *all;
}

static fa_race_access access_of(const fa_emu_worker *worker, uint32_t thread, uint32_t place, uint32_t stack,
                                bool write)
{
    return (fa_race_access){.block = worker->block_number,
                            .place = place,
                            .stack = stack,
                            .thread = (uint16_t)thread,
                            .kind = write ? FA_RACE_WRITE : 0};
}

static void touched_while_pending(fa_emu_worker *worker, const fa_emu_registers *all, const touch *t)
{
    const uint32_t thread = fa_race_index(worker);
    for (uint32_t i = 0; i < all->taken_count; i++) {
        const range *r = &all->taken[i];
        if (t->address >= r->high || t->address + t->size <= r->low || (!r->written && !t->write))
            continue;
        const fa_race_access now = access_of(worker, thread, t->place, t->stack, t->write);
        const fa_race_access before = access_of(worker, thread, r->place, r->stack, r->written);
        fa_race_found(worker, "register of a product under way", "no wgmma.wait_group since:", &now, &before);
    }
}

void fa_emu_registers_touched(fa_emu_worker *worker, uint64_t address, size_t size, bool write, const void *pc)
{
    const uint32_t thread = fa_race_index(worker);
    fa_emu_registers *all = worker->pending->registers_of_thread[thread];
    if (all == NULL)
        all = registers_of(thread);
    const touch t = {address, (uint32_t)size, fa_race_place_of(fa_race_of(worker), pc),
                     worker->race->thread[thread].stack, write};
    if (address < all->high && address + size > all->low)
        touched_while_pending(worker, all, &t);
    all->touches[all->touch_count++ % TOUCHES] = t;
}

static bool names(const fa_ptx_program *program, int number)
{
    for (const fa_ptx_instr *i = program->instr; i < program->instr + program->count; i++)
        for (int arg = 0; arg < i->args; arg++)
            for (int k = i->arg[arg].first; k < i->arg[arg].first + i->arg[arg].count; k++)
                if (i->value[k].kind == FA_PTX_REG && i->value[k].reg == number)
                    return true;
    return false;
}

void fa_emu_race_operand(const fa_emu_ptx_site *site, int number, void *to, unsigned long size, void *pc)
{
    fa_emu_worker *worker = fa_emu_self;
    if (worker->race != NULL && worker->pending != NULL && names(site->program, number))
        fa_emu_registers_touched(worker, (uint64_t)(uintptr_t)to, size, true, pc);
}

void fa_emu_registers_fenced(void)
{
    fa_emu_registers *all = fa_emu_self->pending->registers_of_thread[fa_race_index(fa_emu_self)];
    if (all != NULL)
        all->touch_count = 0;
}

/* The places of a product's operand `arg` in one lane. */
static uint64_t place_of(const fa_emu_ptx_run *run, const fa_ptx_instr *i, int arg, int k)
{
    const fa_ptx_value *v = &i->value[i->arg[arg].first + k];
    const bool site = v->kind == FA_PTX_REG && v->reg < run->operands && run->places != NULL;
    return site ? (uint64_t)(uintptr_t)run->places[v->reg] : 0;
}

/* A product may reuse accumulators of its own chain without a fence. */
static bool is_taken(const fa_emu_registers *all, uint64_t address)
{
    for (uint32_t i = 0; i < all->taken_count; i++)
        if (all->taken[i].written && address >= all->taken[i].low && address < all->taken[i].high)
            return true;
    return false;
}

static const touch *touch_of(const fa_emu_registers *all, uint64_t address, bool writes_only)
{
    const uint32_t count = all->touch_count < TOUCHES ? all->touch_count : TOUCHES;
    for (uint32_t i = 0; i < count; i++) {
        const touch *t = &all->touches[i];
        if (address < t->address + t->size && t->address < address + WORD && (t->write || !writes_only))
            return t;
    }
    return NULL;
}

bool fa_emu_registers_ready(fa_emu_worker *worker, uint32_t warp, const fa_emu_ptx_run *const lane[FA_EMU_WARP],
                            const fa_ptx_instr *product)
{
    for (uint32_t l = 0; l < FA_EMU_WARP; l++) {
        const uint32_t thread = warp * FA_EMU_WARP + l;
        const fa_emu_registers *all = registers_of(thread);
        for (int arg = 0; arg < 2 && all->touch_count > 0; arg++)
            for (int k = 0; product->arg[arg].shape == FA_PTX_VECTOR && k < product->arg[arg].count; k++) {
                const uint64_t place = place_of(lane[l], product, arg, k);
                const touch *t = place == 0 || is_taken(all, place) ? NULL : touch_of(all, place, arg == 1);
                if (t == NULL)
                    continue;
                const fa_race_access now = access_of(worker, thread, fa_race_place_of(fa_race_of(worker), lane[l]->pc),
                                                     worker->race->thread[thread].stack, arg == 0);
                const fa_race_access before = access_of(worker, thread, t->place, t->stack, t->write);
                fa_race_found(worker, "missing wgmma.fence", "no wgmma.fence since:", &now, &before);
            }
    }
    return true;
}

static void take(fa_emu_registers *all, const range *r)
{
    for (uint32_t i = 0; i < all->taken_count; i++) {
        range *old = &all->taken[i];
        if (old->low == r->low && old->high == r->high && old->written == r->written) {
            old->end = r->end;
            return;
        }
    }
    if (all->taken_count == TAKEN)
        return;
    if (all->taken_count == 0 || r->low < all->low)
        all->low = r->low;
    if (all->taken_count == 0 || r->high > all->high)
        all->high = r->high;
    all->taken[all->taken_count++] = *r;
}

void fa_emu_registers_taken(fa_emu_worker *worker, uint32_t warp, const fa_emu_ptx_run *const lane[FA_EMU_WARP],
                            const fa_ptx_instr *product, uint32_t number)
{
    for (uint32_t l = 0; l < FA_EMU_WARP; l++) {
        const uint32_t thread = warp * FA_EMU_WARP + l;
        fa_emu_registers *all = registers_of(thread);
        for (int arg = 0; arg < 2; arg++)
            for (int k = 0; product->arg[arg].shape == FA_PTX_VECTOR && k < product->arg[arg].count;) {
                const uint64_t first = place_of(lane[l], product, arg, k);
                int count = 1;
                while (k + count < product->arg[arg].count &&
                       place_of(lane[l], product, arg, k + count) == first + (uint64_t)count * WORD)
                    count++;
                const range r = {first,
                                 first + (uint64_t)count * WORD,
                                 arg == 0,
                                 number + 1,
                                 fa_race_place_of(fa_race_of(worker), lane[l]->pc),
                                 worker->race->thread[thread].stack};
                if (first != 0)
                    take(all, &r);
                k += count;
            }
    }
}

void fa_emu_registers_released(uint32_t warp, uint32_t end)
{
    for (uint32_t l = 0; l < FA_EMU_WARP; l++) {
        fa_emu_registers *all = registers_of(warp * FA_EMU_WARP + l);
        uint32_t kept = 0;
        for (uint32_t i = 0; i < all->taken_count; i++)
            if ((int32_t)(end - all->taken[i].end) < 0)
                all->taken[kept++] = all->taken[i];
        all->taken_count = kept;
        if (kept == 0)
            all->low = all->high = 0;
    }
}
