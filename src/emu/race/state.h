/* The race detector's state of a launch. Only definitions. */
#pragma once

#include "emu/core/state.h"
#include "emu/race/clock.h"
#include "emu/race/shadow.h"
#include "emu/race/stack.h"

/* MET: what threads had read of the device before a barrier at which they met this one. */
enum { FA_RACE_DEVICE, FA_RACE_BLOCK, FA_RACE_SCOPES, FA_RACE_MET = FA_RACE_SCOPES, FA_RACE_OBSERVED };

/* In this epoch a thread has read what atomic accesses wrote at an address until `time`. They happened before its later
 * accesses there: one location has one order. */
typedef struct fa_race_reading {
    uint32_t block, epoch, time;
    uint16_t thread;
} fa_race_reading;
enum { FA_RACE_READINGS = 64 }; /* the last readers */

/* What has been released at an address, to the whole device and to one block. */
typedef struct fa_race_place {
    uint64_t address;
    fa_race_reading *readings; /* a ring */
    uint32_t reading_count;
    fa_race_known *known[FA_RACE_SCOPES];
    uint32_t block;
} fa_race_place;

/* Releases and acquires of tensor maps (map.h): the last releases of the launch, and acquires of a block. seen: a bit
 * for each release before number `until` that the acquiring thread knew of. */
typedef enum { FA_RACE_MAP_BLOCK, FA_RACE_MAP_CLUSTER, FA_RACE_MAP_DEVICE } fa_race_map_scope;
enum { FA_RACE_MAP_RELEASES = 256, FA_RACE_MAP_ACQUIRES = 2048 };
typedef struct fa_race_map_release_note {
    uint32_t block, thread, epoch;
    fa_race_map_scope scope;
    fa_race_known *known;
} fa_race_map_release_note;
typedef struct fa_race_map_acquire_note {
    uint64_t address, seen[FA_RACE_MAP_RELEASES / 64];
    uint32_t thread, epoch, until;
} fa_race_map_acquire_note;
typedef struct fa_race_maps {
    fa_race_map_release_note *releases; /* a ring */
    uint32_t count;
    fa_race_known *forgotten; /* covered by releases that have left the ring; taken as released */
} fa_race_maps;

/* What was found: two accesses that nothing orders, or an undefined one. */
enum { FA_RACE_FOUND = 64, FA_RACE_STORE_BYTES = 64 };
typedef struct fa_race_finding {
    const char *class, *between; /* its name and the missing order, if it is not a data race */
    char note[200];              /* of a single access: what is wrong with it */
    fa_race_access now, before;
    uint64_t offset; /* in shared memory, or from the pointer in `memory` */
    uint32_t size;
    const char *memory;
    bool differs; /* it was not always two plain stores of one value */
} fa_race_finding;

/* A plain store that raced with another one: whether it changed the bytes is seen before the next write. */
typedef struct fa_race_raced_store {
    const void *at;
    size_t size;
    unsigned char bytes[FA_RACE_STORE_BYTES];
    uint64_t findings; /* a bit for each */
} fa_race_raced_store;

typedef struct fa_race {
    const fa_emu_launch *launch;
    uint64_t module; /* load address of the object */
    char file[1024];
    uint32_t width; /* width of a clock: threads of a block, then actors (async.h) */
    fa_race_shadow shadow;
    fa_race_stacks stacks;
    fa_race_place *places; /* a hash table; address 0: free */
    size_t place_count, place_capacity;
    uint32_t time; /* atomic and volatile accesses so far */
    fa_race_maps maps;
    fa_race_finding found[FA_RACE_FOUND];
    uint32_t found_count, touches; /* touches: accesses since the first finding that differs */
    bool found_more, differs;
    const void *storing; /* the running thread's plain store; size: of it */
    size_t storing_size;
    fa_race_raced_store store;
} fa_race;

/* Copies and products of a block are actors, with slots in the clocks after the threads: one for the products of each
 * warp, two for the stores of a thread (reads, writes), one for the copies that a barrier awaits. */
enum {
    FA_RACE_STORING_THREADS = 32,
    FA_RACE_PHASES = 64,
    FA_RACE_ACTORS = FA_EMU_MAX_WARPS + 2 * FA_RACE_STORING_THREADS + FA_RACE_PHASES
};

/* The epochs of a thread in which it had a fence of one kind, ascending. */
enum { FA_RACE_PROXY_SHARED, FA_RACE_PROXY_GLOBAL, FA_RACE_BARRIER_INIT, FA_RACE_FENCE_KINDS };
typedef struct fa_race_fences {
    uint32_t *at, count, capacity;
} fa_race_fences;

/* A thread's plain read that is not recorded yet (fa_race_settle); size 0: none. */
typedef struct fa_race_guess {
    uint64_t address;
    const void *pc;
    uint32_t size, stack, epoch;
} fa_race_guess;

typedef struct fa_race_thread {
    uint32_t *clock;        /* what it knows of its own block */
    fa_race_known *others;  /* what it knows of other blocks */
    fa_race_known *reached; /* what it knows has happened, by the cluster's barriers, without being released to it */
    fa_race_known *released[FA_RACE_SCOPES];   /* at its last fence of this scope or a wider one */
    fa_race_known *observed[FA_RACE_OBSERVED]; /* known after a fence, of its block after a barrier, too */
    const void *pc;                            /* pc of its last access */
    fa_race_fences fences[FA_RACE_FENCE_KINDS];
    fa_race_guess guess;
    uint32_t stack, spins;
    bool fenced, block_scope;
} fa_race_thread;

/* What the threads that arrived at a barrier have released. */
typedef struct fa_race_meeting {
    uint32_t *clock;
    fa_race_known *others, *released[FA_RACE_SCOPES], *met;
} fa_race_meeting;

/* A barrier object. */
typedef struct fa_race_phase {
    fa_race_meeting gathering, complete; /* the current phase; the previous one */
    uint32_t slot, epoch;                /* actor of the copies that it awaits; slot 0: none so far */
    fa_race_access init;
    uint32_t clocks[];
} fa_race_phase;

typedef struct fa_race_team {
    fa_race_thread thread[FA_EMU_MAX_THREADS];
    fa_race_meeting barrier[FA_EMU_BARRIERS], warp, ended;
    fa_race_meeting released, reached;         /* by arrivals at the cluster's barrier */
    uint32_t *clocks;                          /* the memory of all clocks */
    uint16_t storing[FA_RACE_STORING_THREADS]; /* threads that have issued bulk stores */
    fa_race_access *visits;                    /* the last access of each thread of another block to its barriers */
    uint32_t visit_count, visit_capacity;
    fa_race_map_acquire_note *map_acquires; /* a ring */
    uint32_t map_acquire_count;
    uint32_t map_acquired_until; /* releases below this number count as acquired: their acquires have left the ring */
    uint32_t storing_threads, phases; /* number of `storing`; of barriers that have awaited a copy */
} fa_race_team;
