/* Shuffles of every mode and width, partial masks, votes, matches, reductions. */
#include "conform.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 0);

__device__ void shuffles(const fa_params &p, int lane, int width)
{
    const int base = lane / width * width, at = lane % width;
    for (int d = 0; d < 32; d++) {
        const int x = lane * 100 + d;
        EXPECT(__shfl_sync(~0u, x, d, width) == (base + d % width) * 100 + d);
        EXPECT(__shfl_up_sync(~0u, x, d, width) == (at >= d ? lane - d : lane) * 100 + d);
        EXPECT(__shfl_down_sync(~0u, x, d, width) == (at + d < width ? lane + d : lane) * 100 + d);
        EXPECT(__shfl_xor_sync(~0u, x, d, width) == ((lane ^ d) < base + width ? lane ^ d : lane) * 100 + d);
    }
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    const int lane = threadIdx.x % 32;
    for (int width = 1; width <= 32; width *= 2)
        shuffles(p, lane, width);

    const float2 pair = __half22float2(__shfl_xor_sync(~0u, __floats2half2_rn(lane, -lane), 1));
    EXPECT(pair.x == (lane ^ 1) && pair.y == -(lane ^ 1));
    EXPECT(__shfl_down_sync(~0u, lane * 0.125, 3) == (lane + 3 < 32 ? lane + 3 : lane) * 0.125);
    EXPECT(__shfl_sync(~0u, 1ll << lane, 31) == 1ll << 31);

    /* halves of a warp apart from each other */
    if (lane < 16) {
        EXPECT(__shfl_xor_sync(0x0000ffffu, lane, 15) == 15 - lane);
        EXPECT(__ballot_sync(0x0000ffffu, lane & 1) == 0xaaaau);
    } else {
        EXPECT(__shfl_xor_sync(0xffff0000u, lane, 15) == 47 - lane);
        EXPECT(__ballot_sync(0xffff0000u, lane & 1) == 0xaaaa0000u);
    }
    __syncwarp();

    EXPECT(__ballot_sync(~0u, lane % 3 == 0) == 0x49249249u);
    EXPECT(__any_sync(~0u, lane == 31) != 0 && __any_sync(~0u, lane == 32) == 0);
    EXPECT(__all_sync(~0u, lane < 32) != 0 && __all_sync(~0u, lane < 31) == 0);
    EXPECT(__match_any_sync(~0u, lane / 8) == 0xffu << lane / 8 * 8);
    int same = 0;
    EXPECT(__match_all_sync(~0u, 7, &same) == ~0u && same);
    EXPECT(__match_all_sync(~0u, lane, &same) == 0 && !same);
    EXPECT(__reduce_add_sync(~0u, lane) == 496);
    EXPECT(__reduce_min_sync(~0u, lane - 40) == -40 && __reduce_max_sync(~0u, lane - 40) == -9);
    EXPECT(__reduce_max_sync(~0u, static_cast<unsigned>(lane - 1)) == ~0u);
    EXPECT(__reduce_xor_sync(~0u, 1u << lane) == ~0u && __reduce_or_sync(~0u, 1u << lane) == ~0u);
    EXPECT(__reduce_and_sync(~0u, ~(1u << lane)) == 0u);
    EXPECT(__activemask() == ~0u);
    put(p, blockIdx.x * 64 + threadIdx.x, __shfl_up_sync(~0u, lane * lane, 5));
}
