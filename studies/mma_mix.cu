/* What other instructions cost beside mma.sync: clocks per m16n8k16 and scheduler with so many of them per mma, in the
 * same warps ("mixed") or in other warps of the scheduler ("split"; then also clocks per other instruction). Data are
 * zeros: clocks, not times.
 *     nvcc -std=c++17 -O3 -arch=sm_90a studies/mma_mix.cu -o build/mma_mix && build/mma_mix */
#include <cstdio>
#include <cuda_runtime.h>

enum other_kind { NONE, FFMA, FADD, FMUL, FMNMX, VMAX3, LOP3, IADD3, F2FP, MUFU, LDSM };
static const char *const names[] = {"none", "ffma",  "fadd", "fmul", "fmnmx",  "vimnmx3",
                                    "lop3", "iadd3", "f2fp", "mufu", "ldsm.x4"};
enum { BLOCKS = 132, MMAS = 16, LOOPS = 400 };

struct registers {
    float f[8], c;
    unsigned u[8], l[8], at;
};

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <int KIND>
__device__ __forceinline__ void other(registers &x, int i)
{
    const int j = i % 8, k = (i + 3) % 8, half = j % 2 * 4;
    if (KIND == FFMA)
        asm volatile("fma.rn.f32 %0,%1,%2,%0;" : "+f"(x.f[j]) : "f"(x.f[k]), "f"(x.c));
    if (KIND == FADD)
        asm volatile("add.rn.f32 %0,%1,%0;" : "+f"(x.f[j]) : "f"(x.f[k]));
    if (KIND == FMUL)
        asm volatile("mul.rn.f32 %0,%1,%2;" : "=f"(x.f[j]) : "f"(x.f[k]), "f"(x.c));
    if (KIND == FMNMX)
        asm volatile("max.f32 %0,%1,%0;" : "+f"(x.f[j]) : "f"(x.f[k]));
    if (KIND == VMAX3)
        x.u[j] = __vimax3_s32(x.u[k], x.u[j], x.u[(j + 5) % 8]);
    if (KIND == LOP3)
        asm volatile("lop3.b32 %0,%1,%2,%0,0x96;" : "+r"(x.u[j]) : "r"(x.u[k]), "r"(x.at));
    if (KIND == IADD3)
        asm volatile("add.u32 %0,%1,%0;" : "+r"(x.u[j]) : "r"(x.u[k]));
    if (KIND == F2FP)
        asm volatile("{.reg .f32 t; mov.b32 t,%0; cvt.rn.f16x2.f32 %0,t,%1;}" : "+r"(x.u[j]) : "f"(x.f[k]));
    if (KIND == MUFU)
        asm volatile("ex2.approx.ftz.f32 %0,%0;" : "+f"(x.f[j]));
    if (KIND == LDSM)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                     : "=r"(x.l[half]), "=r"(x.l[half + 1]), "=r"(x.l[half + 2]), "=r"(x.l[half + 3])
                     : "r"(x.at + i % 16 * 256)
                     : "memory");
}

template <int KIND, int NUM, int DEN, bool SPLIT>
__global__ void __launch_bounds__(512) mix(float *out, long long *clocks)
{
    __shared__ __align__(128) unsigned zeros[2048];
    float d[MMAS][4] = {};
    unsigned a[4][4], b[4][2];
    registers x;
    for (int i = threadIdx.x; i < 2048; i += blockDim.x)
        zeros[i] = 0;
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j)
            a[i][j] = __float_as_uint(out[i * 4 + j + threadIdx.x]);
        for (int j = 0; j < 2; ++j)
            b[i][j] = __float_as_uint(out[i + 99 + 100 * j + threadIdx.x]);
    }
    for (int i = 0; i < 8; ++i) {
        x.f[i] = out[i + 300];
        x.u[i] = __float_as_uint(out[400 + i]);
        x.l[i] = 0;
    }
    x.c = out[500];
    x.at = static_cast<unsigned>(__cvta_generic_to_shared(zeros)) + threadIdx.x % 32 * 16;
    __syncthreads();
    const bool others_only = SPLIT && threadIdx.x / 128 % 2;
    const long long start = clock64();
    for (int loop = 0; loop < (others_only ? LOOPS * NUM / DEN : LOOPS); ++loop) {
        x.at ^= KIND == LDSM ? 2048 : 0; /* else the same loads again: dropped */
#pragma unroll
        for (int i = 0; i < MMAS; ++i) {
            if (others_only) {
                other<KIND>(x, i);
                continue;
            }
            mma(d[i], a[i / 4], KIND == LDSM ? x.l[i % 4 * 2] : b[i % 4][0],
                KIND == LDSM ? x.l[i % 4 * 2 + 1] : b[i % 4][1]);
#pragma unroll
            for (int q = (i * NUM + DEN - 1) / DEN; !SPLIT && q < ((i + 1) * NUM + DEN - 1) / DEN; ++q)
                other<KIND>(x, q);
        }
    }
    const long long end = clock64();
    float sum = 0;
    for (int i = 0; i < MMAS; ++i)
        sum += d[i][0] + d[i][1] + d[i][2] + d[i][3];
    for (int i = 0; i < 8; ++i)
        sum += x.f[i] + __uint_as_float(x.u[i]) + __uint_as_float(x.l[i]);
    if (sum == 12345.678f)
        out[0] = sum;
    if (blockIdx.x == 0 && threadIdx.x % 32 == 0)
        clocks[threadIdx.x / 32] = end - start;
}

template <int KIND, int NUM, int DEN, bool SPLIT>
static void measure(float *out, long long *clocks_g, int warps)
{
    long long clocks[16], mma_clocks = 0, other_clocks = 0;
    for (int i = 0; i < 2; ++i)
        mix<KIND, NUM, DEN, SPLIT><<<BLOCKS, warps * 32>>>(out, clocks_g);
    if (cudaMemcpy(clocks, clocks_g, sizeof clocks, cudaMemcpyDeviceToHost) != cudaSuccess) {
        printf("%s: %s\n", names[KIND], cudaGetErrorString(cudaGetLastError()));
        return;
    }
    for (int i = 0; i < warps; ++i) {
        long long &longest = SPLIT && i / 4 % 2 ? other_clocks : mma_clocks;
        longest = clocks[i] > longest ? clocks[i] : longest;
    }
    const double mma_warps = warps / (SPLIT ? 8.0 : 4.0); /* per scheduler */
    printf("%-8s %d/%d per mma, %s, %2d warps: %6.3f clocks per mma", names[KIND], NUM, DEN, SPLIT ? "split" : "mixed",
           warps, mma_clocks / (LOOPS * MMAS * mma_warps));
    if (SPLIT)
        printf(", %.3f per %s", other_clocks / (LOOPS * NUM / DEN * MMAS * mma_warps), names[KIND]);
    printf("\n");
}

template <int KIND>
static void measure_kind(float *out, long long *clocks_g)
{
    measure<KIND, 1, 2, false>(out, clocks_g, 8);
    measure<KIND, 1, 1, false>(out, clocks_g, 8);
    measure<KIND, 2, 1, false>(out, clocks_g, 8);
    measure<KIND, 3, 1, false>(out, clocks_g, 8);
    measure<KIND, 1, 1, true>(out, clocks_g, 8);
    measure<KIND, 3, 1, true>(out, clocks_g, 8);
}

int main()
{
    float *out;
    long long *clocks;
    if (cudaMalloc(&out, 1 << 20) != cudaSuccess || cudaMemset(out, 0, 1 << 20) != cudaSuccess ||
        cudaMalloc(&clocks, 1024) != cudaSuccess) {
        printf("NOT-RUN: no GPU\n");
        return 4;
    }
    for (int warps = 4; warps <= 16; warps += 4)
        measure<NONE, 0, 1, false>(out, clocks, warps);
    measure_kind<FFMA>(out, clocks);
    measure_kind<FADD>(out, clocks);
    measure_kind<FMUL>(out, clocks);
    measure_kind<FMNMX>(out, clocks);
    measure_kind<VMAX3>(out, clocks);
    measure_kind<LOP3>(out, clocks);
    measure_kind<IADD3>(out, clocks);
    measure_kind<F2FP>(out, clocks);
    measure_kind<MUFU>(out, clocks);
    measure_kind<LDSM>(out, clocks);
    return 0;
}
