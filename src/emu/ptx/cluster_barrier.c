#include "emu/ptx/cluster_barrier.h"

#include "emu/core/report.h"
#include "emu/race/cluster.h"

void fa_emu_cluster_barrier_reset(fa_emu_cluster *cluster)
{
    cluster->phase = 0;
    cluster->arrived = 0;
    fa_race_cluster_forget(cluster);
}

static void settle(fa_emu_cluster *cluster)
{
    const uint32_t living = fa_emu_cluster_living(cluster);
    if (living == 0 || cluster->arrived < living)
        return;
    cluster->phase++;
    cluster->arrived = 0;
    fa_race_cluster_complete(cluster);
    for (uint32_t rank = 0; rank < cluster->count; rank++) {
        fa_emu_worker *worker = cluster->block[rank];
        for (uint32_t warp = 0; warp < worker->warps; warp++) {
            if (worker->waiting_cluster[warp] != 0)
                fa_emu_wake(worker, warp, worker->waiting_cluster[warp]);
            worker->waiting_cluster[warp] = 0;
        }
    }
}

static fa_emu_op op_of(const fa_emu_ptx_run *run, fa_emu_kind kind)
{
    return (fa_emu_op){
        .kind = kind, .name = run->instr->name, .file = run->at->file, .line = run->at->line, .mask = ~0u};
}

static void arrive(const fa_emu_ptx_run *run)
{
    fa_emu_worker *worker = fa_emu_self;
    fa_emu_fibre *self = worker->current;
    if (self->cluster_arrived)
        fa_emu_ptx_fail(run, FA_EMU_BAD_BARRIER, "the thread has arrived already: barrier.cluster.wait comes between");
    self->cluster_arrived = true;
    self->cluster_phase = worker->cluster->phase;
    worker->cluster->arrived++;
    fa_race_cluster_arrive(worker, fa_ptx_has(run->instr, FA_PTX_W_RELAXED));
    settle(worker->cluster);
}

static void wait(const fa_emu_ptx_run *run)
{
    fa_emu_worker *worker = fa_emu_self;
    fa_emu_fibre *self = worker->current;
    if (!self->cluster_arrived)
        fa_emu_ptx_fail(run, FA_EMU_BAD_BARRIER, "the thread waits, but has not arrived (barrier.cluster.arrive)");
    while (worker->cluster->phase == self->cluster_phase) {
        fa_emu_op op = op_of(run, FA_EMU_PHASE);
        worker->waiting_cluster[self->thread.warp] |= 1u << self->thread.lane;
        fa_emu_ptx_wait(&op);
    }
    self->cluster_arrived = false;
    fa_race_cluster_observed(worker);
}

void fa_emu_ptx_cluster_barrier(const fa_emu_ptx_run *run)
{
    if (fa_ptx_has(run->instr, FA_PTX_W_ALIGNED)) {
        fa_emu_op together = op_of(run, FA_EMU_CONVERGE);
        fa_emu_ptx_wait(&together);
    }
    if (fa_ptx_has(run->instr, FA_PTX_W_ARRIVE))
        arrive(run);
    else
        wait(run);
}

void fa_emu_cluster_barrier_thread_ends(fa_emu_worker *worker, const fa_emu_fibre *fibre)
{
    fa_emu_cluster *cluster = worker->cluster;
    if (fibre->cluster_arrived && fibre->cluster_phase == cluster->phase)
        cluster->arrived--;
    settle(cluster);
}
