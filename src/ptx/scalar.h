/* The meaning of instructions that touch only the thread's own registers. Pure.
 * Each runs one instruction on the registers r; false: undefined for these values, `why` says what. */
#pragma once

#include "ptx/program.h"

/* carry: the condition code of add.cc and its kind, kept between the instructions of one text. */
bool fa_ptx_scalar(const fa_ptx_instr *i, uint64_t *r, unsigned *carry, const char **why);
