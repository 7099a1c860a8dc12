/* Inline PTX: runs the text of an asm statement on the values of its operands. */
#pragma once

#include "emu/core/abi.h"

/* The api's entry. values: in and out, one for each operand of the site. pc, frame: the kernel's, for the sanitizers'
 * reports; may be NULL without a sanitizer. */
void fa_emu_ptx(fa_emu_ptx_site *site, const fa_emu_place *at, uint64_t *values, void *const *places, const void *pc,
                const void *frame);
