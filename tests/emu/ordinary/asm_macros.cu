// Inline PTX behind macros, with casts, predicates and clobbers.
#include <cstdint>

#include "ordinary.cuh"

__shared__ __align__(16) float buf[128];
#define LDMATRIX_X4(R0, R1, R2, R3, addr)                                             \
    asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];\n" \
                 : "=r"(R0), "=r"(R1), "=r"(R2), "=r"(R3)                             \
                 : "r"(addr))
#define HMMA(RD0, RD1, RD2, RD3, RA0, RA1, RA2, RA3, RB0, RB1, RC0, RC1, RC2, RC3)                                  \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
                 "{%10, %11, %12, %13};\n"                                                                          \
                 : "=f"(RD0), "=f"(RD1), "=f"(RD2), "=f"(RD3)                                                       \
                 : "r"(RA0), "r"(RA1), "r"(RA2), "r"(RA3), "r"(RB0), "r"(RB1), "f"(RC0), "f"(RC1), "f"(RC2), "f"(RC3))
#define CP_ASYNC_CG(dst, src, Bytes) \
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(dst), "l"(src), "n"(Bytes))
#define CP_ASYNC_COMMIT_GROUP() asm volatile("cp.async.commit_group;\n" ::)
#define CP_ASYNC_WAIT_GROUP(N) asm volatile("cp.async.wait_group %0;\n" ::"n"(N))

CHECKS()
{
    unsigned s = __cvta_generic_to_shared(buf);
    (void)s;
    buf[t] = t;
    __syncthreads();
    uint32_t r0, r1, r2, r3;
    uint32_t sa = static_cast<uint32_t>(__cvta_generic_to_shared(&buf[(t & 31) * 4]));
    LDMATRIX_X4(r0, r1, r2, r3, sa);
    EXPECT(r0 != 0x12345);
    float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
    HMMA(d0, d1, d2, d3, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u, d0, d1, d2, d3);
    EXPECT(d0 == 16);
    asm volatile("" ::: "memory");
    asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %1, 0;\n @p mov.b32 %0, 7;\n}\n" : "+r"(r0) : "r"(1));
    EXPECT(r0 == 7);
    CP_ASYNC_CG(sa, (const char *)p.q, 16);
    CP_ASYNC_COMMIT_GROUP();
    CP_ASYNC_WAIT_GROUP(0);
    __syncwarp();
    EXPECT(buf[(t & 31) * 4] == *(const float *)p.q || true);
    asm volatile("bar.sync %0, %1;" ::"r"(1), "n"(THREADS));
    asm volatile("membar.gl;");
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(3.f));
    EXPECT(y == 8);
    unsigned long long g;
    asm volatile("cvta.to.global.u64 %0, %1;" : "=l"(g) : "l"(p.q));
    EXPECT(g == (unsigned long long)p.q);
    unsigned smid;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(smid));
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p.q));
    half2 hh;
    asm("{ mul.f16x2 %0, %1, %2; }" : "=r"(*(unsigned *)&hh) : "r"(0x3c003c00), "r"(0x40004000));
    EXPECT(__low2float(hh) == 2);
}
