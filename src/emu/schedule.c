/* The scheduler of a block. The schedule picks a ready thread. When none is ready, it completes the operations that all
 * their lanes have reached. When there is none of those either, the remaining threads wait for ever: a divergence or a
 * deadlock, which is reported. */
#include "emu/schedule.h"

#include <string.h>

#include "base/random.h"
#include "emu/core/calls.h"
#include "emu/core/fibre.h"
#include "emu/core/report.h"
#include "emu/core/preload.h"
#include "emu/core/window.h"
#include "emu/hopper/progress.h"
#include "emu/hopper/wgmma.h"
#include "emu/ptx/group.h"
#include "emu/ptx/cp_async.h"
#include "emu/ptx_run.h"
#include "emu/race/cluster.h"
#include "emu/race/detector.h"
#include "emu/race/memory.h"
#include "emu/warp.h"

/* Lanes of `todo` that wait in the same operation as its lowest lane. */
static uint32_t group_of(const fa_emu_worker *worker, uint32_t warp, uint32_t todo)
{
    const fa_emu_fibre *fibres = worker->fibres + warp * FA_EMU_WARP;
    const fa_emu_op *first = fibres[__builtin_ctz(todo)].op;
    const bool same_place = first->kind >= FA_EMU_FIRST_ALIGNED || first->kind == FA_EMU_ACTIVEMASK;
    uint32_t group = 0;
    for (uint32_t rest = todo; rest; rest &= rest - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(rest);
        const fa_emu_op *op = fibres[lane].op;
        if (op->kind == first->kind && op->mask == first->mask && op->mode == first->mode &&
            op->arg * same_place == first->arg * same_place &&
            (!same_place || (op->line == first->line && !strcmp(op->file, first->file))))
            group |= 1u << lane;
    }
    return group;
}

static bool complete(const fa_emu_worker *worker, uint32_t warp, uint32_t group)
{
    const fa_emu_op *op = worker->fibres[warp * FA_EMU_WARP + (uint32_t)__builtin_ctz(group)].op;
    if (op->kind == FA_EMU_ACTIVEMASK || op->kind == FA_EMU_YIELD)
        return true;
    const uint32_t need = op->kind >= FA_EMU_FIRST_ALIGNED ? ~0u : op->mask & worker->warp[warp].alive;
    return (group & need) == need && fa_emu_wgmma_can_go_on(worker, warp, op);
}

/* Completes the operations of a warp that all their lanes have reached; pollers: also threads that only let others run.
 * Returns whether there was one. */
static bool release_warp(fa_emu_worker *worker, uint32_t warp, bool pollers)
{
    fa_emu_warp_state *state = &worker->warp[warp];
    bool released = false;
    for (uint32_t todo = state->waiting_warp; todo && !worker->stopped;) {
        const uint32_t group = group_of(worker, warp, todo);
        todo &= ~group;
        const int32_t kind = worker->fibres[warp * FA_EMU_WARP + (uint32_t)__builtin_ctz(group)].op->kind;
        if (!complete(worker, warp, group) || (kind == FA_EMU_YIELD && !pollers))
            continue;
        if (kind != FA_EMU_YIELD)
            worker->cluster->idle = worker->idle_rounds = 0;
        if (!fa_emu_compute(worker, warp, group))
            worker->stopped = true;
        if (worker->race && kind == FA_EMU_SYNCWARP)
            fa_race_warp_syncs(worker, warp, group);
        state->waiting_warp &= ~group;
        fa_emu_make_ready(worker, warp, group);
        released = true;
    }
    return released;
}

static void barrier_result(fa_emu_worker *worker, int32_t id)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < worker->threads; i++) {
        const fa_emu_op *op = worker->fibres[i].op;
        if (op && op->kind == FA_EMU_BARRIER && op->arg == id)
            count += op->value != 0;
    }
    for (uint32_t i = 0; i < worker->threads; i++) {
        fa_emu_op *op = worker->fibres[i].op;
        if (op && op->kind == FA_EMU_BARRIER && op->arg == id)
            op->result = op->mode == FA_EMU_BAR_COUNT ? count
                         : op->mode == FA_EMU_BAR_AND ? count == worker->barrier[id].waiting
                                                      : count != 0;
    }
}

/* bar.sync is .aligned: the lanes of a warp that live must wait at one line, and none of them elsewhere. */
static bool barrier_aligned(fa_emu_worker *worker, uint32_t warp, uint32_t lanes)
{
    const fa_emu_fibre *fibres = worker->fibres + warp * FA_EMU_WARP;
    const fa_emu_op *first = fibres[__builtin_ctz(lanes)].op;
    bool aligned = lanes == worker->warp[warp].alive;
    for (uint32_t rest = lanes; rest && aligned; rest &= rest - 1) {
        const fa_emu_op *op = fibres[__builtin_ctz(rest)].op;
        aligned = op->line == first->line && !strcmp(op->file, first->file);
    }
    return aligned;
}

static bool release_barrier(fa_emu_worker *worker, int32_t id)
{
    fa_emu_barrier *barrier = &worker->barrier[id];
    if (!barrier->waiting || barrier->arrived < (barrier->threads ? barrier->threads : worker->alive))
        return false;
    barrier_result(worker, id);
    worker->cluster->idle = worker->idle_rounds = 0;
    if (worker->race)
        fa_race_barrier_release(worker, id);
    for (uint32_t warp = 0; warp < worker->warps; warp++) {
        fa_emu_warp_state *state = &worker->warp[warp];
        uint32_t lanes = 0;
        for (uint32_t rest = state->waiting_block; rest; rest &= rest - 1) {
            const uint32_t lane = (uint32_t)__builtin_ctz(rest);
            lanes |= (uint32_t)(worker->fibres[warp * FA_EMU_WARP + lane].op->arg == id) << lane;
        }
        if (!lanes)
            continue;
        if (!barrier_aligned(worker, warp, lanes)) {
            fa_emu_report_stuck(worker);
            worker->stopped = true;
            return false;
        }
        state->waiting_block &= ~lanes;
        fa_emu_make_ready(worker, warp, lanes);
    }
    *barrier = (fa_emu_barrier){0};
    return true;
}

/* The random schedule holds half of the warps back, so that warps drift apart. */
static bool release(fa_emu_worker *worker)
{
    bool released = false;
    worker->idle_rounds++;
    if (worker->launch->grid->schedule == FA_SCHEDULE_RANDOM) {
        const uint64_t held = fa_random_next(&worker->random);
        for (uint32_t warp = 0; warp < worker->warps; warp++)
            if (!(held >> warp & 1))
                released |= release_warp(worker, warp, true);
        if (released)
            return true;
    }
    for (uint32_t warp = 0; warp < worker->warps; warp++)
        released |= release_warp(worker, warp, true);
    for (int32_t id = 0; id < FA_EMU_BARRIERS && !worker->stopped; id++)
        released |= release_barrier(worker, id);
    return released;
}

static fa_emu_fibre *pick(fa_emu_worker *worker)
{
    uint32_t warp = (uint32_t)__builtin_ctz(worker->ready_warps), lane = 0;
    switch (worker->launch->grid->schedule) {
    case FA_SCHEDULE_RANDOM:
        warp = fa_random_bit(&worker->random, worker->ready_warps);
        lane = fa_random_bit(&worker->random, worker->warp[warp].ready);
        break;
    case FA_SCHEDULE_DESCENDING:
        warp = 31u - (uint32_t)__builtin_clz(worker->ready_warps);
        lane = 31u - (uint32_t)__builtin_clz(worker->warp[warp].ready);
        break;
    case FA_SCHEDULE_GREEDY:
        if (worker->ready_warps >> worker->greedy_warp & 1)
            warp = (uint32_t)worker->greedy_warp;
        worker->greedy_warp = (int32_t)warp;
        /* fallthrough */
    default:
        lane = (uint32_t)__builtin_ctz(worker->warp[warp].ready);
    }
    fa_emu_warp_state *state = &worker->warp[warp];
    state->ready &= ~(1u << lane);
    if (!state->ready)
        worker->ready_warps &= ~(1u << warp);
    return &worker->fibres[warp * FA_EMU_WARP + lane];
}

/* Lets another block of the cluster run: before anything is released, or because nothing can be. */
static bool leaves(fa_emu_worker *worker)
{
    return worker->cluster->count > 1 && !worker->forced && worker->rounds-- == 0;
}

/* No thread can run. True: a pending copy was completed for that. */
static bool force(fa_emu_worker *worker)
{
    const bool alone = worker->cluster->count == 1;
    if ((alone || worker->forced) && fa_emu_pending_force(worker)) {
        worker->forced = false;
        return true;
    }
    worker->stuck = !alone;
    if (alone)
        fa_emu_report_stuck(worker);
    worker->stopped |= alone;
    return false;
}

static atomic_bool interrupted;

void fa_emu_interrupt(void) { atomic_store(&interrupted, true); }

/* The next thread to run; NULL: the block is over, has failed, or another block runs now. */
static fa_emu_fibre *next(fa_emu_worker *worker)
{
    if (atomic_load_explicit(&interrupted, memory_order_relaxed) && !worker->stopped) {
        fa_emu_report_timeout(worker);
        worker->stopped = true;
        return NULL;
    }
    const bool greedy = worker->launch->grid->schedule == FA_SCHEDULE_GREEDY;
    worker->waits++;
    if (greedy && !worker->warp[worker->greedy_warp].ready)
        release_warp(worker, (uint32_t)worker->greedy_warp, false);
    if (worker->pending != NULL)
        fa_emu_pending_turn(worker);
    while (!worker->ready_warps && worker->alive && !worker->stopped) {
        if (leaves(worker))
            return NULL;
        if (fa_emu_pending_polled(worker) ||
            (!worker->ready_warps && !release(worker) && !worker->stopped && !force(worker)))
            return NULL;
    }
    return worker->stopped || !worker->alive ? NULL : pick(worker);
}

static void join_barrier(fa_emu_worker *worker, const fa_emu_op *op, bool waits)
{
    if (op->arg < 0 || op->arg >= FA_EMU_BARRIERS || op->width < 0 || op->width % FA_EMU_WARP)
        fa_emu_fail(FA_EMU_BAD_BARRIER, "id must be 0 to 15 and the number of threads a multiple of 32", op->file,
                    op->line);
    fa_emu_barrier *barrier = &worker->barrier[op->arg];
    if (barrier->arrived && barrier->threads != (uint32_t)op->width)
        fa_emu_fail(FA_EMU_BAD_BARRIER, "threads reach one barrier with different counts", op->file, op->line);
    if (worker->race) {
        fa_race_settle(worker);
        fa_race_barrier_arrive(worker, op->arg);
    }
    barrier->threads = (uint32_t)op->width;
    barrier->arrived++;
    barrier->waiting += waits;
    if (barrier->threads && barrier->arrived > barrier->threads)
        fa_emu_fail(FA_EMU_BAD_BARRIER, "more threads arrived than the barrier counts", op->file, op->line);
}

static void arrive(fa_emu_op *op) { join_barrier(fa_emu_self, op, false); }

/* Of the running thread; does not return. */
static void end_thread(fa_emu_worker *worker)
{
    const fa_emu_fibre *self = worker->current;
    fa_emu_cp_async_leave();
    if (worker->pending != NULL)
        fa_emu_pending_thread_ends(worker);
    if (worker->race) {
        fa_race_settle(worker);
        fa_race_thread_ends(worker);
    }
    worker->alive--;
    worker->warp[self->thread.warp].alive &= ~(1u << self->thread.lane);
    fa_emu_cluster_barrier_thread_ends(worker, self);
    fa_emu_switch(worker, next(worker), true);
    __builtin_unreachable();
}

static void wait_for(fa_emu_op *op)
{
    fa_emu_worker *worker = fa_emu_self;
    fa_emu_fibre *self = worker->current;
    fa_emu_warp_state *warp = &worker->warp[self->thread.warp];
    const uint32_t bit = 1u << self->thread.lane;
    if (op->kind == FA_EMU_EXIT)
        end_thread(worker);
    self->op = op;
    if (worker->race)
        fa_race_settle(worker);
    if (op->kind == FA_EMU_BARRIER) {
        join_barrier(worker, op, true);
        warp->waiting_block |= bit;
    } else if (op->kind == FA_EMU_PHASE) {
        warp->suspended |= bit;
    } else {
        if (!(op->mask & bit))
            fa_emu_fail(FA_EMU_BAD_MASK, "the mask does not name the calling lane", op->file, op->line);
        warp->waiting_warp |= bit;
    }
    fa_emu_fibre *to = next(worker);
    if (to != self) {
        fa_emu_switch(worker, to, false);
        fa_emu_calls_answer(worker);
    }
    self->op = NULL;
    if (op->kind == FA_EMU_YIELD)
        fa_emu_pause_idle_block(worker);
}

/* The first function on a fibre's stack. */
static void thread_main(void)
{
    fa_emu_worker *worker = fa_emu_self;
    if (fa_emu_san.finish_switch)
        fa_emu_san.finish_switch(NULL, NULL, NULL);
    worker->launch->image->call(worker->launch->params);
    end_thread(worker);
}

static const fa_emu_api api = {
    .wait = wait_for,
    .arrive = arrive,
    .cp_async = fa_emu_cp_async,
    .cp_async_commit = fa_emu_cp_async_commit,
    .cp_async_wait = fa_emu_cp_async_wait,
    .fail = fa_emu_fail,
    .ptx = fa_emu_ptx,
    .map_rank = fa_emu_window_map,
    .rank_of = fa_emu_window_rank,
    .cluster_address = fa_emu_window_address,
};

static void identify(fa_emu_worker *worker, uint32_t i)
{
    const fa_emu_launch *launch = worker->launch;
    const fa_emu_uint3 dim = launch->grid->block;
    fa_emu_thread *thread = &worker->fibres[i].thread;
    *thread = (fa_emu_thread){
        .thread = {i % dim.x, i / dim.x % dim.y, i / (dim.x * dim.y)},
        .block = worker->block,
        .block_dim = dim,
        .grid_dim = launch->grid->grid,
        .smem = worker->smem,
        .smem_bytes = launch->grid->smem_bytes,
        .lane = i % FA_EMU_WARP,
        .warp = i / FA_EMU_WARP,
        .cluster_rank = worker->rank,
        .cluster_size = worker->cluster->count,
        .api = &api,
    };
    for (int type = 0; type < FA_EMU_FRAG_TYPES; type++)
        thread->wmma_map[type] = launch->wmma_map[type];
}

/* From the worker's own stack, until the block is over, paused, stuck, or another block runs. */
static void go_on(fa_emu_worker *worker, fa_emu_fibre *fibre)
{
    if (fibre != NULL) {
        worker->begun = true;
        fa_emu_switch(worker, fibre, false);
    }
    worker->over = !worker->stopped && !worker->paused && worker->alive == 0;
    if (worker->over && worker->pending != NULL)
        fa_emu_pending_block_ends(worker);
    if (worker->over && worker->race != NULL && worker->cluster->count > 1 && !worker->stopped)
        fa_race_block_ends(worker);
    for (uint32_t i = 0; (worker->stopped || worker->over) && i < worker->threads; i++)
        fa_emu_async_drop(&worker->fibres[i].async);
}

void fa_emu_begin_block(fa_emu_worker *worker, uint64_t index)
{
    const fa_emu_launch *launch = worker->launch;
    const fa_emu_uint3 grid = launch->grid->grid;
    worker->block = (fa_emu_uint3){(unsigned)(index % grid.x), (unsigned)(index / grid.x % grid.y),
                                   (unsigned)(index / ((uint64_t)grid.x * grid.y))};
    worker->block_number = (uint32_t)index;
    worker->threads = worker->alive = launch->threads;
    worker->warps = (launch->threads + FA_EMU_WARP - 1) / FA_EMU_WARP;
    worker->ready_warps = worker->idle_rounds = 0;
    worker->greedy_warp = 0;
    worker->stopped = worker->over = worker->begun = worker->stuck = worker->forced = false;
    worker->random = launch->grid->order_seed * 0x2545f4914f6cdd1du + index;
    memset(worker->warp, 0, sizeof worker->warp);
    memset(worker->barrier, 0, sizeof worker->barrier);
    memset(worker->waiting_cluster, 0, sizeof worker->waiting_cluster);
    fa_emu_pending_reset(worker);
    for (uint32_t i = 0; i < launch->threads; i++) {
        identify(worker, i);
        fa_emu_fibre_reset(&worker->fibres[i], thread_main);
        worker->warp[i / FA_EMU_WARP].alive |= 1u << i % FA_EMU_WARP;
        fa_emu_make_ready(worker, i / FA_EMU_WARP, 1u << i % FA_EMU_WARP);
    }
    if (worker->race)
        fa_race_block_begins(worker);
}

void fa_emu_run_block(fa_emu_worker *worker)
{
    worker->stuck = false;
    go_on(worker, next(worker));
}

void fa_emu_resume_block(fa_emu_worker *worker)
{
    worker->paused = false;
    go_on(worker, worker->resume);
}
