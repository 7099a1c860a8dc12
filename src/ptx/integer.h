/* Integer arithmetic, logic, shifts and bit fields. Pure. */
#pragma once

#include "ptx/program.h"

/* False: a division by zero. */
bool fa_ptx_integer(const fa_ptx_instr *i, uint64_t *r, unsigned *carry);
void fa_ptx_bits(const fa_ptx_instr *i, uint64_t *r);
uint32_t fa_ptx_prmt(const fa_ptx_instr *i, uint64_t a, uint64_t b, uint64_t c);
