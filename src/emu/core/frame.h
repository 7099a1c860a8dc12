/* Lines of a backtrace. */
#ifndef FA_EMU_CORE_FRAME_H
#define FA_EMU_CORE_FRAME_H

#include <stdbool.h>

/* The first of addr2line's lines, FILE:LINE. Returns the following lines; NULL: none. */
#define FA_EMU_FRAME 512
const char *fa_emu_frame_read(const char *lines, char frame[FA_EMU_FRAME]);
/* Without the folders. */
const char *fa_emu_frame_name(const char *frame);
/* Whether it is in a file of the kernel: .cu, .cuh, or a header that is neither ours nor the system's. */
bool fa_emu_frame_in_kernel(const char *frame);
/* Whether it is in a file of one-instruction functions (prims.cuh, hopper.cuh): a report names their caller. */
bool fa_emu_frame_is_instruction(const char *frame);

#endif
