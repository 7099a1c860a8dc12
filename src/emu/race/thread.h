/* A thread of the race detector. */
#pragma once

#include "emu/race/state.h"

static inline fa_race *fa_race_of(const fa_emu_worker *worker) { return worker->launch->race; }

static inline uint32_t fa_race_index(const fa_emu_worker *worker)
{
    return (uint32_t)(worker->current - worker->fibres);
}

static inline fa_race_thread *fa_race_current(const fa_emu_worker *worker)
{
    return &worker->race->thread[fa_race_index(worker)];
}

/* __shared__ variables have one address in all blocks: each block has its own shadow of them. */
enum { FA_RACE_SEAT_SHIFT = 48 };
uint64_t fa_race_shadow_address(const fa_emu_worker *worker, uint64_t address);
/* Block number `block` of the worker's cluster; NULL: it is in another cluster. */
static inline fa_emu_worker *fa_race_peer(const fa_emu_worker *worker, uint32_t block)
{
    const uint32_t rank = block - worker->cluster->block[0]->block_number;
    return rank < worker->cluster->count ? worker->cluster->block[rank] : NULL;
}

/* What accesses memory: a thread, or an actor that a thread has issued. index: its slot in the clocks of `block`. */
typedef struct fa_race_actor {
    uint32_t index, issuer, epoch, block;
} fa_race_actor;

/* Offset in the module of the instruction before `pc`. */
static inline uint32_t fa_race_place_of(const fa_race *race, const void *pc)
{
    return (uint32_t)((uint64_t)(uintptr_t)pc - 1 - race->module);
}

/* The running thread's present access, for a report. */
fa_race_access fa_race_access_now(const fa_emu_worker *worker, int kind, const void *pc);
/* Drops a reference and sets *known to NULL. */
void fa_race_forget(fa_race_known **known);
/* What was released to the thread happened before what it does next. */
void fa_race_learn(const fa_emu_worker *worker, fa_race_thread *thread, fa_race_known *known);
/* What the thread has read through atomics of this scope happened before what it does next. */
void fa_race_learn_observed(const fa_emu_worker *worker, fa_race_thread *thread, int scope);
/* All that the running thread has done and knows, to be released. */
fa_race_known *fa_race_snapshot(const fa_emu_worker *worker, fa_race_thread *thread);

/* Fences for the async proxy and for barrier objects. */

/* A fence of the running thread; kind: FA_RACE_PROXY_SHARED and so on. */
void fa_race_note_fence(int kind);
void fa_race_fences_forget(fa_race_thread *thread);
/* Whether there is one in the epochs from `epoch` to `last`. */
bool fa_race_fence_after(const fa_race_fences *fences, uint32_t epoch, uint32_t last);
/* Whether the thread of an access, in the worker's cluster, had a fence after it that `knower` knows of. */
bool fa_race_fence_between(const fa_emu_worker *worker, const fa_race_access *access, uint32_t knower,
                           uint64_t address);
