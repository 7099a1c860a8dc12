/* ld and st: widths, signs, vectors, spaces, cache operators, orders; address arithmetic. */
#include "ptx.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 4096);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, s);
    __shared__ unsigned own_s[64];
    const int t = threadIdx.x;
    unsigned *o_g = static_cast<unsigned *>(p.o) + 4096 + blockIdx.x * 512;
    const unsigned at = shared_of(s) + t * 32, x = mixed(t);

    asm volatile(
        "st.shared.u32 [%0], %1;\n\tst.shared.u8 [%0 + 4], %1;\n\tst.shared.b16 [%0+6], %2;\n\t"
        "st.shared.v2.b32 [%0+8], {%1, %3};\n\tst.shared.b64 [%0 + 16], %4;\n\tst.shared.v2.f32 [%0+24], {%5, %5};" ::
            "r"(at),
        "r"(x), "h"(static_cast<unsigned short>(x >> 8)), "r"(~x), "l"(0x123456789abcdef0ull + x), "f"(1.5f)
        : "memory");
    unsigned a, b, c, d, e, f;
    asm volatile("ld.shared.u32 %0, [%6];\n\tld.shared.u8 %1, [%6+4];\n\tld.shared.s8 %2, [%6+4];\n\t"
                 "ld.shared.s16 %3, [%6 + 6];\n\tld.shared.v2.u32 {%4, %5}, [%6+8];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d), "=r"(e), "=r"(f)
                 : "r"(at)
                 : "memory");
    EXPECT(a == x && b == (x & 0xff) && c == static_cast<unsigned>(static_cast<int>(static_cast<signed char>(x))));
    EXPECT(d == static_cast<unsigned>(static_cast<int>(static_cast<short>(x >> 8))) && e == x && f == ~x);
    unsigned long long wide;
    float g, h;
    asm volatile("ld.volatile.shared.u64 %0, [%3+16];\n\tld.shared.v2.f32 {%1, %2}, [%3+24];"
                 : "=l"(wide), "=f"(g), "=f"(h)
                 : "r"(at)
                 : "memory");
    EXPECT(wide == 0x123456789abcdef0ull + x && g == 1.5f && h == 1.5f);

    /* a __shared__ variable, and generic addresses of both kinds */
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared_of(own_s + t)), "r"(x * 3) : "memory");
    EXPECT(own_s[t] == x * 3);
    asm volatile("st.u32 [%0], %1;" ::"l"(own_s + t), "r"(x * 5) : "memory");
    EXPECT(own_s[t] == x * 5);
    unsigned is_shared, is_global;
    unsigned long long there, back;
    asm volatile(
        "{\n\t.reg .pred p, q;\n\t"
        "isspacep.shared p, %4;\n\tselp.u32 %0, 1, 0, p;\n\tisspacep.shared q, %5;\n\tselp.u32 %1, 0, 1, q;\n\t"
        "cvta.to.shared.u64 %2, %4;\n\tcvta.shared.u64 %3, %2;\n\t}"
        : "=r"(is_shared), "=r"(is_global), "=l"(there), "=l"(back)
        : "l"(own_s + t), "l"(o_g));
    EXPECT(is_shared == 1 && is_global == 1 && back == reinterpret_cast<unsigned long long>(own_s + t));
    EXPECT(static_cast<unsigned>(there) == shared_of(own_s + t));

    /* global memory: vectors, cache operators, orders; o is of this thread alone */
    const uint4 *q_g = static_cast<const uint4 *>(p.q) + t;
    uint4 v, w;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(q_g));
    asm volatile("ld.global.ca.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w) : "l"(q_g));
    EXPECT(v.x == w.x && v.w == w.w && (v.x & 0xffff) == half_bits(static_cast<const __half *>(p.q)[8 * t]));
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(o_g + 4 * t), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(o_g + 256 + t), "r"(x) : "memory");
    asm volatile("fence.acq_rel.gpu;\n\tmembar.cta;\n\tprefetch.global.L2 [%0];" ::"l"(q_g) : "memory");
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(a) : "l"(o_g + 256 + t) : "memory");
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(b) : "l"(o_g + 256 + t) : "memory");
    EXPECT(a == x && b == x && o_g[4 * t + 2] == v.z);

    unsigned lane, warp, lower, size;
    asm("mov.u32 %0, %%laneid;\n\tmov.u32 %1, %%ntid.x;\n\tmov.u32 %2, %%lanemask_lt;\n\tmov.u32 %3, "
        "%%dynamic_smem_size;"
        : "=r"(lane), "=r"(warp), "=r"(lower), "=r"(size));
    EXPECT(lane == t % 32u && warp == 64 && lower == (1u << lane) - 1 && size == 4096);
    unsigned block, blocks;
    asm("mov.u32 %0, %%ctaid.x;\n\tmov.u32 %1, %%nctaid.x;" : "=r"(block), "=r"(blocks));
    EXPECT(block == blockIdx.x && blocks == gridDim.x);
}
