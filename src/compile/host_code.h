/* Which declarations of a CUDA file are for the host: a launcher, main, whatever speaks of streams, of <iostream> or of
 * a library's tensors. Files as people have them hold both kinds; NVRTC and the emulator compile the device's. */
#ifndef FA_COMPILE_HOST_CODE_H
#define FA_COMPILE_HOST_CODE_H

#include "compile/cxx.h"

/* A declaration at namespace scope: token numbers, the last one included. */
typedef struct fa_declaration {
    size_t first, last;
    size_t body;   /* of a function: its opening brace; else 0 */
    bool type;     /* struct, class, union, enum */
    bool device;   /* __device__, __global__, ... in its head, or in a type */
    bool host;     /* for the host alone */
    char name[64]; /* what it declares; empty when that is not plain */
} fa_declaration;

typedef struct fa_cuda_file {
    const char *text;
    fa_cxx_tokens tokens;
    fa_declaration *declarations;
    size_t count;
} fa_cuda_file;

/* Marks the declarations of the files of one kernel; what uses a host declaration, and is not for the device, is for
 * the host, too. False when braces do not match: nothing is known then. */
bool fa_host_code_find(fa_cuda_file *files, size_t count);
/* Its tokens and declarations alone, unmarked. False when braces do not match. */
bool fa_host_code_split(fa_cuda_file *file);
/* A function that is neither for the host nor marked for the device: NVRTC must be told to take it. */
bool fa_host_code_plain_functions(const fa_cuda_file *file);
/* A header of the host alone: <iostream>, <torch/extension.h>, ... */
bool fa_host_code_header(const char *name);
void fa_host_code_free(fa_cuda_file *file);

#endif
