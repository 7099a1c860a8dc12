/* What the race detector keeps of a launch. Definitions alone. */
#ifndef FA_EMU_RACE_STATE_H
#define FA_EMU_RACE_STATE_H

#include "emu/core/state.h"
#include "emu/race/clock.h"
#include "emu/race/shadow.h"
#include "emu/race/stack.h"

enum { FA_RACE_DEVICE, FA_RACE_BLOCK, FA_RACE_SCOPES };

/* A thread has read, in this epoch, what atomic accesses left at an address until `time`: they come before what it
 * does there next, as one location has one order. */
typedef struct fa_race_reading {
    uint32_t block, epoch, time;
    uint16_t thread;
} fa_race_reading;
enum { FA_RACE_READINGS = 64 }; /* of the threads that read last */

/* What has been handed over at an address, to threads of the whole device, and to those of one block. */
typedef struct fa_race_place {
    uint64_t address;
    fa_race_reading *readings; /* a ring */
    uint32_t reading_count;
    fa_race_known *known[FA_RACE_SCOPES];
    uint32_t block;
} fa_race_place;

/* How tensor maps are handed over (map.h): the last releases of the launch, and acquires of a block. seen: a bit
 * for each release that the acquiring thread knew of, of those before number `until`. */
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
    fa_race_known *forgotten; /* what releases covered that are no longer in it: taken for handed over */
} fa_race_maps;

typedef struct fa_race {
    const fa_emu_launch *launch;
    uint64_t module; /* address at which the object lies */
    char file[1024];
    uint32_t width; /* of a clock: threads of a block, then actors (async.h) */
    fa_race_shadow shadow;
    fa_race_stacks stacks;
    fa_race_place *places; /* a hash table; address 0: free */
    size_t place_count, place_capacity;
    uint32_t time; /* atomic and volatile accesses so far */
    fa_race_maps maps;
    bool found;
    const char *class, *between; /* what it is, and what lies between the two, if not a data race */
    char note[200];              /* of one access alone: what is wrong with it */
    fa_race_access now, before;  /* the race */
    uint64_t address, offset;    /* offset: in shared memory, or from the pointer in `memory` */
    uint32_t size;
    const char *memory;
} fa_race;

/* Copies and products of a block are actors: they have places in the clocks after the threads. One for the products of
 * each warp, two for the stores of a thread (their reads, their writes), one for the copies that a barrier awaits. */
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
    uint32_t *clock;                         /* of the threads of its block */
    fa_race_known *others;                   /* of other blocks */
    fa_race_known *reached;                  /* come to pass, as the cluster's barriers say, but not handed over */
    fa_race_known *released[FA_RACE_SCOPES]; /* as of its last fence of this scope, or a wider one */
    fa_race_known *observed[FA_RACE_SCOPES]; /* read by atomics; known after a fence or a barrier */
    const void *pc;                          /* of its last access */
    fa_race_fences fences[FA_RACE_FENCE_KINDS];
    fa_race_guess guess;
    const void *asm_pc; /* of the asm statement that it is in; NULL: in none */
    const fa_emu_place *asm_at;
    uint32_t stack, spins;
    bool fenced, block_scope;
} fa_race_thread;

/* What has arrived at a barrier. */
typedef struct fa_race_meeting {
    uint32_t *clock;
    fa_race_known *others, *released[FA_RACE_SCOPES];
} fa_race_meeting;

/* A barrier object. */
typedef struct fa_race_phase {
    fa_race_meeting gathering, complete; /* of the phase that is under way; of the one before */
    uint32_t slot, epoch;                /* of the copies that it awaits; slot 0: none so far */
    fa_race_access init;
    uint32_t clocks[];
} fa_race_phase;

typedef struct fa_race_team {
    fa_race_thread thread[FA_EMU_MAX_THREADS];
    fa_race_meeting barrier[FA_EMU_BARRIERS], warp, ended;
    fa_race_meeting released, reached;         /* of those that have arrived at the cluster's barrier */
    uint32_t *clocks;                          /* memory of all of them */
    uint16_t storing[FA_RACE_STORING_THREADS]; /* threads that have issued bulk stores */
    fa_race_access *visits;                    /* of threads of other blocks to its barriers, the last of each */
    uint32_t visit_count, visit_capacity;
    fa_race_map_acquire_note *map_acquires; /* a ring */
    uint32_t map_acquire_count;
    uint32_t map_acquired_until; /* releases below this number are taken for acquired: acquires have left the ring */
    uint32_t storing_threads, phases; /* how many; barriers that have awaited a copy */
} fa_race_team;

#endif
