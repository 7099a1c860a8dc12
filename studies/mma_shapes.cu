/* Clocks of a multiprocessor per mma.sync of each shape and type that the kernels use, and what share that is of the
 * dense peak of 4096 FP16 operations a clock (sm_90).
 *     nvcc -std=c++17 -O3 -arch=sm_90a studies/mma_shapes.cu -o build/mma_shapes && build/mma_shapes */
#include "clocks.cuh"

enum shape { K16_F32, K16_F16, K16_BF16, K8_F32, K8_F16, K8_TF32, SHAPES };
static const char *const names[SHAPES] = {"m16n8k16 f32 <- f16", "m16n8k16 f16 <- f16", "m16n8k16 f32 <- bf16",
                                          "m16n8k8 f32 <- f16",  "m16n8k8 f16 <- f16",  "m16n8k8 f32 <- tf32"};
static const int depth[SHAPES] = {16, 16, 16, 8, 8, 8};

#define MMA(SHAPE, TYPES, D, A, B)                                                       \
    asm volatile("mma.sync.aligned." SHAPE ".row.col." TYPES " " D "," A "," B "," D ";" \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                        \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <shape SHAPE>
__device__ __forceinline__ void mma(unsigned (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    if (SHAPE == K16_F32)
        MMA("m16n8k16", "f32.f16.f16.f32", "{%0,%1,%2,%3}", "{%4,%5,%6,%7}", "{%8,%9}");
    if (SHAPE == K16_F16)
        MMA("m16n8k16", "f16.f16.f16.f16", "{%0,%1}", "{%4,%5,%6,%7}", "{%8,%9}");
    if (SHAPE == K16_BF16)
        MMA("m16n8k16", "f32.bf16.bf16.f32", "{%0,%1,%2,%3}", "{%4,%5,%6,%7}", "{%8,%9}");
    if (SHAPE == K8_F32)
        MMA("m16n8k8", "f32.f16.f16.f32", "{%0,%1,%2,%3}", "{%4,%5}", "{%8}");
    if (SHAPE == K8_F16)
        MMA("m16n8k8", "f16.f16.f16.f16", "{%0,%1}", "{%4,%5}", "{%8}");
    if (SHAPE == K8_TF32)
        MMA("m16n8k8", "f32.tf32.tf32.f32", "{%0,%1,%2,%3}", "{%4,%5,%6,%7}", "{%8,%9}");
}

/* TILES accumulators in turns: few of them wait for each other, many hide the latency. KEEP: how many products in a row
 * have the same A. */
template <shape SHAPE, int TILES, int KEEP>
struct products {
    enum { MOST_WARPS = 16, ROLES = 1, UNROLL = 16 };
    unsigned d[TILES][4], a[4][4], b[4][2];

    __device__ __forceinline__ void setup(const unsigned *seed_g, unsigned)
    {
        for (int i = 0; i < TILES * 4; ++i)
            d[i / 4][i % 4] = 0;
        for (int i = 0; i < 16; ++i)
            a[i / 4][i % 4] = seed_g[i * 32 + threadIdx.x];
        for (int i = 0; i < 8; ++i)
            b[i / 2][i % 2] = seed_g[1024 + i * 32 + threadIdx.x];
    }

    template <int I, int ROLE>
    __device__ __forceinline__ void step()
    {
        mma<SHAPE>(d[I % TILES], a[I / KEEP % 4], b[I % 4]);
    }

    __device__ __forceinline__ unsigned result() const
    {
        unsigned sum = 0;
        for (int i = 0; i < TILES * 4; ++i)
            sum += d[i / 4][i % 4];
        return sum;
    }
};

template <shape SHAPE>
static void measure(const buffers &b)
{
    char name[64];
    double best = 1e30;
    const auto keep = [&](double clocks) { best = clocks < best ? clocks : best; };
    snprintf(name, sizeof name, "%s 8x1", names[SHAPE]);
    keep(report<products<SHAPE, 8, 1>>(b, name));
    snprintf(name, sizeof name, "%s 8x4", names[SHAPE]);
    keep(report<products<SHAPE, 8, 4>>(b, name));
    snprintf(name, sizeof name, "%s 16x4", names[SHAPE]);
    keep(report<products<SHAPE, 16, 4>>(b, name));
    const double flop = 2.0 * 16 * 8 * depth[SHAPE];
    printf("    %.0f operations a clock: %.1f %% of 4096\n", flop / best, 100 * flop / best / 4096);
}

int main()
{
    const buffers b = make_buffers("studies/mma_shapes.cu");
    printf("# accumulators x products with the same A; columns: 4, 8, 16 warps\n");
    measure<K16_F32>(b);
    measure<K16_F16>(b);
    measure<K16_BF16>(b);
    measure<K8_F32>(b);
    measure<K8_F16>(b);
    measure<K8_TF32>(b);
    return 0;
}
