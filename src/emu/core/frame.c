#include "emu/core/frame.h"

#include <stdio.h>
#include <string.h>

const char *fa_emu_frame_read(const char *lines, char frame[FA_EMU_FRAME])
{
    const size_t length = strcspn(lines, "\n");
    snprintf(frame, FA_EMU_FRAME, "%.*s", (int)length, lines);
    char *more = strstr(frame, " (discriminator ");
    if (more != NULL)
        *more = '\0';
    return lines[length] == '\n' && lines[length + 1] != '\0' ? lines + length + 1 : NULL;
}

const char *fa_emu_frame_name(const char *frame)
{
    const char *slash = strrchr(frame, '/');
    return slash != NULL ? slash + 1 : frame;
}

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
