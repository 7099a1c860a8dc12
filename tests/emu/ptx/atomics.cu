/* atom and red: every operation, in shared and global memory, with scopes and orders. */
#include "ptx.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 128);

#define SHARED_RED(text, at, value) asm volatile(text " [%0], %1;" ::"r"(shared_of(&(at))), "r"(value) : "memory")

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
}
