/* PTX of a whole warp or block: barriers, shuffles, votes, matrices. */
#pragma once

#include "emu/core/state.h"
#include "emu/ptx/state.h"

void fa_emu_ptx_group(fa_emu_ptx_run *run);
/* The last lane has come to an mma or movmatrix (kind FA_EMU_PTX): computes for all 32. */
void fa_emu_ptx_compute(fa_emu_op *const op[FA_EMU_WARP]);

/* The barrier of a cluster: PTX ISA, "barrier.cluster". All running threads of its blocks arrive, then wait. */
void fa_emu_cluster_barrier_reset(fa_emu_cluster *cluster);
void fa_emu_ptx_cluster_barrier(const fa_emu_ptx_run *run);
/* The barrier no longer waits for a thread that has exited. */
void fa_emu_cluster_barrier_thread_ends(fa_emu_worker *worker, const fa_emu_fibre *fibre);
