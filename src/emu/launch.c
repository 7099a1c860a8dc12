/* A launch: OS threads take its blocks one by one, and each block starts with shared memory full of NaNs. */
#include "emu/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/core.h"
#include "emu/fibre.h"
#include "emu/flight.h"
#include "emu/mma.h"
#include "emu/race.h"
#include "emu/race_report.h"
#include "emu/random.h"
#include "emu/report.h"
#include "emu/sanitize.h"
#include "emu/schedule.h"

enum {
    SMEM_ALIGN = 1024, /* what a swizzle of TMA repeats after */
    CANARY_BYTES = 1024,
    CANARY = 0xa5,
    NAN_BYTE = 0xff,
    MAX_WORKERS = 64,
    MAX_SEATS = 64,
    MAX_SEAT_THREADS = 16384
};

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

static void worker_free(fa_emu_worker *worker)
{
    if (!worker)
        return;
    fa_emu_flight_free(worker);
    fa_race_team_free(worker);
    fa_emu_fibres_free(worker);
    free(worker->static_copy);
    free(worker->smem_base);
    free(worker);
}

/* NULL: no memory, and the launch has failed. */
static fa_emu_worker *worker_make(fa_emu_launch *launch, uint32_t seat)
{
    const fa_emu_build_info *build = launch->image->build;
    fa_emu_worker *worker = calloc(1, sizeof *worker);
    if (worker) {
        worker->launch = launch;
        worker->seat = seat;
        worker->annotated = build->asan;
        worker->slot = launch->image->slot();
        worker->static_copy = malloc((size_t)(build->static_smem_end - build->static_smem_begin) + 1);
        find_own_stack(worker);
        if (launch->race)
            fa_race_team_make(worker);
    }
    if (worker && worker->static_copy && fa_emu_fibres_make(worker, launch->threads) && smem_make(worker))
        return worker;
    worker_free(worker);
    out_of_memory(launch);
    return NULL;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Which block is the i-th to begin. Under the race detector the schedule decides this, too. */
static uint64_t block_at(const fa_emu_launch *launch, uint64_t i)
{
    const uint64_t count = launch->blocks;
    if (!launch->race || launch->grid->schedule == FA_SCHEDULE_ASCENDING ||
        launch->grid->schedule == FA_SCHEDULE_GREEDY)
        return i;
    if (launch->grid->schedule == FA_SCHEDULE_DESCENDING)
        return count - 1 - i;
    uint64_t state = launch->grid->order_seed, step = fa_emu_random(&state) % count | 1;
    const uint64_t first = fa_emu_random(&state) % count;
    while (common_divisor(step, count) != 1)
        step++;
    return (uint64_t)(((unsigned __int128)i * step + first) % count);
}

/* Runs the next block, or goes on with the one that was paused. False: there was none. */
static bool run_next(fa_emu_worker *worker)
{
    fa_emu_launch *launch = worker->launch;
    const fa_emu_build_info *build = launch->image->build;
    fa_emu_self = worker;
    if (worker->paused) {
        fa_emu_resume_block(worker);
    } else {
        const uint64_t i = atomic_load(&launch->failed) ? launch->blocks : atomic_fetch_add(&launch->next_block, 1);
        if (i >= launch->blocks)
            return false;
        memset(worker->smem, NAN_BYTE, launch->grid->smem_bytes);
        /* byte by byte: a sanitizer's memset would report the red zones between the variables */
        for (volatile char *byte = build->static_smem_begin; byte < build->static_smem_end; byte++)
            *byte = (char)NAN_BYTE;
        fa_emu_run_block(worker, block_at(launch, i));
    }
    if (!worker->paused)
        smem_check(worker);
    return true;
}

static void *work(void *argument)
{
    fa_emu_launch *launch = argument;
    fa_emu_worker *worker = worker_make(launch, 0);
    if (!worker)
        return NULL;
    fa_emu_catch_faults(worker, true);
    while (run_next(worker))
        ;
    fa_emu_catch_faults(worker, false);
    fa_emu_self = NULL;
    worker_free(worker);
    return NULL;
}

/* Under the race detector: one OS thread, on which a block that waits for another is paused, and the next one begins
 * in a seat of its own. Blocks that wait for one another need no more seats than a GPU has room for blocks. */
static void work_in_seats(fa_emu_launch *launch)
{
    fa_emu_worker *seats[MAX_SEATS] = {NULL};
    const uint32_t room = MAX_SEAT_THREADS / launch->threads, count = room < MAX_SEATS ? room : MAX_SEATS;
    bool begun = true;
    while (begun && !atomic_load(&launch->failed)) {
        begun = false;
        for (uint32_t i = 0; i < count && !atomic_load(&launch->failed); i++) {
            if (!seats[i] && atomic_load(&launch->next_block) >= launch->blocks)
                break;
            if (!seats[i] && !(seats[i] = worker_make(launch, i)))
                break;
            fa_emu_catch_faults(seats[i], true);
            do
                begun |= run_next(seats[i]);
            while (!seats[i]->paused && !seats[i]->stopped && atomic_load(&launch->next_block) < launch->blocks);
            fa_emu_catch_faults(seats[i], false);
        }
    }
    fa_emu_self = NULL;
    for (uint32_t i = 0; i < count; i++)
        worker_free(seats[i]);
}

/* A launch runs on one OS thread when the object has __shared__ variables, which exist once per object. */
static int worker_count(const fa_emu_launch *launch)
{
    const fa_emu_build_info *build = launch->image->build;
    if (build->static_smem_begin != build->static_smem_end)
        return 1;
    long count = launch->grid->workers > 0 ? launch->grid->workers : sysconf(_SC_NPROCESSORS_ONLN);
    count = count < 1 ? 1 : count > MAX_WORKERS ? MAX_WORKERS : count;
    return launch->blocks < (uint64_t)count ? (int)launch->blocks : (int)count;
}

static void work_on_threads(fa_emu_launch *launch)
{
    pthread_t others[MAX_WORKERS];
    const int count = worker_count(launch);
    int started = 0;
    while (started < count - 1 && !pthread_create(&others[started], NULL, work, launch))
        started++;
    work(launch);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
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
    if (launch.race)
        work_in_seats(&launch);
    else
        work_on_threads(&launch);
    const bool race = launch.race != NULL && launch.race->found;
    if (race)
        fa_race_explain(launch.race, error, error_size);
    fa_race_end(launch.race);
    return race ? FA_WRONG : atomic_load(&launch.failed) ? FA_ERROR : FA_PASS;
}
