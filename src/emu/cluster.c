#include "emu/cluster.h"

#include <string.h>

#include "base/random.h"
#include "emu/core/pending.h"
#include "emu/core/report.h"
#include "emu/ptx/group.h"
#include "emu/ptx/cp_async.h"
#include "emu/schedule.h"

enum {
    NAN_BYTE = 0xff,
    LARGE_BYTE = 0x5a,    /* as FP16 203, as FP32 1.5e16 */
    NEGATIVE_BYTE = 0xda, /* as FP16 -219, as FP32 -3.1e16 */
    ROUNDS = 64
};

/* What shared memory holds before a kernel writes to it: NaN; in launches that repeat another, large numbers. A result
 * that depends on it then differs between the repeats, where NaN would hide it. */
static int stale_byte(const fa_emu_launch *launch)
{
    const uint64_t variation = launch->grid->order_seed - launch->grid->seed;
    return variation == 0 ? NAN_BYTE : variation % 2 == 1 ? LARGE_BYTE : NEGATIVE_BYTE;
}

/* Byte by byte: a sanitizer's memcpy and memset would report the red zones between the variables. */
static void copy_bytes(volatile unsigned char *to, const volatile unsigned char *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = from[i];
}

static void fill_bytes(volatile unsigned char *to, int byte, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)byte;
}

static void swap_in(const fa_emu_worker *worker)
{
    copy_bytes((unsigned char *)worker->launch->image->build->static_smem_begin, worker->static_copy,
               fa_emu_static_bytes(worker->launch->image->build));
}

static void swap_out(const fa_emu_worker *worker)
{
    copy_bytes(worker->static_copy, (unsigned char *)worker->launch->image->build->static_smem_begin,
               fa_emu_static_bytes(worker->launch->image->build));
}

static bool changed(const unsigned char *known, size_t bytes)
{
    return bytes > 0 && (known[0] != FA_EMU_CANARY || memcmp(known, known + 1, bytes - 1) != 0);
}

/* A launch with too few bytes is the usual reason, so the message says how far the writes go. */
static void smem_check(fa_emu_worker *worker)
{
    const size_t bytes = worker->launch->grid->smem_bytes;
    const unsigned char *behind = worker->smem + bytes;
    size_t past = worker->smem_behind;
    if (worker->stopped)
        return;
    if (changed(behind, past)) {
        while (behind[past - 1] == FA_EMU_CANARY)
            past--;
        fa_emu_report(worker, FA_EMU_SMEM_OVERFLOW, NULL, NULL, 0,
                      "threads wrote past the launch's %zu bytes of shared memory: at least %zu are needed "
                      "(smem_dynamic_bytes of FA_KERNEL_INFO), or an index is too large: --sanitize address names the "
                      "line",
                      bytes, bytes + past);
    } else if (changed(worker->smem_base, worker->smem_pad)) {
        fa_emu_report(worker, FA_EMU_SMEM_OVERFLOW, NULL, NULL, 0,
                      "threads wrote before the first byte of shared memory; --sanitize address names the line");
    } else {
        return;
    }
    worker->stopped = true;
}

/* Its shared memory is gone: a read now gives NaN. */
static void end(fa_emu_worker *worker)
{
    smem_check(worker);
    if (worker->cluster->count == 1)
        return;
    memset(worker->smem, NAN_BYTE, worker->launch->grid->smem_bytes);
    fill_bytes(worker->static_copy, NAN_BYTE, fa_emu_static_bytes(worker->launch->image->build));
}

static void take_turn(fa_emu_worker *worker)
{
    const bool alone = worker->cluster->count == 1;
    fa_emu_self = worker;
    worker->rounds = worker->launch->grid->schedule == FA_SCHEDULE_RANDOM ? 1 + fa_emu_draw(worker, ROUNDS) : ROUNDS;
    if (!alone || worker->paused)
        swap_in(worker);
    if (worker->paused)
        fa_emu_resume_block(worker);
    else
        fa_emu_run_block(worker);
    if (!alone || worker->paused)
        swap_out(worker);
    if (worker->over)
        end(worker);
}

static uint32_t in_order(fa_emu_cluster *cluster, uint32_t i)
{
    switch (cluster->block[0]->launch->grid->schedule) {
    case FA_SCHEDULE_DESCENDING:
        return cluster->count - 1 - i;
    case FA_SCHEDULE_RANDOM:
        return (uint32_t)((fa_random_next(&cluster->random) >> 32) * cluster->count >> 32);
    default:
        return i;
    }
}

/* No thread can run: completes a pending copy of some block. False: there is none, and no block went on. */
static bool force(fa_emu_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->count; i++) {
        fa_emu_worker *worker = cluster->block[i];
        if (worker->over)
            continue;
        const uint64_t waits = worker->waits + 1; /* it looks for a thread once, and finds none */
        worker->forced = true;
        take_turn(worker);
        const bool completed = !worker->forced;
        worker->forced = false;
        cluster->stopped |= worker->stopped;
        if (completed || worker->over || worker->waits > waits)
            return true;
    }
    return cluster->stopped;
}

void fa_emu_cluster_begin(fa_emu_cluster *cluster, uint64_t first)
{
    const fa_emu_launch *launch = cluster->block[0]->launch;
    const fa_emu_build_info *build = launch->image->build;
    cluster->paused = cluster->stopped = false;
    cluster->idle = 0;
    cluster->random = launch->grid->order_seed * 0x9e3779b97f4a7c15u + first;
    fa_emu_cluster_barrier_reset(cluster);
    for (uint32_t rank = 0; rank < cluster->count; rank++) {
        fa_emu_worker *worker = cluster->block[rank];
        fa_emu_self = worker;
        memset(worker->smem, stale_byte(launch), launch->grid->smem_bytes);
        fill_bytes(cluster->count > 1 ? worker->static_copy : (unsigned char *)build->static_smem_begin,
                   stale_byte(launch), fa_emu_static_bytes(build));
        fa_emu_begin_block(worker, first + rank);
    }
}

void fa_emu_cluster_run(fa_emu_cluster *cluster)
{
    cluster->paused = false;
    for (;;) {
        uint32_t living = 0, stuck = 0, paused = 0;
        for (uint32_t i = 0; i < cluster->count && !cluster->stopped; i++) {
            fa_emu_worker *worker = cluster->block[in_order(cluster, i)];
            if (worker->over)
                continue;
            take_turn(worker);
            cluster->stopped |= worker->stopped;
        }
        for (uint32_t i = 0; i < cluster->count && !cluster->stopped; i++) {
            const fa_emu_worker *worker = cluster->block[i];
            living += !worker->over;
            stuck += !worker->over && worker->stuck;
            paused += worker->paused;
        }
        for (uint32_t rank = 0; rank < cluster->count && cluster->stopped; rank++)
            for (uint32_t i = 0; i < cluster->block[rank]->threads; i++)
                fa_emu_async_drop(&cluster->block[rank]->fibres[i].async);
        if (cluster->stopped || living == 0)
            return;
        const bool idle = stuck + paused == living || cluster->idle >= FA_EMU_NEVER * cluster->count;
        cluster->paused = paused > 0 && idle;
        if (cluster->paused)
            return;
        if (stuck == living && !force(cluster)) {
            uint32_t first = 0;
            while (cluster->block[first]->over)
                first++;
            fa_emu_report_stuck(cluster->block[first]);
            cluster->stopped = true;
        }
    }
}
