/* Checks combinations of an instruction's words, types and operands that the table cannot express. Pure. */
#pragma once

#include "ptx/program.h"

/* NULL: valid, and `mma` has its tile. Otherwise the reason. */
const char *fa_ptx_check(fa_ptx_instr *i);
