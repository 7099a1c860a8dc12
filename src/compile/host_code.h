/* Finds the host declarations of a CUDA file: a launcher, main, uses of streams, <iostream> or a library's tensors. A
 * .cu file usually holds host and device code; NVRTC and the emulator compile the device code. */
#pragma once

#include "compile/cxx.h"

/* A declaration at namespace scope: token numbers, the last one included. */
typedef struct fa_declaration {
    size_t first, last;
    size_t body;   /* of a function: its opening brace; else 0 */
    bool type;     /* struct, class, union, enum */
    bool device;   /* __device__, __global__, ... in its head, or in a type */
    bool host;     /* for the host only */
    char name[64]; /* name declared; empty when unclear */
} fa_declaration;

typedef struct fa_cuda_file {
    const char *text;
    fa_cxx_tokens tokens;
    fa_declaration *declarations;
    size_t count;
} fa_cuda_file;

/* Marks the declarations of the files of one kernel; a declaration that uses a host declaration and is not for the
 * device is a host declaration. False when braces do not match: nothing is marked. */
bool fa_host_code_find(fa_cuda_file *files, size_t count);
/* Tokens and declarations without marks. False when braces do not match. */
bool fa_host_code_split(fa_cuda_file *file);
/* A function that is neither for the host nor marked for the device: NVRTC must be told to take it. */
bool fa_host_code_plain_functions(const fa_cuda_file *file);
/* A host-only header: <iostream>, <torch/extension.h>, ... */
bool fa_host_code_header(const char *name);
void fa_host_code_free(fa_cuda_file *file);
