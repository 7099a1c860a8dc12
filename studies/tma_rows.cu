/* Clocks of a multiprocessor to load a tile of 128 rows of 16-bit elements by TMA, by dim and by what the boxes are.
 * All multiprocessors load at once, four tiles each under way, from 2 MB that L2 holds. Rows follow each other without
 * gaps, so where dim is an odd multiple of 8 every other row begins within a sector of 32 bytes.
 *     nvcc -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a studies/tma_rows.cu -o build/tma_rows
 *     build/tma_rows */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>

enum { STAGES = 4, TILE_ROWS = 128, MOST_COLS = 128, MOST_BOXES = 8, TILES = 400, MOST_BLOCKS = 1024 };
enum { STAGE_BYTES = TILE_ROWS * MOST_COLS * 2, SHARED = STAGES * STAGE_BYTES + 1024 };
enum { ROWS = 1024, HEADS = 8 };

struct tile_loads {
    CUtensorMap map;
    int boxes, box_bytes, columns[MOST_BOXES]; /* the first column of each box */
};

__device__ __forceinline__ unsigned address_of(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__global__ void __launch_bounds__(32) load_tiles(const __grid_constant__ tile_loads loads, long long *clocks_g)
{
    extern __shared__ unsigned char data_s[];
    __shared__ unsigned long long full[STAGES];
    const unsigned buffer_s = (address_of(data_s) + 1023) & ~1023u;
    if (threadIdx.x != 0)
        return;
    for (int i = 0; i < STAGES; ++i)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(full + i)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    const long long start = clock64();
    for (int t = 0; t < TILES + STAGES; ++t) {
        const int stage = t % STAGES;
        const unsigned bar = address_of(full + stage);
        for (unsigned done = t < STAGES; !done;)
            asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
                         : "=r"(done)
                         : "r"(bar), "r"((t / STAGES - 1) & 1)
                         : "memory");
        if (t >= TILES)
            continue;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
                     "r"(loads.boxes * loads.box_bytes)
                     : "memory");
        for (int i = 0; i < loads.boxes; ++i)
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                         "[%1, {%3, %4, %5}], [%2];" ::"r"(buffer_s + stage * STAGE_BYTES + i * loads.box_bytes),
                         "l"(&loads.map), "r"(bar), "r"(loads.columns[i]), "r"(t * TILE_ROWS % ROWS),
                         "r"(blockIdx.x / 16 % HEADS)
                         : "memory");
    }
    clocks_g[blockIdx.x] = clock64() - start;
}

static void check(bool fine, const char *what)
{
    if (!fine) {
        printf("NOT-RUN: %s\n", what);
        exit(4);
    }
}

static decltype(&cuTensorMapEncodeTiled) find_encode(void)
{
    cudaDriverEntryPointQueryResult found;
    void *encode = NULL;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found);
    check(encode != NULL, "cuTensorMapEncodeTiled");
    return (decltype(&cuTensorMapEncodeTiled))encode;
}

enum kind { ALL_COLUMNS, TAIL_FIRST, FIRST_BOX };

struct variant {
    const char *name;
    kind boxes;
    int cols; /* of a box: 64, 32 or 16, swizzled by 128, 64 or 32 bytes */
    CUtensorMapL2promotion promotion;
};

/* Prints the median multiprocessor's clocks per tile, the least of three runs. */
static void measure(int dim, const variant &of, char *data_g, long long *clocks_g)
{
    const cuuint64_t dims[3] = {(cuuint64_t)dim, ROWS, HEADS};
    const cuuint64_t strides[2] = {2ull * dim, 2ull * dim * ROWS};
    const cuuint32_t box[3] = {(cuuint32_t)of.cols, TILE_ROWS, 1}, steps[3] = {1, 1, 1};
    tile_loads loads = {};
    loads.boxes = of.boxes == FIRST_BOX ? 1 : (dim + of.cols - 1) / of.cols;
    loads.box_bytes = TILE_ROWS * of.cols * 2;
    for (int i = 0; i < loads.boxes; ++i)
        loads.columns[i] = of.boxes != TAIL_FIRST ? i * of.cols : i == 0 ? dim - of.cols : (i - 1) * of.cols;
    check(find_encode()(&loads.map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, data_g, dims, strides, box, steps,
                        CU_TENSOR_MAP_INTERLEAVE_NONE,
                        of.cols == 64   ? CU_TENSOR_MAP_SWIZZLE_128B
                        : of.cols == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
                                        : CU_TENSOR_MAP_SWIZZLE_32B,
                        of.promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS,
          "the map");
    int blocks = 0;
    cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0);
    blocks = std::min<int>(blocks, MOST_BLOCKS);
    double least = 0;
    for (int run = 0; run < 3; ++run) {
        long long clocks[MOST_BLOCKS];
        load_tiles<<<blocks, 32, SHARED>>>(loads, clocks_g);
        check(cudaMemcpy(clocks, clocks_g, blocks * sizeof clocks[0], cudaMemcpyDeviceToHost) == cudaSuccess,
              "the copy");
        std::sort(clocks, clocks + blocks);
        const double per_tile = clocks[blocks / 2] / (double)TILES;
        least = run == 0 ? per_tile : std::min(least, per_tile);
    }
    printf(" %6.0f", least);
}

int main()
{
    cudaDeviceProp device;
    char *data_g;
    long long *clocks_g;
    check(cudaGetDeviceProperties(&device, 0) == cudaSuccess && device.major == 9, "a GPU of compute capability 9.0");
    check(cudaMalloc(&data_g, 2 * 128 * ROWS * HEADS) == cudaSuccess, "memory");
    check(cudaMalloc(&clocks_g, MOST_BLOCKS * sizeof *clocks_g) == cudaSuccess, "memory");
    cudaMemset(data_g, 0, 2 * 128 * ROWS * HEADS);
    cudaFuncSetAttribute(load_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED);
    const variant variants[] = {
        {"all columns, promotion to 256", ALL_COLUMNS, 64, CU_TENSOR_MAP_L2_PROMOTION_L2_256B},
        {"all columns, to 128", ALL_COLUMNS, 64, CU_TENSOR_MAP_L2_PROMOTION_L2_128B},
        {"all columns, none", ALL_COLUMNS, 64, CU_TENSOR_MAP_L2_PROMOTION_NONE},
        {"the last 64 first, to 256", TAIL_FIRST, 64, CU_TENSOR_MAP_L2_PROMOTION_L2_256B},
        {"the last 64 first, none", TAIL_FIRST, 64, CU_TENSOR_MAP_L2_PROMOTION_NONE},
        {"the first box alone, to 256", FIRST_BOX, 64, CU_TENSOR_MAP_L2_PROMOTION_L2_256B},
        {"the first box alone, none", FIRST_BOX, 64, CU_TENSOR_MAP_L2_PROMOTION_NONE},
        {"boxes of 32 columns, to 256", ALL_COLUMNS, 32, CU_TENSOR_MAP_L2_PROMOTION_L2_256B},
        {"boxes of 32 columns, none", ALL_COLUMNS, 32, CU_TENSOR_MAP_L2_PROMOTION_NONE},
        {"the first of them alone, to 256", FIRST_BOX, 32, CU_TENSOR_MAP_L2_PROMOTION_L2_256B},
        {"the last 32 first, none", TAIL_FIRST, 32, CU_TENSOR_MAP_L2_PROMOTION_NONE},
        {"boxes of 16 columns, to 256", ALL_COLUMNS, 16, CU_TENSOR_MAP_L2_PROMOTION_L2_256B},
        {"boxes of 16 columns, none", ALL_COLUMNS, 16, CU_TENSOR_MAP_L2_PROMOTION_NONE},
        {"the first of them alone, to 256", FIRST_BOX, 16, CU_TENSOR_MAP_L2_PROMOTION_L2_256B},
    };
    printf("# %s, studies/tma_rows.cu: clocks of a multiprocessor to load 128 rows\n%-32s", device.name, "dim");
    for (int dim = 32; dim <= 128; dim += 8)
        printf(" %6d", dim);
    for (const auto &variant : variants) {
        printf("\n%-32s", variant.name);
        for (int dim = 32; dim <= 128; dim += 8)
            if (variant.boxes == TAIL_FIRST && dim < variant.cols)
                printf(" %6s", "-");
            else
                measure(dim, variant, data_g, clocks_g);
    }
    printf("\n");
}
