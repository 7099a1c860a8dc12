#include "emu/frame.h"

#include <string.h>

bool fa_emu_frame_in_kernel(const char *frame)
{
    return strstr(frame, ".cu:") != NULL || strstr(frame, ".cuh:") != NULL;
}

bool fa_emu_frame_is_instruction(const char *frame)
{
    return strstr(frame, "/kernels/prims.cuh:") != NULL || strstr(frame, "/kernels/hopper.cuh:") != NULL;
}
