/* Whether an instruction's words, types and operands go together: what the table's rows cannot say. Pure. */
#ifndef FA_PTX_CHECK_H
#define FA_PTX_CHECK_H

#include "ptx/program.h"

/* NULL: they do, and `mma` has its tile. Otherwise why not. */
const char *fa_ptx_check(fa_ptx_instr *i);

#endif
