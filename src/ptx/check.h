/* Checks combinations of an instruction's words, types and operands that the table cannot express. Pure. */
#ifndef FA_PTX_CHECK_H
#define FA_PTX_CHECK_H

#include "ptx/program.h"

/* NULL: valid, and `mma` has its tile. Otherwise the reason. */
const char *fa_ptx_check(fa_ptx_instr *i);

#endif
