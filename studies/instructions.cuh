/* One instruction of each kind, for the studies of rates: `one<KIND>(x, i)` works on the i-th of 16 registers of x.
 * Made so that ptxas keeps each and compiles it to the instruction that it is named for (sm_90a, CUDA 13.0): a value
 * depends on the round before, and no operand is known. */
#pragma once
#include <cuda_runtime.h>

enum kind {
    FFMA,
    FADD,
    FMUL,
    HFMA2,
    HADD2,
    HMUL2,
    IMAD,
    IADD3,
    LOP3,
    SHF,
    PRMT,
    SEL,
    ISETP_SEL,
    FSETP_FSEL,
    FMNMX,
    VIMNMX,
    HMNMX2,
    F2FP,
    F2FP_E4M3,
    EX2,
    RCP,
    LG2,
    EX2_F16X2,
    HMMA,
    NONE
};

struct registers {
    float f[16], c, e;
    unsigned u[16], h, k;
    float d[4][4];

    __device__ __forceinline__ void setup(const unsigned *seed_g)
    {
        for (int i = 0; i < 16; ++i) {
            u[i] = seed_g[i + threadIdx.x];
            f[i] = __uint_as_float(seed_g[i + 64 + threadIdx.x]);
            d[i / 4][i % 4] = 0;
        }
        h = seed_g[128 + threadIdx.x];
        k = seed_g[160 + threadIdx.x];
        c = __uint_as_float(seed_g[192 + threadIdx.x]);
        e = __uint_as_float(seed_g[224 + threadIdx.x]);
    }

    __device__ __forceinline__ unsigned sum() const
    {
        unsigned all = 0;
        for (int i = 0; i < 16; ++i)
            all += u[i] + __float_as_uint(f[i]) + __float_as_uint(d[i / 4][i % 4]);
        return all;
    }
};

template <kind KIND>
__device__ __forceinline__ void one(registers &x, int i)
{
    float &f = x.f[i % 16];
    unsigned &u = x.u[i % 16];
    if (KIND == FFMA)
        asm volatile("fma.rn.f32 %0,%0,%1,%1;" : "+f"(f) : "f"(x.c));
    if (KIND == FADD)
        asm volatile("add.rn.f32 %0,%0,%1;" : "+f"(f) : "f"(x.c));
    if (KIND == FMUL)
        asm volatile("mul.rn.f32 %0,%0,%1;" : "+f"(f) : "f"(x.c));
    if (KIND == HFMA2)
        asm volatile("fma.rn.f16x2 %0,%0,%1,%1;" : "+r"(u) : "r"(x.h));
    if (KIND == HADD2)
        asm volatile("add.rn.f16x2 %0,%0,%1;" : "+r"(u) : "r"(x.h));
    if (KIND == HMUL2)
        asm volatile("mul.rn.f16x2 %0,%0,%1;" : "+r"(u) : "r"(x.h));
    if (KIND == IMAD)
        asm volatile("mad.lo.u32 %0,%0,%1,%1;" : "+r"(u) : "r"(x.h));
    if (KIND == IADD3)
        asm volatile("{.reg .u32 t; add.u32 t,%0,%1; add.u32 %0,t,%2;}" : "+r"(u) : "r"(x.h), "r"(x.k));
    if (KIND == LOP3)
        asm volatile("lop3.b32 %0,%0,%1,%1,0x1b;" : "+r"(u) : "r"(x.h));
    if (KIND == SHF)
        asm volatile("shf.l.wrap.b32 %0,%0,%0,%1;" : "+r"(u) : "r"(x.h));
    if (KIND == PRMT)
        asm volatile("prmt.b32 %0,%0,%1,0x1045;" : "+r"(u) : "r"(x.h));
    if (KIND == SEL)
        asm volatile("{.reg .pred p; setp.ne.u32 p,%1,0; selp.b32 %0,%0,%1,p;}" : "+r"(u) : "r"(x.h));
    if (KIND == ISETP_SEL)
        asm volatile("{.reg .pred p; setp.gt.u32 p,%0,%1; selp.b32 %0,%2,%0,p;}" : "+r"(u) : "r"(x.h), "r"(x.k));
    if (KIND == FSETP_FSEL)
        asm volatile("{.reg .pred p; setp.gt.f32 p,%0,%1; selp.f32 %0,%2,%0,p;}" : "+f"(f) : "f"(x.c), "f"(x.e));
    if (KIND == FMNMX)
        asm volatile("max.f32 %0,%0,%1;" : "+f"(f) : "f"(x.c));
    if (KIND == VIMNMX)
        asm volatile("max.s32 %0,%0,%1;" : "+r"(u) : "r"(x.h));
    if (KIND == HMNMX2)
        asm volatile("max.f16x2 %0,%0,%1;" : "+r"(u) : "r"(x.h));
    if (KIND == F2FP)
        asm volatile("{.reg .f32 t; mov.b32 t,%0; cvt.rn.f16x2.f32 %0,t,%1;}" : "+r"(u) : "f"(x.c));
    if (KIND == F2FP_E4M3)
        asm volatile(
            "{.reg .f32 t; .reg .b16 lo; mov.b32 t,%0; cvt.rn.satfinite.e4m3x2.f32 lo,t,%1; mov.b32 %0,{lo,lo};}"
            : "+r"(u)
            : "f"(x.c));
    if (KIND == EX2)
        asm volatile("ex2.approx.ftz.f32 %0,%0;" : "+f"(f));
    if (KIND == RCP)
        asm volatile("rcp.approx.ftz.f32 %0,%0;" : "+f"(f));
    if (KIND == LG2)
        asm volatile("lg2.approx.ftz.f32 %0,%0;" : "+f"(f));
    if (KIND == EX2_F16X2)
        asm volatile("ex2.approx.f16x2 %0,%0;" : "+r"(u));
    if (KIND == HMMA)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0,%1,%2,%3},{%4,%4,%4,%4},{%5,%5},{%0,%1,%2,%3};"
                     : "+f"(x.d[i % 4][0]), "+f"(x.d[i % 4][1]), "+f"(x.d[i % 4][2]), "+f"(x.d[i % 4][3])
                     : "r"(x.h), "r"(x.h));
}
