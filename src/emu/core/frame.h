/* Lines of a backtrace. */
#ifndef FA_EMU_CORE_FRAME_H
#define FA_EMU_CORE_FRAME_H

#include <stdbool.h>

/* Whether it is in one of the kernels' files: .cu, .cuh, headers of other names that are not ours or the system's. */
bool fa_emu_frame_in_kernel(const char *frame);
/* Whether it is in a file whose functions are one instruction each: a report names their caller. */
bool fa_emu_frame_is_instruction(const char *frame);

#endif
