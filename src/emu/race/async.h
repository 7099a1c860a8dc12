/* Copies and products under the race detector. Each is an actor: what it reads and writes happens after its issue, and
 * before the wait that covers it. PTX ISA, "Memory Consistency Model: Proxies": memory that a thread has written
 * reaches the async proxy by that thread's fence.proxy.async; what an actor has written, a thread by the wait. */
#pragma once

#include "emu/race/thread.h"

typedef enum { FA_RACE_STORE_READS, FA_RACE_STORE_WRITES } fa_race_store;

/* Barrier objects, for the running thread. init allocates *phase when it is NULL. */
void fa_race_phase_init(fa_race_phase **phase, const void *pc);
void fa_race_phase_used(const fa_race_phase *phase, const void *pc);
/* False: the thread arrives without knowing that the previous phase is complete. IN_BLOCK: nothing is released to other
 * blocks. */
typedef enum { FA_RACE_ARRIVES, FA_RACE_ARRIVES_IN_BLOCK, FA_RACE_ARRIVES_RELAXED } fa_race_arrival;
bool fa_race_phase_arrive(fa_race_phase *phase, fa_race_arrival how);
void fa_race_phase_complete(fa_race_phase *phase);
void fa_race_phase_observed(fa_race_phase *phase);
void fa_race_phase_bytes_came(fa_emu_worker *worker, fa_race_phase *phase);
void fa_race_phase_free(fa_race_phase *phase);

/* The actor of the copy or product being issued; without a race detector it does nothing. owner: the block that has the
 * barrier. */
fa_race_actor fa_race_actor_of_phase(fa_emu_worker *worker, fa_emu_worker *owner, fa_race_phase *phase, const void *pc);
fa_race_actor fa_race_actor_of_group(fa_emu_worker *worker, uint32_t group, fa_race_store which);
fa_race_actor fa_race_actor_of_products(fa_emu_worker *worker, uint32_t warp, uint32_t group);
/* place: in shared memory of `owner`, or in global memory. */
void fa_race_actor_touch(fa_emu_worker *worker, const fa_race_actor *actor, const fa_emu_worker *owner,
                         const void *place, size_t size, int kind, const void *pc);

/* A copy that the running thread issues may read its tensor map at any time until it is complete. */
void fa_race_actor_reads_map(fa_emu_worker *worker, const fa_race_actor *actor, const void *map, const void *pc);

/* The running thread, or a warp, has waited for its groups up to `group`. */
void fa_race_group_waited(fa_emu_worker *worker, uint32_t group, fa_race_store which);
void fa_race_products_waited(fa_emu_worker *worker, uint32_t warp, uint32_t group);
