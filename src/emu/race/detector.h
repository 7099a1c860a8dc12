/* The race detector. g++ -fsanitize=thread makes the kernel report every access to memory (hooks.c). The detector
 * finds accesses that CUDA does not order. The order is that of the PTX memory model:
 *   - a barrier of the block orders the threads that reach it, __syncwarp(mask) the lanes of the mask. Shuffles,
 *     votes and products order nothing;
 *   - what a thread did before a fence happened before what another does after one, when the second has read by an
 *     atomic or volatile access what the first wrote by one after its fence. Within a block a barrier counts as a fence
 *     of the reader. Between blocks a ticket or a polled flag, then a barrier, is enough for volatile and atomic reads
 *     (the last block's in the programming guide); plain ones need an acquire, or a fence before or after the barrier;
 *   - fences and atomics hold in their scope: __threadfence_block and atomicAdd_block within the block.
 * Nothing else orders blocks: that they run one after another here is ignored. */
#pragma once

#include "emu/race/state.h"

fa_race *fa_race_begin(const fa_emu_launch *launch);
void fa_race_end(fa_race *race);
/* The threads of a worker: worker->race. */
void fa_race_team_make(fa_emu_worker *worker);
void fa_race_team_free(fa_emu_worker *worker);

/* Events of the schedule. */
void fa_race_block_begins(fa_emu_worker *worker);
void fa_race_barrier_arrive(fa_emu_worker *worker, int32_t id); /* the running thread */
void fa_race_barrier_release(fa_emu_worker *worker, int32_t id);
void fa_race_warp_syncs(fa_emu_worker *worker, uint32_t warp, uint32_t lanes);
void fa_race_thread_ends(fa_emu_worker *worker);

/* release: a thread publishes what it has done and knows. acquire: it learns what others have published. */
void fa_race_meet(const fa_emu_worker *worker, fa_race_meeting *meeting, const fa_race_thread *thread);
void fa_race_part(const fa_emu_worker *worker, const fa_race_meeting *meeting, fa_race_thread *thread);
void fa_race_meeting_reset(fa_race_meeting *meeting, uint32_t width);
