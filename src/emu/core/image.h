/* A kernel compiled for the emulator: the shared object and its entry points. */
#ifndef FA_EMU_CORE_IMAGE_H
#define FA_EMU_CORE_IMAGE_H

#include "base/status.h"
#include "emu/core/abi.h"

typedef struct fa_emu_image {
    void *handle;         /* dlopen */
    fa_emu_call_fn *call; /* fa_kernel, or another entry point that the launch asks for */
    int32_t entry;        /* 0: call is fa_kernel */
    fa_emu_slot_fn *slot;
    const fa_emu_build_info *build;
    const int32_t *cluster_dims; /* __cluster_dims__ of the kernel; NULL: it has none */
    const int32_t *bounds;       /* threads, blocks of __launch_bounds__, or 0, 0 and __maxnreg__; NULL: none */
    bool hopper;                 /* its inline PTX has barrier objects, bulk copies or products of warpgroups */
} fa_emu_image;

/* Opens the object and finds its symbols. False: `error` says what is missing. A sanitized object needs the sanitizer's
 * runtime in this process. */
bool fa_emu_open(const char *path, fa_emu_image *image, char *error, size_t error_size);
/* The image with entry point `entry` of a plan (include/fa_launch.h); 0: fa_kernel. The image stays the caller's. */
fa_emu_image fa_emu_entry(const fa_emu_image *image, int32_t entry);
void fa_emu_close(fa_emu_image *image);

#endif
