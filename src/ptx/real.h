/* Arithmetic on floating-point numbers. Pure. */
#pragma once

#include "ptx/program.h"

void fa_ptx_real(const fa_ptx_instr *i, uint64_t *r);
