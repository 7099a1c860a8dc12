/* Clocks of a multiprocessor per wgmma m64nNk16, with A from registers and from shared memory, and what else issues
 * beside it: other instructions in the same warps between a wgmma and its wait, or in another warpgroup.
 *     nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -Iinclude -Ikernels studies/wgmma_issue.cu \
 *         -o build/wgmma_issue && build/wgmma_issue */
#include "clocks.cuh"
#include "instructions.cuh"

#define FA_M 64
#define FA_MAXREG 0
#include "../kernels/shared/hopper.cuh"

enum place { ALONE, SAME_WARPS, OTHER_WARPS };

/* A step: one wgmma, and TIMES instructions beside it. OTHER_WARPS: the second warpgroup has only these, the first
 * only wgmma. Four wgmma are a group, and one group runs at a time. Data are zeros. */
template <int N, bool A_SHARED, place PLACE, kind KIND, int TIMES>
struct beside {
    enum { MOST_WARPS = N > 128 ? 8 : 12, ROLES = PLACE == OTHER_WARPS ? 2 : 1, UNROLL = 16 };
    float d[N / 2];
    unsigned a[4];
    u64 a_s, b_s;
    registers x;

    __device__ __forceinline__ void setup(const unsigned *seed_g, unsigned shared)
    {
        for (int i = 0; i < N / 2; ++i)
            d[i] = 0;
        for (int i = 0; i < 4; ++i)
            a[i] = seed_g[i * 32 + threadIdx.x];
        a_s = wgmma_descriptor(descriptor_start(shared) + uniform_by_shuffle(threadIdx.x / 128) * 8192 / 16);
        b_s = wgmma_descriptor(descriptor_start(shared + 32768));
        x.setup(seed_g);
        asm volatile("fence.proxy.async;" ::: "memory");
    }

    template <int I, int ROLE>
    __device__ __forceinline__ void step()
    {
        if (ROLE == 0) {
            if (I % 4 == 0) {
                fence_operand(d);
                wgmma_fence();
            }
            if (A_SHARED)
                wgmma<N>::ss(d, a_s, b_s, 1);
            else
                wgmma<N>::rs(d, a, b_s, 1);
            if (I % 4 == 3)
                wgmma_commit();
        }
        if (PLACE == SAME_WARPS || ROLE == 1) {
#pragma unroll
            for (int i = 0; i < TIMES; ++i)
                one<KIND>(x, I * TIMES + i);
        }
        if (ROLE == 0 && I % 4 == 3) {
            wgmma_wait<0>();
            fence_operand(d);
        }
    }

    __device__ __forceinline__ unsigned result() const
    {
        unsigned sum = x.sum();
        for (int i = 0; i < N / 2; ++i)
            sum += __float_as_uint(d[i]);
        return sum;
    }
};

/* Clocks per wgmma of a warpgroup and, where others run beside, per warp instruction of the others. */
template <int N, bool A_SHARED, place PLACE, kind KIND, int TIMES>
static void measure(const buffers &b, const char *beside_name)
{
    typedef beside<N, A_SHARED, PLACE, KIND, TIMES> study;
    static const char *const places[] = {"alone", "same warps", "other warps"};
    printf("n%-3d A %-9s %-11s %2d %-6s", N, A_SHARED ? "shared" : "registers", places[PLACE], TIMES, beside_name);
    const int first = PLACE == OTHER_WARPS ? 2 : 1, last = PLACE == OTHER_WARPS ? 2 : study::MOST_WARPS / 4;
    for (int groups = first; groups <= last; ++groups) {
        long long clocks[64];
        double one_wgmma = 1e30, one_other = 1e30;
        check(cudaFuncSetAttribute(loop<study>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
        for (int i = 0; i < 4; ++i) {
            loop<study><<<1, groups * 128, SHARED_BYTES>>>(b.seed_g, b.out_g, b.clocks_g);
            check(cudaGetLastError());
            check(cudaMemcpy(clocks, b.clocks_g, sizeof clocks, cudaMemcpyDeviceToHost));
            const int with_products = PLACE == OTHER_WARPS ? 1 : groups;
            const double products = clocks_of(clocks, 0, with_products * 4) / (STEPS * with_products);
            one_wgmma = i > 0 && products < one_wgmma ? products : one_wgmma;
            const double others = clocks_of(clocks, 4, 8) / (STEPS * (TIMES > 0 ? TIMES : 1) * 4.0);
            one_other = i > 0 && others < one_other ? others : one_other;
        }
        printf("  %d x %7.2f", groups, one_wgmma);
        if (PLACE == OTHER_WARPS)
            printf(", %.3f per %s", one_other, beside_name);
    }
    printf("\n");
    fflush(stdout);
}

template <int N>
static void measure_alone(const buffers &b)
{
    measure<N, false, ALONE, NONE, 0>(b, "");
    measure<N, true, ALONE, NONE, 0>(b, "");
}

#define BESIDE(KIND, TIMES)                                  \
    measure<128, false, SAME_WARPS, KIND, TIMES>(b, #KIND);  \
    measure<128, true, SAME_WARPS, KIND, TIMES>(b, #KIND);   \
    measure<128, false, OTHER_WARPS, KIND, TIMES>(b, #KIND); \
    measure<128, true, OTHER_WARPS, KIND, TIMES>(b, #KIND)

int main()
{
    const buffers b = make_buffers("studies/wgmma_issue.cu");
    printf(
        "# Columns: 1, 2, 3 warpgroups with wgmma x clocks per wgmma. At 4096 operations a clock one takes n / 2.\n");
    measure_alone<64>(b);
    measure_alone<96>(b);
    measure_alone<128>(b);
    measure_alone<192>(b);
    measure_alone<256>(b);
    printf("# Beside each wgmma so many warp instructions per warp. Other warps: 2 x, the second has no wgmma.\n");
    BESIDE(FFMA, 32);
    BESIDE(FFMA, 64);
    BESIDE(LOP3, 32);
    BESIDE(EX2, 8);
    BESIDE(EX2, 16);
    BESIDE(F2FP, 32);
    BESIDE(HFMA2, 32);
    BESIDE(IMAD, 32);
    return 0;
}
