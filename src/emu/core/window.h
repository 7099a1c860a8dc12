/* The shared memory of a cluster: PTX ISA, "State Spaces: Shared State Space", .shared::cta and .shared::cluster. A
 * place in a block's shared memory is a pointer as that block has it. While another block runs, its __shared__
 * variables lie elsewhere: fa_emu_window_now. */
#ifndef FA_EMU_CORE_WINDOW_H
#define FA_EMU_CORE_WINDOW_H

#include "emu/core/state.h"

/* Where an address of shared::cluster points, and in whose shared memory. NULL: nowhere. */
unsigned char *fa_emu_window_place(const fa_emu_worker *worker, uint32_t address, fa_emu_worker **owner);
/* The place as the running block can touch it. */
unsigned char *fa_emu_window_now(const fa_emu_worker *owner, unsigned char *place);
/* Of a pointer that the running block has: the block of its cluster in whose shared memory it lies, and the place
 * there. NULL: no block's. */
fa_emu_worker *fa_emu_window_owner(const fa_emu_worker *worker, const void *p, unsigned char **place);
/* The block `rank` of the cluster; NULL: there is none. */
fa_emu_worker *fa_emu_window_block(const fa_emu_worker *worker, uint32_t rank);

/* For the running block, as the kernel's object calls them: fa_emu_api. */
void *fa_emu_window_map(const void *p, uint32_t rank);
int32_t fa_emu_window_rank(const void *p);
uint32_t fa_emu_window_address(const void *p);

#endif
