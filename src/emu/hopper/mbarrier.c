#include "emu/hopper/mbarrier.h"

#include <string.h>

#include "base/status.h"
#include "emu/core/report.h"
#include "emu/core/window.h"
#include "emu/ptx/cp_async.h"
#include "emu/ptx/memory.h"
#include "emu/race/async.h"

enum { COUNT_MAX = (1 << 20) - 1 };
static const uint64_t MARK = 0x6d6261727269657au; /* content of a live object's bytes */

static fa_emu_mbarrier *find(const fa_emu_pending *pending, const unsigned char *at)
{
    for (uint32_t i = 0; i < pending->barrier_count; i++)
        if (pending->barriers[i]->at == at)
            return pending->barriers[i];
    return NULL;
}

static fa_emu_mbarrier *add(fa_emu_pending *pending, unsigned char *at)
{
    pending->barriers =
        fa_grow(pending->barriers, pending->barrier_count, &pending->barrier_capacity, 16, sizeof *pending->barriers);
    const uint64_t address = (uint64_t)(uintptr_t)at;
    if (pending->barrier_count == 0 || address < pending->barrier_low)
        pending->barrier_low = address;
    if (pending->barrier_count == 0 || address + FA_EMU_MBARRIER_BYTES > pending->barrier_high)
        pending->barrier_high = address + FA_EMU_MBARRIER_BYTES;
    return pending->barriers[pending->barrier_count++] = fa_alloc(sizeof(fa_emu_mbarrier));
}

/* mbarrier instructions do not count as accesses to the object's bytes. */
static unsigned char *object_place(const fa_emu_ptx_run *run, int arg, fa_emu_worker **owner)
{
    unsigned char *at = fa_emu_ptx_cluster_place(run, arg, owner);
    if ((uintptr_t)at % FA_EMU_MBARRIER_BYTES != 0)
        fa_emu_ptx_fail(run, FA_EMU_MISALIGNED, "the barrier is not 8-byte aligned");
    if (!fa_emu_is_shared(at, (*owner)->smem, (*owner)->launch->grid->smem_bytes, (*owner)->launch->image->build))
        fa_emu_ptx_fail(run, FA_EMU_FAULT, "the barrier lies outside of the block's shared memory");
    return at;
}

fa_emu_mbarrier *fa_emu_mbarrier_at(const fa_emu_ptx_run *run, fa_emu_worker *owner, unsigned char *at)
{
    fa_emu_mbarrier *barrier = find(fa_emu_pending_of(owner), at);
    uint64_t mark;
    memcpy(&mark, fa_emu_window_now(owner, at), sizeof mark);
    if (barrier == NULL || !barrier->alive)
        fa_emu_ptx_fail(run, FA_EMU_BAD_MBARRIER, "there is no barrier: it was not initialised%s",
                        barrier != NULL ? " since it was invalidated" : "");
    if (mark != (MARK ^ (uintptr_t)at))
        fa_emu_ptx_fail(run, FA_EMU_BAD_MBARRIER, "the barrier's bytes were written by an ordinary store");
    if (fa_emu_self->race != NULL)
        fa_race_phase_used(barrier->race, run->pc);
    return barrier;
}

fa_emu_mbarrier *fa_emu_mbarrier_named(const fa_emu_ptx_run *run, int arg)
{
    fa_emu_worker *owner;
    unsigned char *at = object_place(run, arg, &owner);
    return fa_emu_mbarrier_at(run, owner, at);
}

static void init(const fa_emu_ptx_run *run)
{
    fa_emu_worker *owner;
    fa_emu_pending *pending = fa_emu_pending_now();
    unsigned char *at = object_place(run, 0, &owner);
    const uint64_t count = fa_ptx_in(run->instr, 1, run->r) & 0xffffffffu, mark = MARK ^ (uintptr_t)at;
    fa_emu_mbarrier *barrier = find(pending, at);
    if (barrier != NULL && barrier->alive)
        fa_emu_ptx_fail(run, FA_EMU_BAD_MBARRIER, "there is a live barrier already, of line %d: mbarrier.inval ends it",
                        barrier->line);
    if (count < 1 || count > COUNT_MAX)
        fa_emu_ptx_fail(run, FA_EMU_BAD_MBARRIER, "the count is %llu, not 1 to %d", (unsigned long long)count,
                        COUNT_MAX);
    fa_emu_ptx_access(run, 0, FA_EMU_MBARRIER_BYTES, FA_EMU_MBARRIER_BYTES, true);
    if (barrier == NULL)
        barrier = add(pending, at);
    struct fa_race_phase *race = barrier->race;
    *barrier = (fa_emu_mbarrier){.at = at,
                                 .owner = owner,
                                 .alive = true,
                                 .expected = (uint32_t)count,
                                 .pending = (uint32_t)count,
                                 .file = run->at->file,
                                 .line = run->at->line,
                                 .race = race};
    memcpy(at, &mark, sizeof mark);
    if (fa_emu_self->race != NULL)
        fa_race_phase_init(&barrier->race, run->pc);
}

static void inval(const fa_emu_ptx_run *run)
{
    fa_emu_mbarrier *barrier = fa_emu_mbarrier_named(run, 0);
    barrier->alive = false;
    memset(barrier->at, 0xff, FA_EMU_MBARRIER_BYTES);
    fa_emu_ptx_access(run, 0, FA_EMU_MBARRIER_BYTES, FA_EMU_MBARRIER_BYTES, true);
}

/* Rule of completion: no arrival pending, no byte expected. */
static void settle(fa_emu_mbarrier *barrier)
{
    fa_emu_worker *worker = barrier->owner;
    if (barrier->pending > 0 || barrier->tx != 0)
        return;
    for (uint32_t i = 0; i < worker->pending->bulk_count; i++) {
        const fa_emu_bulk *bulk = &worker->pending->bulks[i];
        if (bulk->barrier != barrier)
            continue;
        fa_emu_report(bulk->issuer, FA_EMU_TX_COUNT, &bulk->issuer->fibres[bulk->thread], bulk->file, bulk->line,
                      "%.100s: still under way, and phase %llu of its barrier (line %d) is complete: fewer bytes were "
                      "expected than arrive",
                      bulk->name, (unsigned long long)barrier->phase, barrier->line);
        fa_emu_self->stopped = worker->stopped = true;
    }
    barrier->phase++;
    barrier->pending = barrier->expected;
    worker->cluster->idle = 0;
    if (worker->race != NULL)
        fa_race_phase_complete(barrier->race);
    fa_emu_wake(worker, barrier->waiting);
}

static void check_tx(const fa_emu_ptx_run *run, const fa_emu_mbarrier *barrier)
{
    if (barrier->tx > COUNT_MAX || barrier->tx < -COUNT_MAX)
        fa_emu_ptx_fail(run, FA_EMU_TX_COUNT, "the barrier's tx-count leaves its range: %lld", (long long)barrier->tx);
}

void fa_emu_mbarrier_bytes_came(fa_emu_mbarrier *barrier, uint32_t bytes)
{
    barrier->tx -= bytes;
    settle(barrier);
}

/* Without a scope an arrival at another block's barrier has cluster scope. */
static fa_race_arrival arrival_of(const fa_ptx_instr *i)
{
    return fa_ptx_has(i, FA_PTX_W_RELAXED) ? FA_RACE_ARRIVES_RELAXED
           : fa_ptx_has(i, FA_PTX_W_CTA)   ? FA_RACE_ARRIVES_IN_BLOCK
                                           : FA_RACE_ARRIVES;
}

static void check_arrival(const fa_emu_ptx_run *run, const fa_emu_mbarrier *barrier, uint32_t count)
{
    if (count > barrier->pending)
        fa_emu_ptx_fail(run, FA_EMU_PHASE_OVERRUN,
                        "%u arrive, but phase %llu of the barrier of line %d has %u arrivals pending (of %u) and %lld "
                        "bytes to come",
                        count, (unsigned long long)barrier->phase, barrier->line, barrier->pending, barrier->expected,
                        (long long)barrier->tx);
    if (fa_emu_self->race != NULL && !fa_race_phase_arrive(barrier->race, arrival_of(run->instr)))
        fa_emu_ptx_fail(run, FA_EMU_PHASE_OVERRUN,
                        "the thread arrives in phase %llu of the barrier of line %d without knowing that the phase "
                        "before has ended",
                        (unsigned long long)barrier->phase, barrier->line);
}

static void arrive(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    fa_emu_mbarrier *barrier = fa_emu_mbarrier_named(run, 1);
    const bool expects = fa_ptx_has(i, FA_PTX_W_EXPECT_TX), drop = fa_ptx_has(i, FA_PTX_W_ARRIVE_DROP);
    const uint32_t more = i->args > 2 ? (uint32_t)fa_ptx_in(i, 2, run->r) : 1, count = expects ? 1 : more;
    if (count < 1)
        fa_emu_ptx_fail(run, FA_EMU_BAD_MBARRIER, "the count is 0");
    if (expects)
        barrier->tx += more;
    check_tx(run, barrier);
    check_arrival(run, barrier, count);
    if (fa_ptx_has(i, FA_PTX_W_NO_COMPLETE) && count == barrier->pending && barrier->tx == 0)
        fa_emu_ptx_fail(run, FA_EMU_BAD_MBARRIER, ".noComplete, but this arrival completes the phase");
    fa_ptx_out(i, run->r, barrier->phase << 20 | barrier->pending);
    barrier->pending -= count;
    barrier->expected -= drop ? count : 0;
    settle(barrier);
}

/* Without .noinc the phase expects this arrival in addition. */
void fa_emu_mbarrier_copies_arrive(const fa_emu_ptx_run *run)
{
    fa_emu_mbarrier *barrier = fa_emu_mbarrier_named(run, 0);
    const uint32_t count = fa_ptx_has(run->instr, FA_PTX_W_NOINC);
    fa_emu_cp_async_wait(0, 1);
    check_arrival(run, barrier, count);
    barrier->pending -= count;
    settle(barrier);
}

static void change_tx(const fa_emu_ptx_run *run)
{
    fa_emu_mbarrier *barrier = fa_emu_mbarrier_named(run, 0);
    const uint32_t bytes = (uint32_t)fa_ptx_in(run->instr, 1, run->r);
    const bool came = fa_ptx_has(run->instr, FA_PTX_W_COMPLETE_TX);
    barrier->tx += came ? -(int64_t)bytes : (int64_t)bytes;
    check_tx(run, barrier);
    if (came)
        settle(barrier);
}

static bool fails_spuriously(fa_emu_worker *worker, const fa_emu_patience *patience)
{
    switch (worker->launch->grid->schedule) {
    case FA_SCHEDULE_RANDOM:
        return fa_emu_draw(worker, 4) == 0;
    case FA_SCHEDULE_DESCENDING:
        return !patience->tried;
    default:
        return false;
    }
}

/* The barrier must not complete a second phase while a thread waits for the first: the parity would hide it. */
static void check_overrun(const fa_emu_ptx_run *run, const fa_emu_patience *patience, const fa_emu_mbarrier *barrier,
                          bool parity)
{
    if (patience->barrier == barrier && patience->operand == parity && barrier->phase > patience->phase + 1)
        fa_emu_ptx_fail(run, FA_EMU_PHASE_OVERRUN,
                        "while this thread waited for phase %llu of the barrier of line %d, phase %llu ended, too",
                        (unsigned long long)patience->phase, barrier->line, (unsigned long long)barrier->phase - 1);
}

static void suspend(const fa_emu_ptx_run *run, fa_emu_mbarrier *barrier)
{
    const fa_emu_thread *t = &fa_emu_self->current->thread;
    fa_emu_op op = fa_emu_ptx_op(run, FA_EMU_PHASE, run->instr->text);
    op.a = barrier;
    barrier->waiting[t->warp] |= 1u << t->lane;
    fa_emu_ptx_wait(&op);
}

static bool passed(const fa_emu_mbarrier *barrier, bool by_parity, uint64_t which)
{
    return by_parity ? (barrier->phase & 1) != which : barrier->phase > which;
}

/* p, [barrier], state or parity */
static void wait(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    fa_emu_worker *worker = fa_emu_self;
    fa_emu_mbarrier *barrier = fa_emu_mbarrier_named(run, 1);
    fa_emu_patience *patience = &fa_emu_pending_now()->patience[worker->current - worker->fibres];
    const bool parity = fa_ptx_has(i, FA_PTX_W_PARITY), may_wait = fa_ptx_has(i, FA_PTX_W_TRY_WAIT);
    const uint64_t operand = fa_ptx_in(i, 2, run->r), which = parity ? operand & 1 : operand >> 20;
    if (parity && operand > 1)
        fa_emu_ptx_fail(run, FA_EMU_BAD_MBARRIER, "the parity is %llu", (unsigned long long)operand);
    if (parity)
        check_overrun(run, patience, barrier, which);
    bool done = passed(barrier, parity, which);
    if (!done) {
        if (patience->barrier != barrier || patience->operand != which)
            *patience = (fa_emu_patience){barrier, parity ? barrier->phase : which, which, false};
        if (may_wait && !fails_spuriously(worker, patience))
            suspend(run, barrier);
        else
            fa_emu_ptx_meet(run, FA_EMU_YIELD, run->instr->text);
        patience->tried = true;
        if (parity)
            check_overrun(run, patience, barrier, which);
        done = may_wait && barrier->alive && passed(barrier, parity, which);
    }
    if (done)
        patience->barrier = NULL;
    if (done && worker->race != NULL && !fa_ptx_has(i, FA_PTX_W_RELAXED))
        fa_race_phase_observed(barrier->race);
    fa_ptx_out(i, run->r, done);
}

void fa_emu_ptx_mbarrier(fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    if (fa_ptx_has(i, FA_PTX_W_INIT))
        init(run);
    else if (fa_ptx_has(i, FA_PTX_W_INVAL))
        inval(run);
    else if (fa_ptx_has(i, FA_PTX_W_TEST_WAIT) || fa_ptx_has(i, FA_PTX_W_TRY_WAIT))
        wait(run);
    else if (fa_ptx_has(i, FA_PTX_W_PENDING_COUNT))
        fa_ptx_out(i, run->r, fa_ptx_in(i, 1, run->r) & COUNT_MAX);
    else if (fa_ptx_has(i, FA_PTX_W_ARRIVE) || fa_ptx_has(i, FA_PTX_W_ARRIVE_DROP))
        arrive(run);
    else
        change_tx(run);
}
