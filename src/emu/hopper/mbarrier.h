/* Barrier objects: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". */
#pragma once

#include "emu/core/pending.h"
#include "emu/ptx/state.h"

void fa_emu_ptx_mbarrier(fa_emu_ptx_run *run);

/* cp.async.mbarrier.arrive: completes the thread's copies, then arrives. */
void fa_emu_mbarrier_copies_arrive(const fa_emu_ptx_run *run);

/* The live object that operand `arg` names, or that lies at a place of a block; misuse ends the running block. */
fa_emu_mbarrier *fa_emu_mbarrier_named(const fa_emu_ptx_run *run, int arg);
fa_emu_mbarrier *fa_emu_mbarrier_at(const fa_emu_ptx_run *run, fa_emu_worker *owner, unsigned char *at);
void fa_emu_mbarrier_bytes_came(fa_emu_mbarrier *barrier, uint32_t bytes);
