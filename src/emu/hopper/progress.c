#include "emu/hopper/progress.h"

#include <stdlib.h>
#include <string.h>

#include "emu/core/report.h"
#include "emu/hopper/bulk.h"
#include "emu/hopper/pool.h"
#include "emu/hopper/wgmma.h"
#include "emu/race/async.h"

/* Under the random schedule pending work advances in one of so many turns, by so many rows. */
enum { TURNS = 8, ROWS = 16 };

static void forget_products(fa_emu_pending *pending)
{
    for (uint32_t warp = 0; warp < FA_EMU_MAX_WARPS; warp++) {
        fa_emu_products *all = pending->products[warp];
        if (all == NULL)
            continue;
        for (int t = 0; t < FA_EMU_TILES_MAX; t++) {
            if (all->tiles[t].used)
                free(all->tiles[t].places);
            all->tiles[t].used = false;
        }
        all->issued = all->done = all->groups = 0;
        all->fenced = false;
    }
}

void fa_emu_pending_reset(fa_emu_worker *worker)
{
    fa_emu_pending *pending = worker->pending;
    if (pending == NULL)
        return;
    for (uint32_t i = 0; i < pending->barrier_count; i++) {
        fa_race_phase_free(pending->barriers[i]->race);
        free(pending->barriers[i]);
    }
    pending->barrier_count = pending->bulk_count = pending->busy = 0;
    memset(pending->patience, 0, sizeof pending->patience);
    memset(pending->group, 0, sizeof pending->group);
    memset(pending->changes, 0, sizeof pending->changes);
    memset(pending->waiting_for_registers, 0, sizeof pending->waiting_for_registers);
    for (uint32_t i = 0; i < FA_EMU_MAX_THREADS; i++) {
        free(pending->registers_of_thread[i]);
        pending->registers_of_thread[i] = NULL;
    }
    forget_products(pending);
    pending->pool_filled = false;
}

void fa_emu_pending_free(fa_emu_worker *worker)
{
    if (worker->pending == NULL)
        return;
    fa_emu_pending_reset(worker);
    for (uint32_t warp = 0; warp < FA_EMU_MAX_WARPS; warp++)
        free(worker->pending->products[warp]);
    free(worker->pending->barriers);
    free(worker->pending->bulks);
    free(worker->pending);
    worker->pending = NULL;
}

void fa_emu_pending_turn(fa_emu_worker *worker)
{
    fa_emu_pending *pending = worker->pending;
    if (pending->busy == 0 || worker->launch->grid->schedule != FA_SCHEDULE_RANDOM || fa_emu_draw(worker, TURNS) != 0)
        return;
    const uint32_t what = fa_emu_draw(worker, pending->bulk_count + worker->warps);
    if (what < pending->bulk_count) {
        fa_emu_bulk_move(worker, what, fa_emu_draw(worker, 2) * (1 + fa_emu_draw(worker, ROWS)));
        return;
    }
    const uint32_t warp = what - pending->bulk_count;
    if (pending->products[warp] != NULL && pending->products[warp]->issued != pending->products[warp]->done)
        fa_emu_wgmma_step(worker, warp);
}

/* The pending load that the schedule completes next. */
bool fa_emu_pending_force(fa_emu_worker *worker)
{
    const fa_emu_pending *pending = worker->pending;
    uint32_t loads = 0, chosen = 0;
    for (uint32_t i = 0; pending != NULL && i < pending->bulk_count; i++) {
        if (pending->bulks[i].kind != FA_EMU_LOAD)
            continue;
        loads++;
        const fa_schedule schedule = worker->launch->grid->schedule;
        if (loads == 1 || schedule == FA_SCHEDULE_DESCENDING ||
            (schedule == FA_SCHEDULE_RANDOM && fa_emu_draw(worker, loads) == 0))
            chosen = i;
    }
    if (loads > 0)
        fa_emu_bulk_move(worker, chosen, 0);
    return loads > 0;
}

/* Whether every waiting thread of the cluster waits in it or polls a phase: nothing from outside can help. A block that
 * is paused has a thread that polls for what another cluster does. */
static bool all_poll(const fa_emu_cluster *cluster)
{
    bool all = true;
    for (uint32_t rank = 0; rank < cluster->count; rank++) {
        const fa_emu_worker *worker = cluster->block[rank];
        all &= !worker->paused;
        for (uint32_t i = 0; i < worker->threads && all; i++) {
            const fa_emu_op *op = worker->fibres[i].op;
            all = op == NULL || op->kind != FA_EMU_YIELD ||
                  (worker->pending != NULL && worker->pending->patience[i].barrier != NULL);
        }
    }
    return all;
}

bool fa_emu_pending_polled(fa_emu_worker *worker)
{
    enum { PATIENCE = 32 };
    if (worker->pending == NULL || ++worker->cluster->idle % PATIENCE != 0)
        return false;
    if (fa_emu_pending_force(worker)) {
        worker->cluster->idle = 0;
        return false;
    }
    if (worker->cluster->idle < FA_EMU_NEVER * worker->cluster->count || !all_poll(worker->cluster))
        return false;
    fa_emu_report_stuck(worker);
    worker->stopped = true;
    return true;
}

static void report_left(fa_emu_worker *worker, const fa_emu_bulk *bulk, const char *what)
{
    fa_emu_report(bulk->issuer, FA_EMU_BULK_LEFT, &bulk->issuer->fibres[bulk->thread], bulk->file, bulk->line,
                  "%.100s: %s", bulk->name, what);
    worker->stopped = true;
}

void fa_emu_pending_thread_ends(fa_emu_worker *worker)
{
    const fa_emu_pending *pending = worker->pending;
    const uint32_t thread = (uint32_t)(worker->current - worker->fibres);
    for (uint32_t i = 0; i < pending->bulk_count && !worker->stopped; i++)
        if (pending->bulks[i].kind != FA_EMU_LOAD && pending->bulks[i].thread == thread)
            report_left(worker, &pending->bulks[i], "issued, never waited for, and the thread exits");
}

/* Pending copies from the block's shared memory to another block's. */
static void check_sources(fa_emu_worker *worker)
{
    for (uint32_t rank = 0; rank < worker->cluster->count; rank++) {
        const fa_emu_pending *theirs = worker->cluster->block[rank]->pending;
        for (uint32_t i = 0; theirs != NULL && i < theirs->bulk_count && !worker->stopped; i++)
            if (theirs->bulks[i].from_shared && theirs->bulks[i].issuer == worker)
                report_left(worker, &theirs->bulks[i], "still under way, and the block that it copies from has ended");
    }
}

void fa_emu_pending_block_ends(fa_emu_worker *worker)
{
    const fa_emu_pending *pending = worker->pending;
    if (pending->bulk_count > 0)
        report_left(worker, &pending->bulks[0], "still under way, and the block has ended");
    check_sources(worker);
    for (uint32_t i = 0; i < pending->barrier_count && !worker->stopped; i++) {
        const fa_emu_mbarrier *b = pending->barriers[i];
        if (!b->alive || b->tx == 0)
            continue;
        fa_emu_report(worker, FA_EMU_TX_COUNT, NULL, b->file, b->line,
                      "the block ends, and phase %llu of this barrier has %lld bytes %s than were expected",
                      (unsigned long long)b->phase, (long long)(b->tx > 0 ? b->tx : -b->tx),
                      b->tx > 0 ? "fewer" : "more");
        worker->stopped = true;
    }
    fa_emu_wgmma_block_ends(worker);
    if (!worker->stopped)
        fa_emu_pool_block_ends(worker);
}
