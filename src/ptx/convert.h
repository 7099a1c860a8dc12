/* cvt between all types. Pure. */
#ifndef FA_PTX_CONVERT_H
#define FA_PTX_CONVERT_H

#include "ptx/program.h"

void fa_ptx_convert(const fa_ptx_instr *i, uint64_t *r);

#endif
