/* The device code of a user's file, for NVRTC and for the emulator's g++: host code is left out. For nvcc only a file
 * that wraps a kernel changes: its host code would launch a device function. Lines keep their numbers. */
#pragma once

#include "base/file.h"
#include "input/spec.h"

typedef enum { FA_FOR_NVRTC, FA_FOR_NVCC, FA_FOR_EMULATOR } fa_device_compiler;

typedef struct fa_device_file {
    char *path, *text; /* text: rewritten */
} fa_device_file;

typedef struct fa_device_source {
    fa_device_file *files; /* the source first, then the user's files that it includes; none: nothing to rewrite */
    size_t count;
    bool launches;           /* by lines of the file (input/launch_lines.h): it has a plan (include/fa_launch.h) */
    fa_digest launch_digest; /* of what was made of the lines, and of what that includes */
    bool plain_functions;    /* it has functions without __device__ that device code may call */
} fa_device_source;

/* A kernel of the registry is not rewritten. */
fa_status fa_device_source_read(const fa_spec *spec, fa_device_compiler whom, fa_device_source *made, fa_reason *why);
/* Writes the rewritten files into a folder. `source` (malloc'd) is the one to compile: spec's own, or a copy there. */
fa_status fa_device_source_write(const fa_device_source *made, const char *own_source, const char *folder,
                                 char **source, fa_reason *why);
void fa_device_source_unlink(const fa_device_source *made, const char *folder); /* deletes the written files */
void fa_device_source_free(fa_device_source *made);
