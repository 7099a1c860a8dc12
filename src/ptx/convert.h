/* cvt between all types. Pure. */
#pragma once

#include "ptx/program.h"

void fa_ptx_convert(const fa_ptx_instr *i, uint64_t *r);
