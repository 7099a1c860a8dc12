/* The shared memory of a cluster: PTX ISA, "State Spaces: Shared State Space", .shared::cta and .shared::cluster. A
 * place in a block's shared memory is a pointer in that block's own window. While another block runs, its __shared__
 * variables lie elsewhere: fa_emu_window_now. */
#pragma once

#include "emu/core/state.h"

/* The place that an address of shared::cluster names, and the block that owns it. NULL: none. */
unsigned char *fa_emu_window_place(const fa_emu_worker *worker, uint32_t address, fa_emu_worker **owner);
/* The pointer by which the running block can access the place. */
unsigned char *fa_emu_window_now(const fa_emu_worker *owner, unsigned char *place);
/* The block of the cluster whose shared memory a pointer of the running block is in, and the place. NULL: none. */
fa_emu_worker *fa_emu_window_owner(const fa_emu_worker *worker, const void *p, unsigned char **place);
/* The block `rank` of the cluster; NULL: there is none. */
fa_emu_worker *fa_emu_window_block(const fa_emu_worker *worker, uint32_t rank);

/* What the kernel's object calls (fa_emu_api), for the running block. */
void *fa_emu_window_map(const void *p, uint32_t rank);
int32_t fa_emu_window_rank(const void *p);
uint32_t fa_emu_window_address(const void *p);
