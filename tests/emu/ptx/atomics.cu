/* atom and red: every operation, in shared and global memory, with scopes and orders; needs sm_90. */
#include "ptx.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 128);

#define SHARED_RED(text, at, value) asm volatile(text " [%0], %1;" ::"r"(shared_of(&(at))), "r"(value) : "memory")

/* Vectors in global memory: every element by itself, from all blocks. own_g: words that no other block touches. */
__device__ void vectors(const fa_params &p, float *sums_g, unsigned *own_g, unsigned t)
{
    const float x = static_cast<float>(t % 4), y = 0.5f;
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(sums_g), "f"(x), "f"(y), "f"(-x), "f"(1.0f)
                 : "memory");
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0 + 16], {%1, %2};" ::"l"(sums_g), "f"(x), "f"(y) : "memory");
    asm volatile("red.global.add.noftz.v4.f16x2 [%0], {%1, %1, %2, %2};" ::"l"(own_g), "r"(0x3c004000), "r"(0x3800b800)
                 : "memory");
    asm volatile("red.global.add.noftz.v2.bf16x2 [%0 + 16], {%1, %2};" ::"l"(own_g), "r"(0x3f803f00), "r"(0x4000bf80)
                 : "memory");
    asm volatile("red.global.max.noftz.v2.f16 [%0 + 24], {%1, %2};" ::"l"(own_g),
                 "h"(__half_as_ushort(__float2half(-1.0f - x))), "h"(__half_as_ushort(__float2half(x)))
                 : "memory");
    unsigned a, b;
    asm volatile("atom.global.min.noftz.v2.f16x2 {%0, %1}, [%2 + 32], {%3, %4};"
                 : "=r"(a), "=r"(b)
                 : "l"(own_g), "r"(0x3c00bc00), "r"(t % 2 ? 0x7e003400 : 0x3400b400)
                 : "memory");
    EXPECT((a == 0 || a == 0x0000bc00) && (b == 0 || b == 0x0000b400));
    __syncthreads();
    EXPECT(own_g[0] == 0x54005800 && own_g[1] == 0x54005800 && own_g[2] == 0x5000d000 && own_g[3] == 0x5000d000);
    EXPECT(own_g[4] == 0x42804200 && own_g[5] == 0x4300c280 && own_g[6] == 0x42000000);
    EXPECT(own_g[8] == 0x0000bc00 && own_g[9] == 0x0000b400);
    if (t < 10)
        put(p, 64 + t, own_g[t]);
    if (t == 0 && atomicAdd(reinterpret_cast<unsigned *>(sums_g) + 8, 1u) == gridDim.x - 1) {
        const float threads = 64.0f * static_cast<float>(gridDim.x);
        const float want[6] = {1.5f * threads, 0.5f * threads, -1.5f * threads,
                               threads,        1.5f * threads, 0.5f * threads};
        for (int i = 0; i < 6; i++)
            EXPECT(atomicAdd(sums_g + i, 0.0f) == want[i]);
    }
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned, s);
    const unsigned t = threadIdx.x;
    unsigned *o_g = static_cast<unsigned *>(p.o) + 4096;
    if (t < 32)
        s[t] = t == 4 || t == 3 ? ~0u : 0;
    asm volatile("bar.sync 0;" ::: "memory");
    SHARED_RED("red.shared.add.u32", s[0], t);
    SHARED_RED("red.shared.max.s32", s[1], t * 7 % 64);
    SHARED_RED("red.shared.or.b32", s[2], 1u << t % 32);
    SHARED_RED("red.shared.and.b32", s[3], ~(1u << t % 16));
    SHARED_RED("red.shared.min.u32", s[4], t + 5);
    SHARED_RED("red.relaxed.cta.shared.xor.b32", s[5], t);
    SHARED_RED("red.shared.inc.u32", s[6], 9);
    asm volatile("red.shared.add.f32 [%0], %1;" ::"r"(shared_of(s + 7)), "f"(0.5f) : "memory");
    asm volatile("red.shared.add.u64 [%0], %1;" ::"r"(shared_of(s + 8)), "l"(0x100000001ull) : "memory");
    asm volatile("red.shared.add.noftz.f16x2 [%0], %1;" ::"r"(shared_of(s + 10)), "r"(0x3c004000) : "memory");

    /* a ticket each: all of them different */
    unsigned ticket, before, was;
    asm volatile("atom.acq_rel.cta.shared.add.u32 %0, [%1], 1;" : "=r"(ticket) : "r"(shared_of(s + 11)) : "memory");
    asm volatile("atom.shared.or.b32 _, [%0 + 4], %1;" ::"r"(shared_of(s + 11)), "r"(1u << ticket % 32) : "memory");
    asm volatile("atom.shared.cas.b32 %0, [%1], 0, %2;" : "=r"(was) : "r"(shared_of(s + 13)), "r"(t + 1) : "memory");
    EXPECT(ticket < 64);
    asm volatile("{ .reg .u32 d; atom.shared.exch.b32 d, [%0], 77; }" ::"r"(shared_of(s + 14)) : "memory");
    asm volatile("atom.release.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(o_g), "r"(1) : "memory");
    EXPECT(before < gridDim.x * 64);
    asm volatile("bar.sync 0;" ::: "memory");
    EXPECT(s[0] == 64 * 63 / 2 && s[1] == 63 && s[2] == ~0u && s[3] == 0xffff0000 && s[4] == 5 && s[5] == 0);
    EXPECT(s[6] == 64 % 10 && s[7] == __float_as_uint(32.0f) && s[8] == 64 && s[9] == 64);
    EXPECT(s[10] == 0x54005800 && s[11] == 64 && s[12] == ~0u && s[13] >= 1 && s[13] <= 64 && s[14] == 77);
    EXPECT((was == 0) == (s[13] == t + 1));
    if (t < 11)
        put(p, blockIdx.x * 16 + t, s[t]);
    vectors(p, reinterpret_cast<float *>(o_g) + 64, o_g + 128 + blockIdx.x * 32, t);
}
