/* The runs of a list, several at a time, each in a process; their results in the order of the list. */
#pragma once

#include "child.h"

#define FA_POOL_AHEAD 1024 /* a run may be done before this many earlier ones are */

typedef struct fa_pool {
    fa_work *work;
    fa_runs *runs;
    fa_child *children;
    int jobs, cores;
    size_t begun, known; /* runs that a child has begun, and those that are in the list and valid */
    bool list_ended;     /* no more will be */
    bool alone;          /* the run that is under way needs the GPU for itself */
    bool on_emu;         /* what --device auto has taken */
    fa_status refused;   /* a line of --stream, and why */
    fa_reason why;
    fa_result *kept[FA_POOL_AHEAD]; /* of the runs that are done, by number modulo FA_POOL_AHEAD */
    char *dumps[FA_POOL_AHEAD];     /* what a sanitizer said of them; NULL: nothing */
    const char *dump;               /* of the last result */
} fa_pool;

/* At most --jobs runs at a time; without it as many as there are cores, with --stream one. They share the cores. */
void fa_pool_begin(fa_pool *pool, fa_work *work, fa_runs *runs);
/* The result of run `index`, with `dump`; valid until the next call. The caller counts up from 0. Waits for this run,
 * while others go on. A run on a GPU has no other beside it. NULL at the end of the list, and at a line that is
 * refused, with the reason in `status` and `why`. */
const fa_result *fa_pool_next(fa_pool *pool, size_t index, fa_status *status, fa_reason *why);
/* Ends what is under way. A zeroed pool has nothing. */
void fa_pool_end(fa_pool *pool);
