/* The blocks of a cluster run on one OS thread and take turns there. A block alone is a cluster of one. */
#pragma once

#include "emu/core/state.h"

/* Starts the cluster whose first block is number `first`. */
void fa_emu_cluster_begin(fa_emu_cluster *cluster, uint64_t first);
/* Runs its blocks to their end. cluster->paused: they wait for other clusters. cluster->stopped: a block failed, and
 * that is reported. */
void fa_emu_cluster_run(fa_emu_cluster *cluster);
