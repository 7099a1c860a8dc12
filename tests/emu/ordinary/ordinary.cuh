/* Each file here uses one construct of ordinary CUDA as people write it. What it computed is compared with what it must
 * be (EXPECT); then plain attention follows, and a thread that saw a difference spoils the output. */
#pragma once

#include "../../cheats/honest.cuh"

#define THREADS 64
static_assert(FA_M == THREADS, "--m 64");
#ifndef SMEM_BYTES
#define SMEM_BYTES 0
#endif
FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = SMEM_BYTES);

#define EXPECT(condition) good = (condition) && good

static __device__ void attend(const fa_params &p, bool good)
{
    const bool all_good = __syncthreads_and(good);
    const place at = my_place(p);
    if (at.inside)
        attend(p, at, at.o);
    if (at.inside && !all_good)
        at.o[0] = __float2half(1000.0f);
}

/* The kernel; the checks of thread t stand in braces after it. */
#define CHECKS()                                                              \
    static __device__ void check(const fa_params &p, int t, bool &good);      \
    extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p) \
    {                                                                         \
        bool good = true;                                                     \
        check(p, threadIdx.x, good);                                          \
        attend(p, good);                                                      \
    }                                                                         \
    static __device__ void check(const fa_params &p, int t, bool &good)
