/* A user's file on the way to NVRTC or the emulator's g++: host code is left out and, for the emulator, dynamic shared
 * memory declared as CUDA has it (extern __shared__ T name[];) becomes what C++ can say. On the way to nvcc only a file
 * that wraps a kernel changes: its host code would launch a device function. Lines keep their numbers. */
#ifndef FA_COMPILE_ORDINARY_H
#define FA_COMPILE_ORDINARY_H

#include "input/spec.h"

typedef enum { FA_FOR_NVRTC, FA_FOR_NVCC, FA_FOR_EMULATOR } fa_ordinary_for;

typedef struct fa_ordinary_file {
    char *path, *text; /* text: rewritten */
} fa_ordinary_file;

typedef struct fa_ordinary {
    fa_ordinary_file *files; /* the source first, then the user's files that it includes; none: nothing to rewrite */
    size_t count;
    bool plain_functions; /* functions without __device__ that device code may call */
} fa_ordinary;

/* A kernel of the registry comes out as it stands. */
fa_status fa_ordinary_read(const fa_spec *spec, fa_ordinary_for whom, fa_ordinary *made, fa_reason *why);
/* Writes the rewritten files into a folder. `source` (malloc'd) is the one to compile: spec's own, or a copy there. */
fa_status fa_ordinary_write(const fa_ordinary *made, const char *own_source, const char *folder, char **source,
                            fa_reason *why);
void fa_ordinary_unlink(const fa_ordinary *made, const char *folder); /* the files that were written */
void fa_ordinary_free(fa_ordinary *made);

#endif
