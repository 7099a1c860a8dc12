/* PTX that touches memory: ld, st, atom, red, cp.async, cvta. Sanitizers see every access as the kernel's. */
#pragma once

#include "emu/ptx/state.h"

void fa_emu_ptx_memory(fa_emu_ptx_run *run);

/* Where operand `arg` points: an address of shared memory, or a generic one. */
unsigned char *fa_emu_ptx_window_place(const fa_emu_ptx_run *run, int arg);
unsigned char *fa_emu_ptx_generic_place(const fa_emu_ptx_run *run, int arg);
/* The place of operand `arg` in shared memory of `owner`, a block of the cluster, in that block's own window. */
unsigned char *fa_emu_ptx_cluster_place(const fa_emu_ptx_run *run, int arg, fa_emu_worker **owner);
/* Ends the running block unless the other one has started and not ended. */
void fa_emu_ptx_reach(const fa_emu_ptx_run *run, const fa_emu_worker *block);
/* Under AddressSanitizer: reports bytes that the kernel may not touch. */
void fa_emu_ptx_check(const fa_emu_ptx_run *run, void *address, uint32_t size, bool write);

/* Reports an access that the compiler did not see to the sanitizers. */
void fa_emu_ptx_touch(const fa_emu_ptx_run *run, void *address, uint32_t size, bool write);

/* The bytes an operand [a + b] names, checked for alignment and declared to the sanitizers. */
unsigned char *fa_emu_ptx_access(const fa_emu_ptx_run *run, int arg, uint32_t size, uint32_t align, bool write);
