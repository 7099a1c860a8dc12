/* How many clocks a multiprocessor needs for a warp instruction of each kind alone, and for two or three kinds in the
 * same warps: what shares a pipe adds up, what does not overlaps. MUFU beside FMA and HMMA, packing to FP16 (F2FP).
 *     nvcc -std=c++17 -O3 -arch=sm_90a studies/pipe_rates.cu -o build/pipe_rates && build/pipe_rates */
#include "clocks.cuh"
#include "instructions.cuh"

/* A times A and B times B in each step, in turns. */
template <kind A, int A_TIMES = 1, kind B = NONE, int B_TIMES = 0>
struct mix {
    /* What ptxas would join over a longer round has a short one. */
    enum { MOST_WARPS = 32, ROLES = 1, SHORT = A == RCP || A == VIMNMX || A == HMNMX2 || A == EX2_F16X2 };
    enum { UNROLL = SHORT ? 16 : 64 };
    registers x;

    __device__ __forceinline__ void setup(const unsigned *seed_g, unsigned) { x.setup(seed_g); }

    template <int I, int ROLE>
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

    __device__ __forceinline__ unsigned result() const { return x.sum(); }
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
    ALONE(FMNMX), ALONE(VIMNMX), ALONE(HMNMX2), ALONE(F2FP), ALONE(F2FP_E4M3);
    ALONE(EX2), ALONE(RCP), ALONE(LG2), ALONE(EX2_F16X2), ALONE(HMMA);
    printf("# Two kinds in the same warps; clocks of all instructions of a step together.\n");
    BESIDE(EX2, 1, FFMA, 1), BESIDE(EX2, 1, FFMA, 4), BESIDE(EX2, 1, FFMA, 8), BESIDE(EX2, 1, HMMA, 1);
    BESIDE(EX2, 2, HMMA, 1), BESIDE(EX2, 1, HMMA, 2), BESIDE(EX2, 1, F2FP, 1), BESIDE(EX2, 2, F2FP, 1);
    BESIDE(EX2, 1, F2FP_E4M3, 1), BESIDE(EX2, 2, F2FP_E4M3, 1), BESIDE(F2FP_E4M3, 1, LOP3, 1),
        BESIDE(F2FP_E4M3, 1, FFMA, 1);
    BESIDE(EX2, 1, LOP3, 1), BESIDE(F2FP, 1, FFMA, 1), BESIDE(F2FP, 1, FFMA, 2), BESIDE(F2FP, 1, LOP3, 1);
    BESIDE(F2FP, 1, HMMA, 1), BESIDE(FFMA, 1, LOP3, 1), BESIDE(FFMA, 2, LOP3, 1), BESIDE(FFMA, 1, HFMA2, 1);
    BESIDE(FFMA, 1, IMAD, 1), BESIDE(FFMA, 4, HMMA, 1), BESIDE(LOP3, 4, HMMA, 1), BESIDE(FMNMX, 1, LOP3, 1);
    BESIDE(FMNMX, 1, FFMA, 1), BESIDE(HFMA2, 1, LOP3, 1), BESIDE(IMAD, 1, LOP3, 1);
    return 0;
}
