#include "emu/hopper/pool.h"

#include "emu/core/report.h"

enum { ALL_REGISTERS = 65536, STEP = 8, LEAST = 24, MOST = 256, MOST_AT_LAUNCH = 248 };

/* A kernel with setmaxnreg is compiled for the maximum that its launch bounds leave a thread. bounds: fa_emu_image's;
 * where they say nothing about blocks ptxas ignores setmaxnreg. */
static uint32_t at_launch(const int32_t *bounds, uint32_t blocks, uint32_t threads)
{
    uint32_t each = ALL_REGISTERS / blocks / threads / STEP * STEP, bound = each;
    if (bounds != NULL && bounds[0] > 0 && bounds[1] > 0) {
        const uint32_t warps = ((uint32_t)bounds[0] + FA_EMU_WARP - 1) / FA_EMU_WARP;
        bound = ALL_REGISTERS / (uint32_t)bounds[1] / (warps * FA_EMU_WARP) / STEP * STEP;
    } else if (bounds != NULL && bounds[2] > 0) {
        bound = (uint32_t)bounds[2];
    }
    each = bound < each ? bound : each;
    return each > MOST_AT_LAUNCH ? MOST_AT_LAUNCH : each;
}

static fa_emu_pending *filled(const fa_emu_worker *worker)
{
    fa_emu_pending *pending = fa_emu_pending_now();
    if (pending->pool_filled)
        return pending;
    const uint32_t blocks = worker->launch->grid->blocks_per_sm > 1 ? (uint32_t)worker->launch->grid->blocks_per_sm : 1;
    const uint32_t each = at_launch(worker->launch->image->bounds, blocks, worker->warps * FA_EMU_WARP);
    for (uint32_t warp = 0; warp < worker->warps; warp++)
        pending->registers[warp] = each;
    pending->pool = 0;
    pending->pool_filled = true;
    return pending;
}

/* ptxas gives a kernel no more registers at its launch than its largest inc asks for. */
static void lower(const fa_emu_worker *worker, fa_emu_pending *pending, uint32_t held, uint32_t count)
{
    for (uint32_t warp = 0; warp < worker->warps; warp++) {
        if (pending->changes[warp] == 0)
            pending->registers[warp] = count;
        else
            pending->pool -= (held - count) * FA_EMU_WARP;
    }
}

/* Waits until the pool has `more` registers for the warp. Lane 0 takes them. */
static void take(const fa_emu_ptx_run *run, uint32_t warp, uint32_t lane, uint32_t count)
{
    fa_emu_pending *pending = fa_emu_self->pending;
    while (pending->registers[warp] < count && (pending->registers[warp] + pending->pool / FA_EMU_WARP < count)) {
        pending->waiting_for_registers[warp] |= 1u << lane;
        fa_emu_ptx_meet(run, FA_EMU_PHASE, run->instr->text);
    }
    if (pending->registers[warp] < count) {
        pending->pool -= (count - pending->registers[warp]) * FA_EMU_WARP;
        pending->registers[warp] = count;
        pending->changes[warp]++;
    }
}

void fa_emu_ptx_setmaxnreg(fa_emu_ptx_run *run)
{
    fa_emu_worker *worker = fa_emu_self;
    fa_emu_pending *pending = filled(worker);
    const fa_emu_thread *t = &worker->current->thread;
    const uint32_t count = (uint32_t)fa_ptx_in(run->instr, 0, run->r), held = pending->registers[t->warp];
    fa_emu_op together = fa_emu_ptx_op(run, FA_EMU_CONVERGE, run->instr->text);
    if (count < LEAST || count > MOST || count % STEP)
        fa_emu_ptx_fail(run, FA_EMU_BAD_REGISTERS, "%u registers: a multiple of 8 from 24 to 256 is possible", count);
    if (fa_ptx_has(run->instr, FA_PTX_W_INC)) {
        fa_emu_ptx_wait(&together);
        if (count < pending->registers[t->warp] && pending->changes[t->warp] == 0)
            lower(worker, pending, held, count);
        else if (count < held && pending->registers[t->warp] == held)
            fa_emu_ptx_fail(run, FA_EMU_BAD_REGISTERS, "inc to %u, but a thread holds %u", count, held);
        pending->changes[t->warp] += pending->changes[t->warp] == 0;
        take(run, t->warp, t->lane, count);
        return;
    }
    fa_emu_ptx_wait(&together);
    if (pending->registers[t->warp] == count && held > count) /* another lane was first */
        return;
    if (count > pending->registers[t->warp])
        fa_emu_ptx_fail(run, FA_EMU_BAD_REGISTERS, "dec to %u, but a thread holds %u", count, held);
    pending->pool += (pending->registers[t->warp] - count) * FA_EMU_WARP;
    pending->registers[t->warp] = count;
    pending->changes[t->warp]++;
    fa_emu_wake(worker, pending->waiting_for_registers);
}

void fa_emu_pool_block_ends(fa_emu_worker *worker)
{
    const fa_emu_pending *pending = worker->pending;
    for (uint32_t warp = 0; pending->pool_filled && warp < worker->warps && !worker->stopped; warp++)
        if (pending->registers[warp] != pending->registers[warp & ~3u]) {
            fa_emu_report(worker, FA_EMU_BAD_REGISTERS, &worker->fibres[warp * FA_EMU_WARP], NULL, 0,
                          "setmaxnreg: warp %u ends with %u registers, warp %u of the same warpgroup with %u", warp,
                          pending->registers[warp], warp & ~3u, pending->registers[warp & ~3u]);
            worker->stopped = true;
        }
}
