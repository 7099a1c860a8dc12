/* A launch: OS threads take its blocks one by one, and each block starts with shared memory full of NaNs. */
#include "emu/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/core.h"
#include "emu/fibre.h"
#include "emu/mma.h"
#include "emu/race.h"
#include "emu/race_report.h"
#include "emu/report.h"
#include "emu/sanitize.h"
#include "emu/schedule.h"

enum { SMEM_ALIGN = 128, CANARY_BYTES = 256, CANARY = 0xa5, NAN_BYTE = 0xff, MAX_WORKERS = 64 };

/* Shared memory of exactly the launch's bytes. Under ASan the heap guards its ends, otherwise known bytes on both sides
 * do. */
static bool smem_make(fa_emu_worker *worker)
{
    const size_t bytes = worker->launch->grid->smem_bytes;
    worker->smem_pad = worker->annotated ? 0 : CANARY_BYTES;
    void *base = NULL;
    if (posix_memalign(&base, SMEM_ALIGN, bytes + 2 * worker->smem_pad))
        return false;
    worker->smem_base = base;
    worker->smem = worker->smem_base + worker->smem_pad;
    memset(worker->smem_base, CANARY, worker->smem_pad);
    memset(worker->smem + bytes, CANARY, worker->smem_pad);
    return true;
}

static void smem_check(fa_emu_worker *worker)
{
    const size_t bytes = worker->launch->grid->smem_bytes;
    for (size_t i = 0; i < worker->smem_pad && !worker->stopped; i++)
        if (worker->smem_base[i] != CANARY || worker->smem[bytes + i] != CANARY) {
            fa_emu_report(worker, FA_EMU_SMEM_OVERFLOW, NULL, NULL, 0,
                          "a thread wrote outside the %zu bytes of shared memory, near byte %zd; --sanitize address "
                          "names the line",
                          bytes, worker->smem_base[i] != CANARY ? (ssize_t)i - CANARY_BYTES : (ssize_t)(bytes + i));
            worker->stopped = true;
        }
}

static void find_own_stack(fa_emu_worker *worker)
{
    pthread_attr_t attributes;
    void *stack = NULL;
    if (!pthread_getattr_np(pthread_self(), &attributes)) {
        pthread_attr_getstack(&attributes, &stack, &worker->main_stack_size);
        pthread_attr_destroy(&attributes);
    }
    worker->main_stack = stack;
}

static void out_of_memory(fa_emu_launch *launch)
{
    pthread_mutex_lock(&launch->lock);
    if (!atomic_exchange(&launch->failed, 1))
        snprintf(launch->error, launch->error_size, "no memory for the threads of a block");
    pthread_mutex_unlock(&launch->lock);
}

static void *work(void *argument)
{
    fa_emu_launch *launch = argument;
    const fa_emu_build_info *build = launch->image->build;
    fa_emu_worker *worker = calloc(1, sizeof *worker);
    if (!worker) {
        out_of_memory(launch);
        return NULL;
    }
    worker->launch = launch;
    worker->annotated = build->asan;
    worker->slot = launch->image->slot();
    find_own_stack(worker);
    fa_emu_self = worker;
    if (launch->race)
        fa_race_team_make(worker);
    if (!fa_emu_fibres_make(worker, launch->threads) || !smem_make(worker)) {
        out_of_memory(launch);
    } else {
        fa_emu_catch_faults(worker, true);
        uint64_t block;
        while (!atomic_load(&launch->failed) && (block = atomic_fetch_add(&launch->next_block, 1)) < launch->blocks) {
            memset(worker->smem, NAN_BYTE, launch->grid->smem_bytes);
            /* byte by byte: a sanitizer's memset would report the red zones between the variables */
            for (volatile char *byte = build->static_smem_begin; byte < build->static_smem_end; byte++)
                *byte = (char)NAN_BYTE;
            fa_emu_run_block(worker, block);
            smem_check(worker);
        }
        fa_emu_catch_faults(worker, false);
    }
    fa_emu_self = NULL;
    fa_race_team_free(worker);
    fa_emu_fibres_free(worker);
    free(worker->smem_base);
    free(worker);
    return NULL;
}

/* A launch runs on one OS thread when the object has __shared__ variables, which exist once per object, and under the race
 * detector, which follows one. */
static int worker_count(const fa_emu_launch *launch)
{
    const fa_emu_build_info *build = launch->image->build;
    if (build->tsan || build->static_smem_begin != build->static_smem_end)
        return 1;
    long count = launch->grid->workers > 0 ? launch->grid->workers : sysconf(_SC_NPROCESSORS_ONLN);
    count = count < 1 ? 1 : count > MAX_WORKERS ? MAX_WORKERS : count;
    return launch->blocks < (uint64_t)count ? (int)launch->blocks : (int)count;
}

fa_status fa_emu_run(const fa_emu_image *image, const fa_emu_grid *grid, const fa_params *params, char *error,
                     size_t error_size)
{
    fa_emu_launch launch = {
        .image = image,
        .grid = grid,
        .params = params,
        .blocks = (uint64_t)grid->grid.x * grid->grid.y * grid->grid.z,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .error = error,
        .error_size = error_size,
    };
    const uint64_t threads = (uint64_t)grid->block.x * grid->block.y * grid->block.z;
    if (!threads || threads > FA_EMU_MAX_THREADS || !launch.blocks) {
        snprintf(error, error_size,
                 "a launch of %llu blocks of %llu threads: 1 to 1024 threads and at least one block are possible",
                 (unsigned long long)launch.blocks, (unsigned long long)threads);
        return FA_ERROR;
    }
    launch.threads = (uint32_t)threads;
    fa_emu_sanitizer_find(image->build);
    fa_emu_wmma_maps(&launch);
    launch.race = image->build->tsan ? fa_race_begin(&launch) : NULL;
    pthread_t others[MAX_WORKERS];
    const int count = worker_count(&launch);
    int started = 0;
    while (started < count - 1 && !pthread_create(&others[started], NULL, work, &launch))
        started++;
    work(&launch);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    const bool race = launch.race != NULL && launch.race->found;
    if (race)
        fa_race_explain(launch.race, error, error_size);
    fa_race_end(launch.race);
    return race ? FA_WRONG : atomic_load(&launch.failed) ? FA_ERROR : FA_PASS;
}
