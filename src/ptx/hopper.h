/* Instructions of sm_90: forms of mbarrier, cp.async.bulk, tensormap, wgmma, setmaxnreg and fence. Pure. */
#pragma once

#include "ptx/program.h"

/* NULL: the instruction is well formed. A `cp`, `st` or `red` of this kind moves to the family FA_PTX_ASYNC. */
const char *fa_ptx_check_bulk(fa_ptx_instr *i);
const char *fa_ptx_check_copies_arrive(fa_ptx_instr *i);
const char *fa_ptx_check_send(fa_ptx_instr *i, bool whole); /* whole: the values are those of the vector */
const char *fa_ptx_check_hopper(fa_ptx_instr *i);
const char *fa_ptx_check_fence(const fa_ptx_instr *i);

/* cp.async.bulk.tensor: 1 to 5; 0: a copy of bytes. */
int fa_ptx_tensor_rank(const fa_ptx_instr *i);
/* The reduction of a bulk copy: a word, FA_PTX_WORDS for none. */
fa_ptx_word fa_ptx_reduction(const fa_ptx_instr *i);
/* tensormap.replace: which field, from 0 in the order of words.def; -1: none. */
int fa_ptx_map_field(const fa_ptx_instr *i);
/* Registers of a lane that hold the accumulator of a wgmma, and whether A comes from registers. */
int fa_ptx_wgmma_accumulators(const fa_ptx_instr *i);
bool fa_ptx_wgmma_a_in_registers(const fa_ptx_instr *i);
/* Whether the program has an instruction of the family FA_PTX_ASYNC. */
bool fa_ptx_is_hopper(const fa_ptx_program *program);
/* Whether the statement gives its operands no value: the results of a product arrive later, at the wait of another
 * statement, and a fence, commit or wait has none. */
bool fa_ptx_is_late(const fa_ptx_program *program);
