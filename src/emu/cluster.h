/* The blocks of a cluster run on one OS thread and take turns there. A block alone is a cluster of one. */
#ifndef FA_EMU_CLUSTER_H
#define FA_EMU_CLUSTER_H

#include "emu/core/state.h"

/* Begins the cluster that consists of the blocks from `first` on. */
void fa_emu_cluster_begin(fa_emu_cluster *cluster, uint64_t first);
/* Runs them to their end, or until cluster->paused: those that can go on wait for other clusters; cluster->stopped: one
 * of them failed, and the failure is reported. */
void fa_emu_cluster_run(fa_emu_cluster *cluster);

#endif
