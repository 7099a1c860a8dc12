/* setp, set, testp. Pure. */
#ifndef FA_PTX_COMPARE_H
#define FA_PTX_COMPARE_H

#include "ptx/program.h"

void fa_ptx_compare(const fa_ptx_instr *i, uint64_t *r);

#endif
