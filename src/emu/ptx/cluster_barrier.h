/* The barrier of a cluster: PTX ISA, "barrier.cluster". All running threads of its blocks arrive, then wait. */
#ifndef FA_EMU_PTX_CLUSTER_BARRIER_H
#define FA_EMU_PTX_CLUSTER_BARRIER_H

#include "emu/core/state.h"
#include "emu/ptx/state.h"

void fa_emu_cluster_barrier_reset(fa_emu_cluster *cluster);
void fa_emu_ptx_cluster_barrier(const fa_emu_ptx_run *run);
/* The barrier no longer waits for a thread that has exited. */
void fa_emu_cluster_barrier_thread_ends(fa_emu_worker *worker, const fa_emu_fibre *fibre);

#endif
