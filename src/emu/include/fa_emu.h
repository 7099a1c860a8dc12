/* The emulator's face to a kernel: force-included before a .cu that g++ compiles. Everything nvcc would have built in,
 * in the same names, so that kernel code needs no change. */
#ifndef FA_EMU_SHIM_H
#define FA_EMU_SHIM_H

/* Bessel functions and the like of libstdc++'s <cmath>: half of what every kernel would have to parse. */
#define _GLIBCXX_BITS_SPECFUN_H 1

#include "../../../include/fa_params.h"
#include "../core/abi.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#if defined(__SANITIZE_THREAD__) /* the race detector sees what a call copies only where it is inlined */
#define noinline unused
#endif
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) fa_emu_launch_bounds_of(__VA_ARGS__) /* src/compile/asm.c takes these out */
#define __maxnreg__(registers) fa_emu_launch_bounds_of(0, 0, registers)
#define __cluster_dims__(...) fa_emu_cluster_dims_of(__VA_ARGS__)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
#define __CUDA_ALIGN__(n) __attribute__((aligned(n)))
#define __CUDA_ARCH_HAS_FEATURE__(feature) __CUDA_ARCH_FEAT_##feature
#define __nv_is_extended_device_lambda_closure_type(...) false

/* Files ask whether nvcc reads them, and which: the last whose libcu++ is not in a folder of its own. */
#ifndef __CUDACC__
#define __CUDACC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 9
#define __CUDACC_VER_BUILD__ 0
#define CUDA_VERSION 12090
#define CUDART_VERSION 12090
#define CUTLASS_ENABLE_DIRECT_CUDA_DRIVER_CALL 1 /* its other way needs the toolkit's tables of functions */
#endif

/* What CuTe takes from the version of nvcc: ldmatrix and __cvta_generic_to_shared are there. */
#define CUTE_ARCH_LDSM_SM75_SUPPORTED 1
#define CUTE_CVTA_GENERIC_TO_SHARED_SUPPORTED 1

/* Shared memory: the compiler's pass (src/compile/shared_memory.c) reads the word __shared__ after the preprocessor.
 * Dynamic: one heap block per CUDA block, of the launch's size and not a byte more. Static: sections of the object that
 * fa_shared.ld joins, filled with NaN before every block. */

#if defined(__SANITIZE_THREAD__)
#define FA_EMU_TSAN 1
#else
#define FA_EMU_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FA_EMU_ASAN 1
#else
#define FA_EMU_ASAN 0
#endif

/* The core points this at the running CUDA thread before it switches to it. */
static thread_local fa_emu_thread *fa_emu_slot_value __attribute__((tls_model("initial-exec")));
/* threadIdx and its like are variables, as with nvcc: a kernel may hide their names or define macros of them. The core
 * writes each through a second name; the kernel's is constant, so that no sanitizer watches it. */
#define FA_EMU_BUILTIN(name)                                                 \
    extern "C" {                                                             \
    __thread fa_emu_uint3 fa_emu_##name __asm__("fa_emu_builtin_" #name)     \
        __attribute__((tls_model("initial-exec"), visibility("hidden")));    \
    extern const __thread fa_emu_uint3 name __asm__("fa_emu_builtin_" #name) \
        __attribute__((tls_model("initial-exec"), visibility("hidden")));    \
    }
FA_EMU_BUILTIN(threadIdx)
FA_EMU_BUILTIN(blockIdx)
FA_EMU_BUILTIN(blockDim)
FA_EMU_BUILTIN(gridDim)
#undef FA_EMU_BUILTIN
extern "C" __attribute__((visibility("default"), no_sanitize("address", "thread"))) fa_emu_slots fa_emu_slot(void)
{
    return {&fa_emu_slot_value, &fa_emu_threadIdx, &fa_emu_blockIdx, &fa_emu_blockDim, &fa_emu_gridDim};
}
extern "C" {
extern char fa_emu_shared_begin[] __asm__("__start_fa_shared") __attribute__((weak, visibility("hidden")));
extern char fa_emu_shared_end[] __asm__("__stop_fa_shared") __attribute__((weak, visibility("hidden")));
extern __attribute__((visibility("default"))) const fa_emu_build_info fa_emu_build;
const fa_emu_build_info fa_emu_build = {FA_EMU_ABI, FA_EMU_ASAN, FA_EMU_TSAN, fa_emu_shared_begin, fa_emu_shared_end};
}

/* The entry point, weak so that a file without one can be told so. The core calls it through here. */
extern "C" __attribute__((weak, visibility("default"))) void fa_kernel(const fa_params p);
extern "C" __attribute__((visibility("default"))) const fa_kernel_info fa_info;
extern "C" __attribute__((visibility("default"))) void fa_emu_call(const fa_params *params) { fa_kernel(*params); }
extern "C" __attribute__((weak, visibility("default"))) void fa_before(const fa_params p);
extern "C" __attribute__((weak, visibility("default"))) void fa_after(const fa_params p);
extern "C" __attribute__((visibility("default"))) void fa_emu_before(const fa_params *params) { fa_before(*params); }
extern "C" __attribute__((visibility("default"))) void fa_emu_after(const fa_params *params) { fa_after(*params); }

static inline __attribute__((always_inline)) const fa_emu_thread *fa_emu_now() { return fa_emu_slot_value; }

static constexpr int warpSize = FA_EMU_WARP;

/* Where the kernel called a primitive: default arguments, so the kernel's own line reaches the report. */
#define FA_EMU_HERE const char *file_ = __builtin_FILE(), int line_ = __builtin_LINE()
#define FA_EMU_THERE file_, line_

#include "fa_emu_types.h"

#include "fa_emu_rounding.h"

#include "cuda_fp16.h"

#include "fa_emu_memory.h"

#include "fa_emu_warp.h"

#include "fa_emu_math.h"

#include "fa_emu_simd.h"

#include "fa_emu_ptx.h"

#endif
