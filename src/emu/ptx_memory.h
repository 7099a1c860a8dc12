/* PTX that touches memory: ld, st, atom, red, cp.async, cvta. Every access is declared to the sanitizers as the
 * kernel's. */
#ifndef FA_EMU_PTX_MEMORY_H
#define FA_EMU_PTX_MEMORY_H

#include "emu/ptx_state.h"

void fa_emu_ptx_memory(fa_emu_ptx_run *run);

/* The bytes an operand [a + b] names, checked for alignment and declared to the sanitizers. */
unsigned char *fa_emu_ptx_access(const fa_emu_ptx_run *run, int arg, uint32_t size, uint32_t align, bool write);

#endif
