/* Inline PTX that is wrong in one way: the emulator must report it and name the line marked HERE. emu_case takes one of
 * them: --define CONTROL_name. */
#include "ptx/ptx.cuh"

/* The kernel, of so many threads and bytes of dynamic shared memory. */
#define KERNEL(n, bytes)                                       \
    FA_KERNEL_INFO(.threads = n, .smem_dynamic_bytes = bytes); \
    extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)

#if defined(CONTROL_divergent)
/* Half of a warp at one inline barrier, half at another. */
KERNEL(64, 0)
{
    if (threadIdx.x % 32 < 16)
        asm volatile("bar.sync 0;" ::: "memory"); /* HERE */
    else
        asm volatile("bar.sync 0;" ::: "memory");
    put(p, threadIdx.x, 1);
}
#endif

#if defined(CONTROL_misaligned)
/* A 16-byte inline load from an address that is a multiple of 8. */
KERNEL(32, 1024)
{
    FA_SHARED(unsigned, s);
    unsigned a, b, c, d;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4+8];" /* HERE */
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(shared_of(s + 4 * threadIdx.x)));
    put(p, threadIdx.x, a + b + c + d);
}
#endif

#if defined(CONTROL_misaligned_vector)
/* A reduction of four floats at a multiple of 8 bytes. */
KERNEL(32, 0)
{
    asm volatile("red.global.add.v4.f32 [%0 + 8], {%1, %1, %1, %1};" ::"l"(p.o), "f"(1.0f) : "memory"); /* HERE */
}
#endif

#if defined(CONTROL_vector_in_shared)
/* Vectors are reduced in global memory alone. */
KERNEL(32, 1024)
{
    FA_SHARED(unsigned, s);
    asm volatile("red.shared.add.v2.f32 [%0], {%1, %1};" ::"r"(shared_of(s)), "f"(1.0f) : "memory"); /* HERE */
    put(p, threadIdx.x, s[0]);
}
#endif

#if defined(CONTROL_race_vector)
/* A plain store into what other threads reduce. */
KERNEL(64, 0)
{
    float *o_g = static_cast<float *>(p.o) + 64;
    if (threadIdx.x == 33)
        o_g[2] = 0.0f;
    else
        asm volatile("red.global.add.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(o_g), "f"(1.0f) : "memory"); /* HERE */
}
#endif

#if defined(CONTROL_not_shared)
/* The low half of a generic pointer taken for a shared address. */
KERNEL(32, 1024)
{
    unsigned v;
    const unsigned at = static_cast<unsigned>(reinterpret_cast<unsigned long long>(p.q) | 0x40000000u);
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at & ~3u)); /* HERE */
    put(p, threadIdx.x, v);
}
#endif

#if defined(CONTROL_overflow_global)
/* Inline ld.global behind the end of q. */
KERNEL(32, 0)
{
    unsigned v;
    const unsigned *q_g = static_cast<const unsigned *>(p.q) + FA_TEST_HALVES / 2 - 31;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(q_g + threadIdx.x)); /* HERE */
    put(p, threadIdx.x, v);
}
#endif

#if defined(CONTROL_overflow_shared)
/* Inline st.shared four bytes behind the block's shared memory. */
KERNEL(32, 124)
{
    FA_SHARED(unsigned, s);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared_of(s + threadIdx.x)), "r"(threadIdx.x) : "memory"); /* HERE */
    put(p, threadIdx.x, s[0]);
}
#endif

#if defined(CONTROL_race)
/* Inline st.shared and ld.shared with no barrier between them. */
KERNEL(64, 256)
{
    FA_SHARED(unsigned, s);
    const unsigned t = threadIdx.x;
    unsigned v;
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared_of(s + t)), "r"(t) : "memory");
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(shared_of(s + (t + 33) % 64)) : "memory"); /* HERE */
    put(p, blockIdx.x * 64 + t, v);
}
#endif

#if defined(CONTROL_race_atomic)
/* A plain inline load of what other threads change by red. */
KERNEL(64, 256)
{
    FA_SHARED(unsigned, s);
    unsigned v;
    s[threadIdx.x] = 0;
    asm volatile("bar.sync 0;" ::: "memory");
    asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(shared_of(s)) : "memory");
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(shared_of(s)) : "memory"); /* HERE */
    put(p, blockIdx.x * 64 + threadIdx.x, v);
}
#endif

#if defined(CONTROL_unknown)
/* An instruction the emulator does not have, in the second line of its statement. */
FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 0);

__device__ void nobody_calls_this() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    unsigned v = threadIdx.x;
    asm volatile("add.u32 %0, %0, 1;\n\t"
                 "pmevent 7;" /* HERE */
                 : "+r"(v));
    put(p, threadIdx.x, v);
}
#endif
