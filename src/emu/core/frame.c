#include "emu/core/frame.h"

#include <string.h>

bool fa_emu_frame_in_kernel(const char *frame)
{
    if (strstr(frame, ".cu:") != NULL || strstr(frame, ".cuh:") != NULL)
        return true;
    const char *path = frame[0] == '/' ? frame : strstr(frame, " /");
    return path != NULL && strstr(path, "/src/emu/") == NULL && strncmp(path + (*path == ' '), "/usr/", 5) != 0;
}

bool fa_emu_frame_is_instruction(const char *frame)
{
    return strstr(frame, "/kernels/shared/prims.cuh:") != NULL || strstr(frame, "/kernels/shared/hopper.cuh:") != NULL;
}
