/* From a spec to a cubin in the cache, by NVRTC or nvcc. Needs no GPU and no driver. */
#pragma once

#include "compile/module.h"
#include "input/spec.h"

/* FA_INFEASIBLE: a static_assert of the kernel failed (its text), or shared memory, registers or threads exceed the
 * architecture's limit. FA_COMPILE_ERROR: the compiler's error lines. FA_NOT_RUN: there is no compiler. */
fa_status fa_compile_cuda(const fa_spec *spec, fa_module *module, fa_reason *why);

/* Whether a device needs PTX of this target. A cubin runs on its own generation only (CUDA C++ Programming Guide,
 * "Binary Compatibility"); PTX runs on all later ones, except for targets with an "a". */
bool fa_needs_ptx(const char *arch, const char *device_arch);
/* Compiles the spec to PTX and points the module's path at it. The module keeps the figures of its cubin. */
fa_status fa_compile_ptx(const fa_spec *spec, fa_module *module, fa_reason *why);

/* A .cu that is no attention kernel (the driver's own GPU code): the path of its cubin in the cache. */
fa_status fa_compile_file(const char *source, const char *arch, char cubin_path[1024], fa_reason *why);
