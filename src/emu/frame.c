#include "emu/frame.h"

#include <string.h>

bool fa_emu_frame_in_kernel(const char *frame)
{
    if (strstr(frame, ".cu:") != NULL || strstr(frame, ".cuh:") != NULL)
        return true; /* headers: but for the compiler's and our own */
    return frame[0] != '?' && strncmp(frame, "/usr/", 5) != 0 && strstr(frame, "/src/emu/") == NULL;
}

bool fa_emu_frame_is_instruction(const char *frame)
{
    return strstr(frame, "/kernels/prims.cuh:") != NULL || strstr(frame, "/kernels/hopper.cuh:") != NULL;
}
