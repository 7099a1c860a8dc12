/* How many clocks a multiprocessor needs for a warp instruction of each kind alone, and for two or three kinds in the
 * same warps: what shares a pipe adds up, what does not overlaps. MUFU beside FMA and HMMA, packing to FP16 (F2FP).
 *     nvcc -std=c++17 -O3 -arch=sm_90a studies/pipe_rates.cu -o build/pipe_rates && build/pipe_rates */
#include "clocks.cuh"

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

/* A times A and B times B in each step, in turns. */
template <kind A, int A_TIMES = 1, kind B = NONE, int B_TIMES = 0>
struct mix {
    enum { MOST_WARPS = 32 };
    registers x;

    __device__ __forceinline__ void setup(const unsigned *seed_g, unsigned)
    {
        for (int i = 0; i < 16; ++i) {
            x.u[i] = seed_g[i + threadIdx.x];
            x.f[i] = __uint_as_float(seed_g[i + 64 + threadIdx.x]);
            x.d[i / 4][i % 4] = 0;
        }
        x.h = seed_g[128 + threadIdx.x];
        x.k = seed_g[160 + threadIdx.x];
        x.c = __uint_as_float(seed_g[192 + threadIdx.x]);
        x.e = __uint_as_float(seed_g[224 + threadIdx.x]);
    }

    template <int I>
    __device__ __forceinline__ void step()
    {
#pragma unroll
        for (int i = 0; i < A_TIMES || i < B_TIMES; ++i) {
            if (i < A_TIMES)
                one<A>(x, I * A_TIMES + i);
            if (i < B_TIMES)
                one<B>(x, I * B_TIMES + i + 8);
        }
    }

    __device__ __forceinline__ unsigned result() const
    {
        unsigned sum = 0;
        for (int i = 0; i < 16; ++i)
            sum += x.u[i] + __float_as_uint(x.f[i]) + __float_as_uint(x.d[i / 4][i % 4]);
        return sum;
    }
};

#define ALONE(KIND) report<mix<KIND>>(b, #KIND)
#define BESIDE(A, NUM, B, DEN) report<mix<A, NUM, B, DEN>>(b, #NUM " " #A " + " #DEN " " #B)

int main()
{
    const buffers b = make_buffers("studies/pipe_rates.cu");
    printf("# One kind; columns: 4, 8, 16, 32 warps. HFMA2, HADD2, HMUL2: half of them compile to HFMA2.MMA.\n"
           "# EX2, RCP, LG2: MUFU. EX2_F16X2: two MUFU.EX2.F16 and a PRMT.\n");
    ALONE(FFMA), ALONE(FADD), ALONE(FMUL), ALONE(HFMA2), ALONE(HADD2), ALONE(HMUL2), ALONE(IMAD);
    ALONE(IADD3), ALONE(LOP3), ALONE(SHF), ALONE(PRMT), ALONE(SEL), ALONE(ISETP_SEL), ALONE(FSETP_FSEL);
    ALONE(FMNMX), ALONE(VIMNMX), ALONE(HMNMX2), ALONE(F2FP);
    ALONE(EX2), ALONE(RCP), ALONE(LG2), ALONE(EX2_F16X2), ALONE(HMMA);
    printf("# Two kinds in the same warps; clocks of all instructions of a step together.\n");
    BESIDE(EX2, 1, FFMA, 1), BESIDE(EX2, 1, FFMA, 4), BESIDE(EX2, 1, FFMA, 8), BESIDE(EX2, 1, HMMA, 1);
    BESIDE(EX2, 2, HMMA, 1), BESIDE(EX2, 1, HMMA, 2), BESIDE(EX2, 1, F2FP, 1), BESIDE(EX2, 2, F2FP, 1);
    BESIDE(EX2, 1, LOP3, 1), BESIDE(F2FP, 1, FFMA, 1), BESIDE(F2FP, 1, FFMA, 2), BESIDE(F2FP, 1, LOP3, 1);
    BESIDE(F2FP, 1, HMMA, 1), BESIDE(FFMA, 1, LOP3, 1), BESIDE(FFMA, 2, LOP3, 1), BESIDE(FFMA, 1, HFMA2, 1);
    BESIDE(FFMA, 1, IMAD, 1), BESIDE(FFMA, 4, HMMA, 1), BESIDE(LOP3, 4, HMMA, 1), BESIDE(FMNMX, 1, LOP3, 1);
    BESIDE(FMNMX, 1, FFMA, 1), BESIDE(HFMA2, 1, LOP3, 1), BESIDE(IMAD, 1, LOP3, 1);
    return 0;
}
