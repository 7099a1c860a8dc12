/* A launch: OS threads take its clusters one by one. */
#include "emu/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "base/random.h"
#include "emu/cluster.h"
#include "emu/core/calls.h"
#include "emu/core/fibre.h"
#include "emu/core/preempt.h"
#include "emu/core/report.h"
#include "emu/core/preload.h"
#include "emu/core/state.h"
#include "emu/hopper/progress.h"
#include "emu/hopper/registers.h"
#include "emu/mma.h"
#include "emu/ptx/group.h"
#include "emu/race/detector.h"
#include "emu/race/found.h"
#include "emu/schedule.h"

enum {
    SMEM_ALIGN = 1024, /* the period of TMA swizzles */
    CANARY_BYTES = 1024,
    CANARY_BEHIND = 65536, /* more: a kernel that asks for too little writes far */
    SLACK_BYTES = 262144,  /* no longer looked at, but nobody else's */
    MAX_WORKERS = 64,
    MAX_SEATS = 64,
    MIXED = 8, /* clusters */
    MAX_SEAT_THREADS = 16384
};

/* Shared memory of exactly the launch's bytes. Under ASan the heap guards its ends, otherwise known bytes do. */
static bool smem_make(fa_emu_worker *worker)
{
    const size_t bytes = worker->launch->grid->smem_bytes;
    const size_t slack = worker->annotated ? 0 : SLACK_BYTES;
    worker->smem_pad = worker->annotated ? 0 : CANARY_BYTES;
    worker->smem_behind = worker->annotated ? 0 : CANARY_BEHIND;
    void *base = NULL;
    if (posix_memalign(&base, SMEM_ALIGN, bytes + worker->smem_pad + worker->smem_behind + slack))
        return false;
    worker->smem_base = base;
    worker->smem = worker->smem_base + worker->smem_pad;
    memset(worker->smem_base, FA_EMU_CANARY, worker->smem_pad);
    memset(worker->smem + bytes, FA_EMU_CANARY, worker->smem_behind);
    return true;
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

static void worker_free(fa_emu_worker *worker)
{
    if (!worker)
        return;
    fa_emu_pending_free(worker);
    fa_race_team_free(worker);
    fa_emu_fibres_free(worker);
    free(worker->static_copy);
    free(worker->smem_base);
    free(worker);
}

/* NULL: no memory. */
static fa_emu_worker *worker_make(fa_emu_launch *launch, fa_emu_cluster *cluster, uint32_t rank, uint32_t seat)
{
    const fa_emu_build_info *build = launch->image->build;
    fa_emu_worker *worker = calloc(1, sizeof *worker);
    if (worker) {
        worker->launch = launch;
        worker->cluster = cluster;
        worker->rank = rank;
        worker->seat = seat;
        worker->annotated = build->asan;
        worker->slot = launch->image->slot();
        worker->static_copy = malloc(fa_emu_static_bytes(build) + 1);
        find_own_stack(worker);
        if (launch->race)
            fa_race_team_make(worker);
    }
    if (worker && worker->static_copy && fa_emu_fibres_make(worker, launch->threads) && smem_make(worker))
        return worker;
    worker_free(worker);
    return NULL;
}

static void cluster_free(fa_emu_cluster *cluster)
{
    if (!cluster)
        return;
    fa_emu_cluster_barrier_reset(cluster);
    for (uint32_t rank = 0; rank < cluster->count; rank++)
        worker_free(cluster->block[rank]);
    free(cluster);
}

/* NULL: no memory, and the launch has failed. */
static fa_emu_cluster *cluster_make(fa_emu_launch *launch, uint32_t seat)
{
    fa_emu_cluster *cluster = calloc(1, sizeof *cluster);
    for (uint32_t rank = 0; cluster && rank < launch->cluster; rank++) {
        cluster->block[rank] = worker_make(launch, cluster, rank, seat * launch->cluster + rank);
        if (!cluster->block[rank]) {
            cluster_free(cluster);
            cluster = NULL;
        } else {
            cluster->count++;
        }
    }
    if (!cluster)
        fa_emu_publish(launch, FA_EMU_NO_MEMORY, "no memory for the threads of a block");
    return cluster;
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

/* Clusters of which an OS thread has some begun at a time. */
static uint32_t seats_of(const fa_emu_launch *launch)
{
    const uint32_t threads = launch->threads * launch->cluster;
    const uint32_t room = threads < MAX_SEAT_THREADS ? MAX_SEAT_THREADS / threads : 1;
    return room < MAX_SEATS ? room : MAX_SEATS;
}

/* Which cluster starts as the i-th: the schedule decides this, too. Under the race detector it mixes all of them,
 * otherwise neighbours alone, so that a cluster finds those before it begun. */
static uint64_t cluster_at(const fa_emu_launch *launch, uint64_t i)
{
    const uint64_t all = launch->blocks / launch->cluster;
    const uint64_t mixed = launch->race ? all : seats_of(launch) < MIXED ? 1 : MIXED, from = i / mixed * mixed;
    const uint64_t count = all - from < mixed ? all - from : mixed;
    if (launch->grid->schedule == FA_SCHEDULE_ASCENDING || launch->grid->schedule == FA_SCHEDULE_GREEDY)
        return i;
    if (launch->grid->schedule == FA_SCHEDULE_DESCENDING)
        return from + count - 1 - (i - from);
    uint64_t state = launch->grid->order_seed, step = fa_random_next(&state) % count | 1;
    const uint64_t first = fa_random_next(&state) % count;
    while (common_divisor(step, count) != 1)
        step++;
    return from + (uint64_t)(((unsigned __int128)(i - from) * step + first) % count);
}

/* Runs the next cluster, or continues the paused one. False: there is none. */
static bool run_next(fa_emu_launch *launch, fa_emu_cluster *cluster)
{
    if (!cluster->paused) {
        const uint64_t none = launch->blocks / launch->cluster;
        const uint64_t i = atomic_load(&launch->failed) ? none : atomic_fetch_add(&launch->next_cluster, 1);
        if (i >= none)
            return false;
        fa_emu_cluster_begin(cluster, cluster_at(launch, i) * launch->cluster);
    }
    fa_emu_cluster_run(cluster);
    return true;
}

static bool has_more(const fa_emu_launch *launch)
{
    return atomic_load(&launch->next_cluster) < launch->blocks / launch->cluster;
}

/* One OS thread. A cluster that waits for another is paused, and the next one begins in a seat of its own. Clusters
 * that wait for one another need no more seats than a GPU has room for. */
static void *work(void *argument)
{
    fa_emu_launch *launch = argument;
    fa_emu_cluster *seats[MAX_SEATS] = {NULL};
    const uint32_t count = seats_of(launch);
    bool begun = true;
    fa_emu_preempt_begin(launch);
    while (begun && !atomic_load(&launch->failed)) {
        begun = false;
        for (uint32_t i = 0; i < count && !atomic_load(&launch->failed); i++) {
            if (!seats[i] && !has_more(launch))
                break;
            if (!seats[i] && !(seats[i] = cluster_make(launch, i)))
                break;
            fa_emu_catch_faults(seats[i]->block[0], true);
            bool ran;
            do {
                ran = run_next(launch, seats[i]);
                begun |= ran;
            } while (ran && !seats[i]->paused && !seats[i]->stopped);
            fa_emu_catch_faults(seats[i]->block[0], false);
        }
    }
    fa_emu_preempt_end();
    fa_emu_self = NULL;
    for (uint32_t i = 0; i < count; i++)
        cluster_free(seats[i]);
    return NULL;
}

/* A launch runs on one OS thread when the object has __shared__ variables, which exist once per object. */
static int worker_count(const fa_emu_launch *launch)
{
    const fa_emu_build_info *build = launch->image->build;
    if (build->static_smem_begin != build->static_smem_end)
        return 1;
    long count = launch->grid->workers > 0 ? launch->grid->workers : fa_threads();
    count = count < 1 ? 1 : count > MAX_WORKERS ? MAX_WORKERS : count;
    const uint64_t clusters = launch->blocks / launch->cluster;
    return clusters < (uint64_t)count ? (int)clusters : (int)count;
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

/* The cluster size that the launch and the kernel ask for. */
static fa_status find_clusters(fa_emu_launch *launch)
{
    const int32_t *dims = launch->image->cluster_dims;
    const uint32_t asked = launch->grid->cluster > 1 ? launch->grid->cluster : 1;
    const int64_t x = dims != NULL && dims[0] > 1 ? dims[0] : 1;
    if (dims != NULL && (dims[1] > 1 || dims[2] > 1)) {
        snprintf(launch->error, launch->error_size, "__cluster_dims__(%d, %d, %d): the grid lies along x", dims[0],
                 dims[1], dims[2]);
        return FA_INFEASIBLE;
    }
    launch->explicit_cluster = dims != NULL || asked > 1;
    launch->cluster = dims != NULL ? (uint32_t)x : asked;
    if (dims != NULL && asked > 1 && x != asked) {
        snprintf(launch->error, launch->error_size, "__cluster_dims__(%d), but the launch asks for clusters of %u",
                 dims[0], asked);
        return FA_INFEASIBLE;
    }
    if (launch->cluster > FA_EMU_MAX_CLUSTER || launch->grid->grid.x % launch->cluster != 0) {
        snprintf(launch->error, launch->error_size,
                 "a grid of %u blocks along x in clusters of %u: at most %d, and whole ones", launch->grid->grid.x,
                 launch->cluster, FA_EMU_MAX_CLUSTER);
        return FA_INFEASIBLE;
    }
    return FA_PASS;
}

static atomic_bool running;

bool fa_emu_expire(void)
{
    const bool was = atomic_exchange(&running, false);
    if (was)
        fa_emu_interrupt();
    return was;
}

/* The verdict: races come before what ended the launch. */
static fa_status conclude(fa_emu_launch *launch, fa_findings *found)
{
    fa_status status = atomic_load(&launch->failed) ? fa_emu_status_of(launch->fault) : FA_PASS;
    if (status != FA_PASS)
        fa_emu_calls_name(launch->image, launch->error, launch->error_size);
    const bool race = launch->race != NULL && fa_race_explain(launch->race, found);
    if (status == FA_WRONG && strcmp(launch->fault, FA_EMU_RACE) != 0) {
        fa_finding one = {.text = ""};
        snprintf(one.fault, sizeof one.fault, "%s", launch->fault);
        snprintf(one.text, sizeof one.text, "%s", launch->error);
        fa_findings_add(found, &one);
    }
    if (launch->race != NULL && found->count > 0)
        fa_findings_text(found, launch->error, launch->error_size);
    return race ? FA_WRONG : status;
}

fa_status fa_emu_run(const fa_emu_image *image, const fa_emu_grid *grid, const fa_params *params, fa_findings *found,
                     char *error, size_t error_size)
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
        return FA_INFEASIBLE;
    }
    launch.threads = (uint32_t)threads;
    FA_TRY(find_clusters(&launch));
    fa_emu_sanitizer_find(image->build);
    fa_emu_wmma_maps(&launch);
    launch.race = image->build->tsan ? fa_race_begin(&launch) : NULL;
    launch.registers_touched = fa_emu_registers_touched;
    atomic_store(&running, true);
    if (launch.race)
        work(&launch);
    else
        work_on_threads(&launch);
    atomic_store(&running, false);
    const fa_status status = conclude(&launch, found);
    fa_race_end(launch.race);
    return status;
}
