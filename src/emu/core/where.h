/* Where an access was: the tensor that an invalid address lies in or near, the lines of a backtrace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fa_params.h"

/* "K, 1 element past its end: batch 0, head 1, row 33 (rows 0 to 32), column 0": the nearest of Q, K, V, O and LSE, by
 * the strides of the launch. False when the address is more than a mebibyte from all of them. */
bool fa_emu_where(const fa_params *params, const void *address, char *text, size_t size);

/* Lines of a backtrace. */

/* The first of addr2line's lines, FILE:LINE. Returns the following lines; NULL: none. */
#define FA_EMU_FRAME 512
const char *fa_emu_frame_read(const char *lines, char frame[FA_EMU_FRAME]);
/* Without the folders. */
const char *fa_emu_frame_name(const char *frame);
/* Whether it is in a file of the kernel: .cu, .cuh, or a header that is neither ours nor the system's. */
bool fa_emu_frame_in_kernel(const char *frame);
/* Whether it is in a file of one-instruction functions (prims.cuh, hopper.cuh): a report names their caller. */
bool fa_emu_frame_is_instruction(const char *frame);
