#include "emu/pool.h"

#include "emu/report.h"
#include "emu/wake.h"

enum { ALL_REGISTERS = 65536, STEP = 8, LEAST = 24, MOST = 256, MOST_AT_LAUNCH = 248 };

/* A kernel that sets its registers is compiled for the most that its launch bounds leave a thread. */
static fa_emu_flight *filled(const fa_emu_worker *worker)
{
    fa_emu_flight *flight = fa_emu_flight_now();
    if (flight->pool_filled)
        return flight;
    const uint32_t blocks = worker->launch->grid->blocks_per_sm > 1 ? (uint32_t)worker->launch->grid->blocks_per_sm : 1;
    uint32_t each = ALL_REGISTERS / blocks / (worker->warps * FA_EMU_WARP) / STEP * STEP;
    each = each > MOST_AT_LAUNCH ? MOST_AT_LAUNCH : each;
    for (uint32_t warp = 0; warp < worker->warps; warp++)
        flight->registers[warp] = each;
    flight->pool = 0;
    flight->pool_filled = true;
    return flight;
}

/* ptxas gives a kernel no more registers at its launch than its largest inc asks for. */
static void lower(const fa_emu_worker *worker, fa_emu_flight *flight, uint32_t held, uint32_t count)
{
    for (uint32_t warp = 0; warp < worker->warps; warp++) {
        if (flight->changes[warp] == 0)
            flight->registers[warp] = count;
        else
            flight->pool -= (held - count) * FA_EMU_WARP;
    }
}

static void serve(fa_emu_worker *worker)
{
    fa_emu_flight *flight = worker->flight;
    for (uint32_t warp = 0; warp < worker->warps; warp++) {
        if (flight->waiting_for_registers[warp] != 0)
            fa_emu_wake(worker, warp, flight->waiting_for_registers[warp]);
        flight->waiting_for_registers[warp] = 0;
    }
}

/* Until the pool can give the warp `more` registers. Lane 0 takes them. */
static void take(const fa_emu_ptx_run *run, uint32_t warp, uint32_t lane, uint32_t count)
{
    fa_emu_flight *flight = fa_emu_self->flight;
    while (flight->registers[warp] < count && (flight->registers[warp] + flight->pool / FA_EMU_WARP < count)) {
        fa_emu_op op = {
            .kind = FA_EMU_PHASE, .name = run->instr->text, .file = run->at->file, .line = run->at->line, .mask = ~0u};
        flight->waiting_for_registers[warp] |= 1u << lane;
        fa_emu_ptx_wait(&op);
    }
    if (flight->registers[warp] < count) {
        flight->pool -= (count - flight->registers[warp]) * FA_EMU_WARP;
        flight->registers[warp] = count;
        flight->changes[warp]++;
    }
}

void fa_emu_ptx_setmaxnreg(fa_emu_ptx_run *run)
{
    fa_emu_worker *worker = fa_emu_self;
    fa_emu_flight *flight = filled(worker);
    const fa_emu_thread *t = &worker->current->thread;
    const uint32_t count = (uint32_t)fa_ptx_in(run->instr, 0, run->r), held = flight->registers[t->warp];
    fa_emu_op together = {
        .kind = FA_EMU_CONVERGE, .name = run->instr->text, .file = run->at->file, .line = run->at->line, .mask = ~0u};
    if (count < LEAST || count > MOST || count % STEP)
        fa_emu_ptx_fail(run, FA_EMU_BAD_REGISTERS, "%u registers: a multiple of 8 from 24 to 256 is possible", count);
    if (fa_ptx_has(run->instr, FA_PTX_W_INC)) {
        fa_emu_ptx_wait(&together);
        if (count < flight->registers[t->warp] && flight->changes[t->warp] == 0)
            lower(worker, flight, held, count);
        else if (count < held && flight->registers[t->warp] == held)
            fa_emu_ptx_fail(run, FA_EMU_BAD_REGISTERS, "inc to %u, but a thread holds %u", count, held);
        flight->changes[t->warp] += flight->changes[t->warp] == 0;
        take(run, t->warp, t->lane, count);
        return;
    }
    fa_emu_ptx_wait(&together);
    if (flight->registers[t->warp] == count && held > count) /* another lane was first */
        return;
    if (count > flight->registers[t->warp])
        fa_emu_ptx_fail(run, FA_EMU_BAD_REGISTERS, "dec to %u, but a thread holds %u", count, held);
    flight->pool += (flight->registers[t->warp] - count) * FA_EMU_WARP;
    flight->registers[t->warp] = count;
    flight->changes[t->warp]++;
    serve(worker);
}

void fa_emu_pool_block_ends(fa_emu_worker *worker)
{
    const fa_emu_flight *flight = worker->flight;
    for (uint32_t warp = 0; flight->pool_filled && warp < worker->warps && !worker->stopped; warp++)
        if (flight->registers[warp] != flight->registers[warp & ~3u]) {
            fa_emu_report(worker, FA_EMU_BAD_REGISTERS, &worker->fibres[warp * FA_EMU_WARP], NULL, 0,
                          "setmaxnreg: warp %u ends with %u registers, warp %u of the same warpgroup with %u", warp,
                          flight->registers[warp], warp & ~3u, flight->registers[warp & ~3u]);
            worker->stopped = true;
        }
}
