/* Logic, shifts and bit fields. Pure. */
#ifndef FA_PTX_BITS_H
#define FA_PTX_BITS_H

#include "ptx/program.h"

void fa_ptx_bits(const fa_ptx_instr *i, uint64_t *r);
uint32_t fa_ptx_prmt(const fa_ptx_instr *i, uint64_t a, uint64_t b, uint64_t c);

#endif
