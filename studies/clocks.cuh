/* Clocks of one multiprocessor per warp instruction: the loop and the launch that the studies of rates share.
 *
 * A study is a struct with MOST_WARPS, ROLES, UNROLL, `setup(seed, shared)`, `step<I, ROLE>()` and `result()`. Every
 * warp of one block runs STEPS steps in rounds of UNROLL; of ROLES, 1 or 2, the warpgroups take turns. The clocks are
 * those from the first warp's start to the last warp's end, over the warp instructions of all warps: what the
 * multiprocessor needs for one. Clocks, not times: power does not matter. */
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <utility>

enum { STEPS = 8192, SEED_BYTES = 8 << 20, SHARED_BYTES = 128 * 1024 };

static inline void check(cudaError_t error)
{
    if (error == cudaSuccess)
        return;
    printf("NOT-RUN: %s\n", cudaGetErrorString(error));
    exit(4);
}

template <int ROLE, typename STUDY, int... I>
__device__ __forceinline__ void rounds(STUDY &study, std::integer_sequence<int, I...>)
{
#pragma unroll 1
    for (int i = 0; i < STEPS / STUDY::UNROLL; ++i)
        (study.template step<I, ROLE>(), ...);
}

template <typename STUDY>
__global__ void __launch_bounds__(STUDY::MOST_WARPS * 32, 1)
    loop(const unsigned *seed_g, unsigned *out_g, long long *clocks_g)
{
    extern __shared__ __align__(1024) unsigned data_s[];
    STUDY study;
    for (unsigned i = threadIdx.x; i < SHARED_BYTES / 4; i += blockDim.x)
        data_s[i] = 0;
    study.setup(seed_g, static_cast<unsigned>(__cvta_generic_to_shared(data_s)));
    const int role = __shfl_sync(0xffffffffu, threadIdx.x / 128 % 2, 0);
    __syncthreads();
    const long long start = clock64();
    if (STUDY::ROLES == 1 || role == 0)
        rounds<0>(study, std::make_integer_sequence<int, STUDY::UNROLL>());
    else
        rounds<1>(study, std::make_integer_sequence<int, STUDY::UNROLL>());
    const unsigned result = study.result();
    const long long end = clock64();
    if (result == 0x12345678u) /* keeps the work */
        *out_g = result;
    if (threadIdx.x % 32 == 0) {
        clocks_g[threadIdx.x / 32 * 2] = start;
        clocks_g[threadIdx.x / 32 * 2 + 1] = end;
    }
}

struct buffers {
    unsigned *seed_g, *out_g;
    long long *clocks_g;
};

static inline buffers make_buffers(const char *study)
{
    buffers b;
    cudaDeviceProp gpu;
    check(cudaGetDeviceProperties(&gpu, 0));
    check(cudaMalloc(&b.seed_g, SEED_BYTES));
    check(cudaMemset(b.seed_g, 0, SEED_BYTES)); /* zeros, which the compiler does not know */
    check(cudaMalloc(&b.out_g, 4));
    check(cudaMalloc(&b.clocks_g, 32 * 2 * sizeof(long long)));
    printf("# %s, sm_%d%d, %s: clocks of a multiprocessor\n", gpu.name, gpu.major, gpu.minor, study);
    return b;
}

/* From the first of the warps [from, to) to start to the last to end. */
static inline double clocks_of(const long long *clocks, int from, int to)
{
    long long start = clocks[from * 2], end = clocks[from * 2 + 1];
    for (int i = from; i < to; ++i) {
        start = clocks[i * 2] < start ? clocks[i * 2] : start;
        end = clocks[i * 2 + 1] > end ? clocks[i * 2 + 1] : end;
    }
    return static_cast<double>(end - start);
}

/* Clocks per step of a warp: the fewest of three launches after one to warm up. */
template <typename STUDY>
double clocks_per_step(const buffers &b, int warps)
{
    long long clocks[32 * 2];
    double best = 1e30;
    check(cudaFuncSetAttribute(loop<STUDY>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
    for (int i = 0; i < 4; ++i) {
        loop<STUDY><<<1, warps * 32, SHARED_BYTES>>>(b.seed_g, b.out_g, b.clocks_g);
        check(cudaGetLastError());
        check(cudaMemcpy(clocks, b.clocks_g, sizeof clocks, cudaMemcpyDeviceToHost));
        const double one = clocks_of(clocks, 0, warps) / (1.0 * STEPS * warps);
        best = i > 0 && one < best ? one : best;
    }
    return best;
}

/* A line: the clocks of a step with 4, 8, 16 and 32 warps, as far as the study goes, and the fewest. */
template <typename STUDY>
double report(const buffers &b, const char *name)
{
    double best = 1e30;
    printf("%-26s", name);
    for (int warps = 4; warps <= STUDY::MOST_WARPS; warps *= 2) {
        const double one = clocks_per_step<STUDY>(b, warps);
        best = one < best ? one : best;
        printf(" %7.3f", one);
    }
    printf("  fewest %7.3f\n", best);
    fflush(stdout);
    return best;
}
