/* Arithmetic on floating-point numbers. Pure. */
#ifndef FA_PTX_REAL_H
#define FA_PTX_REAL_H

#include "ptx/program.h"

void fa_ptx_real(const fa_ptx_instr *i, uint64_t *r);

#endif
