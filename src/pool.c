#include "pool.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "report/progress.h"
#include "report/text.h"

void fa_pool_begin(fa_pool *pool, fa_work *work, fa_runs *runs)
{
    const bool stream = runs->in != NULL;
    const size_t asked = (size_t)runs->options->jobs, cores = (size_t)fa_threads();
    const size_t jobs = asked > 0 ? asked : stream ? 1 : cores;
    *pool = (fa_pool){.work = work, .runs = runs, .cores = (int)cores, .known = runs->count, .list_ended = !stream};
    pool->jobs = (int)(stream || jobs < runs->count ? jobs : runs->count);
    pool->jobs = pool->jobs < FA_CHILDREN_MAX ? pool->jobs : FA_CHILDREN_MAX;
    pool->children = fa_alloc((size_t)pool->jobs * sizeof *pool->children);
}

/* Whether a run may take a GPU: until a run has opened it nobody knows what --device auto takes. */
static bool may_use_gpu(const fa_pool *pool, const fa_options *options)
{
    if (options->device == FA_DEVICE_AUTO)
        return !options->compile_only && !options->select && !pool->on_emu;
    return options->device == FA_DEVICE_CUDA && !options->compile_only;
}

/* With --jobs and --device cuda several check and compile at a time; by the lock of the GPU one times, alone on it. */
static bool shares_gpu(const fa_options *options) { return options->device == FA_DEVICE_CUDA && options->jobs > 1; }

/* A process without a run; NULL when there is none, or a run needs the GPU for itself. */
static fa_child *free_child(const fa_pool *pool)
{
    for (int i = 0; !pool->alone && i < pool->jobs; i++)
        if (!pool->children[i].busy)
            return &pool->children[i];
    return NULL;
}

static bool any_busy(const fa_pool *pool)
{
    for (int i = 0; i < pool->jobs; i++)
        if (pool->children[i].busy)
            return true;
    return false;
}

/* Begins what can be begun while run `index` is waited for. */
static void begin_runs(fa_pool *pool, size_t index)
{
    fa_child *child;
    while (pool->begun < pool->known && pool->begun < index + FA_POOL_AHEAD && (child = free_child(pool)) != NULL) {
        const fa_options *options = &pool->runs->at[pool->begun]->options;
        const bool on_gpu = may_use_gpu(pool, options), alone = on_gpu && !shares_gpu(options);
        if (alone && any_busy(pool))
            return;
        /* On a GPU they wait for each other, and for it, half of the time. */
        const int share = pool->cores / (alone ? 1 : on_gpu && pool->jobs > 2 ? 2 : pool->jobs);
        pool->alone = alone;
        fa_child_begin(child, pool->work, pool->runs, pool->begun++, share > 1 ? share : 1);
    }
}

static void keep_result(fa_pool *pool, fa_child *child)
{
    const size_t slot = child->run % FA_POOL_AHEAD;
    fa_result *kept = fa_alloc(sizeof *kept);
    *kept = *child->result;
    pool->kept[slot] = kept;
    pool->dumps[slot] = child->dump;
    pool->alone = false;
    pool->on_emu = kept->device_known && strcmp(kept->device.backend, "emu") == 0;
}

/* The next line of --stream, which has come. */
static void read_line(fa_pool *pool)
{
    if (fa_runs_reach(pool->runs, pool->known, &pool->refused, &pool->why))
        pool->known = pool->runs->count;
    else
        pool->list_ended = true;
}

/* Waits until a run is done, a line has come or half a second is over. */
static void wait_for_some(fa_pool *pool, size_t index)
{
    enum { LOOK_MS = 500 };
    struct pollfd at[FA_CHILDREN_MAX + 1];
    nfds_t count = 0;
    int most_ms = any_busy(pool) ? LOOK_MS : -1;
    bool moved = false;
    for (int i = 0; i < pool->jobs; i++) {
        const fa_child *child = &pool->children[i];
        if (!child->busy)
            continue;
        const double left_s = child->start_s + pool->runs->at[child->run]->options.timeout - fa_now_s();
        most_ms = left_s * 1e3 < most_ms ? left_s > 0 ? (int)(left_s * 1e3) + 1 : 0 : most_ms;
        at[count++] = (struct pollfd){.fd = child->line, .events = POLLIN};
    }
    const bool reads = !pool->list_ended && pool->begun == pool->known && free_child(pool) != NULL;
    if (reads)
        at[count] = (struct pollfd){.fd = fileno(pool->runs->in), .events = POLLIN};
    const int ready = poll(at, count + reads, most_ms);
    for (int i = 0; i < pool->jobs; i++) {
        fa_child *child = &pool->children[i];
        if (!child->busy)
            continue;
        if (fa_child_is_done(child, pool->runs)) {
            keep_result(pool, child);
            moved = true;
        } else if (child->run == index) {
            if (pool->runs->count == 1 && pool->runs->in == NULL)
                fa_report_begin(child->result, pool->runs->at[index]);
            fa_progress_show(child->result, pool->runs, index, fa_now_s() - child->start_s);
        }
    }
    if (ready > 0 && reads && at[count].revents != 0)
        read_line(pool);
    else if (ready > 0 && !moved)
        fa_rest(0.001); /* a line is closed, its process not yet ended */
}

static void drop_result(fa_pool *pool, size_t slot)
{
    free(pool->kept[slot]);
    free(pool->dumps[slot]);
    pool->kept[slot] = NULL;
    pool->dumps[slot] = NULL;
}

const fa_result *fa_pool_next(fa_pool *pool, size_t index, fa_status *status, fa_reason *why)
{
    if (pool->runs == NULL)
        return NULL;
    const size_t slot = index % FA_POOL_AHEAD;
    drop_result(pool, (index + FA_POOL_AHEAD - 1) % FA_POOL_AHEAD);
    while (pool->kept[slot] == NULL) {
        begin_runs(pool, index);
        if (index == pool->begun && pool->list_ended) {
            *status = pool->refused;
            *why = pool->why;
            return NULL;
        }
        wait_for_some(pool, index);
        if (pool->runs->many && fa_children_signal() != 0)
            return NULL; /* what a signal cut off in a list has no record */
    }
    fa_progress_clear();
    pool->dump = pool->dumps[slot];
    return pool->kept[slot];
}

void fa_pool_end(fa_pool *pool)
{
    fa_children_end(pool->children, pool->jobs);
    for (size_t slot = 0; slot < FA_POOL_AHEAD; slot++)
        drop_result(pool, slot);
    free(pool->children);
    signal(fa_children_signal(), SIG_DFL);
    raise(fa_children_signal()); /* 0: none, and nothing happens */
}
