/* Names the tensor that an invalid address lies in or near. */
#ifndef FA_EMU_CORE_WHERE_H
#define FA_EMU_CORE_WHERE_H

#include <stdbool.h>
#include <stddef.h>

#include "fa_params.h"

/* "K, 1 element past its end: batch 0, head 1, row 33 (rows 0 to 32), column 0": the nearest of Q, K, V, O and LSE, by
 * the strides of the launch. False when the address is more than a mebibyte from all of them. */
bool fa_emu_where(const fa_params *params, const void *address, char *text, size_t size);

#endif
