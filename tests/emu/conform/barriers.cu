/* Block barriers with counts and predicates, named barriers, threads that have exited. */
#include "conform.cuh"

FA_KERNEL_INFO(.threads = 128, .smem_dynamic_bytes = 1024);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(int, s);
    const int t = threadIdx.x, warp = t / 32;
    for (int step = 1; step < 128; step *= 2) {
        s[t] = t * step;
        __syncthreads();
        EXPECT(s[(t + step) % 128] == (t + step) % 128 * step);
        __syncthreads();
    }
    EXPECT(__syncthreads_count(t % 3 == 0) == 43);
    EXPECT(__syncthreads_and(t < 128) != 0 && __syncthreads_and(t < 127) == 0);
    EXPECT(__syncthreads_or(t == 127) != 0 && __syncthreads_or(t == 128) == 0);

    /* warps 0 and 1 produce for 2 and 3, three rounds through one buffer */
    for (int round = 0; round < 3; round++) {
        if (warp < 2) {
            if (round > 0)
                bar_sync(2, 128);
            s[128 + t] = t + 1000 * round;
            __threadfence_block();
            bar_arrive(1, 128);
        } else {
            bar_sync(1, 128);
            EXPECT(s[128 + (t ^ 31) % 64] == (t ^ 31) % 64 + 1000 * round);
            if (round < 2)
                bar_arrive(2, 128);
        }
    }
    __syncthreads();

    /* a pair of warps at its own barrier */
    s[t] = -t;
    bar_sync(4 + warp / 2, 64);
    EXPECT(s[t ^ 32] == -(t ^ 32));
    put(p, blockIdx.x * 128 + t, s[t ^ 32]);
    __syncthreads();

    /* warps that come to one barrier from two places */
    s[t] = 3 * t;
    if (warp < 2)
        bar_sync_apart(3, 128);
    else {
        s[128 + t] = t;
        bar_sync_apart(3, 128);
    }
    EXPECT(s[t ^ 64] == 3 * (t ^ 64));
    EXPECT(s[192 + t % 64] == 64 + t % 64);
    __syncthreads();

    /* those who have left are not waited for */
    if (warp == 3)
        return;
    s[t] = t;
    __syncthreads();
    EXPECT(s[95 - t] == 95 - t);
}
