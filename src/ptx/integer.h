/* Integer arithmetic. Pure. */
#ifndef FA_PTX_INTEGER_H
#define FA_PTX_INTEGER_H

#include "ptx/program.h"

/* False: a division by zero. */
bool fa_ptx_integer(const fa_ptx_instr *i, uint64_t *r, unsigned *carry);

#endif
