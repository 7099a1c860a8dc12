/* Clusters under the race detector. The cluster's barrier releases what its threads did before they arrived; a relaxed
 * arrival, what they did before their last fence. Passing it also proves that all blocks have started. */
#pragma once

#include "emu/race/thread.h"

/* Without a race detector these do nothing. The running thread arrives; all have arrived; the running thread has
 * waited. */
void fa_race_cluster_arrive(fa_emu_worker *worker, bool relaxed);
void fa_race_cluster_complete(fa_emu_cluster *cluster);
void fa_race_cluster_observed(fa_emu_worker *worker);
void fa_race_cluster_forget(fa_emu_cluster *cluster);

/* Whether the running thread knows that a block has started. */
bool fa_race_has_begun(const fa_emu_worker *worker, const fa_emu_worker *block);
/* The last epoch of another thread that the running thread knows of, released or not. */
uint32_t fa_race_reached(const fa_emu_worker *worker, uint32_t block, uint32_t thread);
/* The running thread accesses a barrier of another block. */
void fa_race_visit(const fa_emu_worker *worker, fa_emu_worker *block, const void *pc);
/* The block ends. Reports accesses of other blocks to its shared memory that are not ordered before that:
 * worker->stopped. */
void fa_race_block_ends(fa_emu_worker *worker);
