/* cp.reduce.async.bulk: PTX ISA, "cp.reduce.async.bulk". */
#pragma once

#include "ptx/table.h"

/* to = to combined with from, element by element. */
void fa_emu_reduce_bytes(unsigned char *to, const unsigned char *from, uint32_t size, fa_ptx_type type,
                         fa_ptx_word operation);
