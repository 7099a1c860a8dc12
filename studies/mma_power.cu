/* How fast mma.sync is where the power of the card limits it: TFLOP/s, clock and clocks per m16n8k16 and scheduler,
 * sustained, registers only, two warps a scheduler, by the data and by which operand consecutive mma keep.
 *     nvcc -std=c++17 -O3 -arch=sm_90a studies/mma_power.cu -o build/mma_power && build/mma_power */
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <random>
#include <vector>

constexpr int BANDS = 2, COLUMNS = 8, STEPS = 2, LOOPS = 20000, THREADS = 128, BLOCKS_PER_SM = 2, HALVES = 1 << 18;
constexpr double FLOP = 2.0 * 16 * 8 * 16;
/* KEEP_A: a band's 8 columns one after the other; KEEP_B: both bands of a column; PAIRS: two columns of a band, then of
 * the other, as kernels/mma.cu; SNAKE: the same with one operand kept at every step. */
enum order { KEEP_A, KEEP_B, PAIRS, SNAKE };
static const char *const order_names[] = {"A kept for 8", "B kept for 2", "A kept for 2", "A or B kept"};
enum { DATA = 3 };
static const char *const data_names[DATA] = {"zeros", "normal", "e^normal x normal"};

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* halves_g: first half for A, second for B. clocks_g: clocks and nanoseconds of the first block. */
template <order ORDER>
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    run(const unsigned *halves_g, float *out_g, long long *clocks_g)
{
    unsigned a[STEPS][BANDS][4], b[COLUMNS][2];
    float d[BANDS][COLUMNS][4] = {};
    const unsigned thread = threadIdx.x + blockIdx.x * THREADS, mask = HALVES / 4 - 1;
    for (int i = 0; i < STEPS * BANDS * 4; ++i)
        a[i / (BANDS * 4)][i / 4 % BANDS][i % 4] = halves_g[(thread * 32 + i) & mask];
    for (int i = 0; i < COLUMNS * 2; ++i)
        b[i / 2][i % 2] = halves_g[HALVES / 4 + ((thread * 32 + i) & mask)];
    long long start = clock64(), start_ns, end_ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start_ns));
    for (int loop = 0; loop < LOOPS; ++loop) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step)
#pragma unroll
            for (int i = 0; i < BANDS * COLUMNS; ++i) {
                const int band = ORDER == KEEP_A ? i / COLUMNS : ORDER == KEEP_B ? i % BANDS : i / 2 % 2;
                const int column = ORDER == KEEP_A   ? i % COLUMNS
                                   : ORDER == KEEP_B ? i / BANDS
                                                     : i / 4 * 2 + (ORDER == SNAKE && band ? 1 - i % 2 : i % 2);
                mma(d[band][column], a[step][band], b[column]);
            }
        if (loop % 64 == 63) /* or the sums would leave the range of a float */
            for (int i = 0; i < BANDS * COLUMNS * 4; ++i)
                d[i / (COLUMNS * 4)][i / 4 % COLUMNS][i % 4] *= 0.01f;
    }
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end_ns));
    if (thread == 0) {
        clocks_g[0] = clock64() - start;
        clocks_g[1] = end_ns - start_ns;
    }
    float sum = 0;
    for (int i = 0; i < BANDS * COLUMNS * 4; ++i)
        sum += d[i / (COLUMNS * 4)][i / 4 % COLUMNS][i % 4];
    if (sum == 12345.0f) /* never: the sums must not be dropped */
        out_g[0] = sum;
}

static void check(cudaError_t error, int line)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "mma_power.cu:%d: %s\n", line, cudaGetErrorString(error));
        exit(1);
    }
}
#define CHECK(call) check(call, __LINE__)

template <order ORDER>
void measure(const char *data, int blocks, const unsigned *halves_g, float *out_g, long long *clocks_g)
{
    constexpr int LAUNCHES = 10;
    cudaEvent_t begin, end;
    long long clocks[2];
    float ms = 0;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    const auto warm = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (std::chrono::steady_clock::now() < warm) {
        run<ORDER><<<blocks, THREADS>>>(halves_g, out_g, clocks_g);
        CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaEventRecord(begin));
    for (int i = 0; i < LAUNCHES; ++i)
        run<ORDER><<<blocks, THREADS>>>(halves_g, out_g, clocks_g);
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    CHECK(cudaMemcpy(clocks, clocks_g, sizeof clocks, cudaMemcpyDeviceToHost));
    const double each = 1.0 * LOOPS * STEPS * BANDS * COLUMNS;
    printf("%-18s %-13s %4.0f TFLOP/s  %4.0f MHz  %.2f clk/HMMA\n", data, order_names[ORDER],
           each * blocks * THREADS / 32 * LAUNCHES * FLOP / ms / 1e9, clocks[0] * 1e3 / clocks[1],
           clocks[0] / each / BLOCKS_PER_SM);
}

int main()
{
    cudaDeviceProp gpu;
    unsigned *halves_g;
    float *out_g;
    long long *clocks_g;
    CHECK(cudaGetDeviceProperties(&gpu, 0));
    CHECK(cudaMalloc(&halves_g, HALVES * sizeof(__half)));
    CHECK(cudaMalloc(&out_g, sizeof *out_g));
    CHECK(cudaMalloc(&clocks_g, 2 * sizeof *clocks_g));
    printf("# %s, studies/mma_power.cu: m16n8k16, FP16 in, FP32 accumulate, sustained\n", gpu.name);
    const int blocks = gpu.multiProcessorCount * BLOCKS_PER_SM;
    for (int data = 0; data < DATA; ++data) {
        std::mt19937 bits(42);
        std::normal_distribution<float> normal;
        std::vector<__half> halves(HALVES);
        for (int i = 0; i < HALVES; ++i) {
            const float x = normal(bits);
            halves[i] = __float2half(data == 0 ? 0.0f : data == 2 && i < HALVES / 2 ? std::exp(x - 3.0f) : x);
        }
        CHECK(cudaMemcpy(halves_g, halves.data(), HALVES * sizeof(__half), cudaMemcpyHostToDevice));
        measure<KEEP_A>(data_names[data], blocks, halves_g, out_g, clocks_g);
        measure<KEEP_B>(data_names[data], blocks, halves_g, out_g, clocks_g);
        measure<PAIRS>(data_names[data], blocks, halves_g, out_g, clocks_g);
        measure<SNAKE>(data_names[data], blocks, halves_g, out_g, clocks_g);
    }
}
