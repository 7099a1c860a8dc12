/* A fault on purpose: a tile comes by TMA and its mbarrier says so once; the second wait is for a phase that nobody
 * completes. */
#include "../cheats/honest.cuh"
#include "shared/hopper.cuh"
static_assert(FA_DIM == 64 && FA_M == 32, "one box of 32 rows of 64");
FA_KERNEL_INFO(.threads = FA_M, .smem_dynamic_bytes = 1024 + FA_M * FA_DIM * 2, .tma_q_rows = FA_M, .tma_cols = FA_DIM);
extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, smem);
    __shared__ __align__(8) unsigned long long full_s;
    const place at = my_place(p);
    const unsigned full = smem_address(&full_s), tile = (smem_address(smem) + 1023) / 1024 * 1024;
    if (threadIdx.x == 0) {
        mbarrier_init(full, 1);
        mbarrier_init_fence();
        mbarrier_arrive_expect(full, FA_M * FA_DIM * 2);
        tma_load(tile, &p.q_map, full, 0, at.row, at.head, at.batch);
    }
    __syncthreads();
    while (!mbarrier_try_wait(full, 0)) {
    }
    if (at.inside)
        attend(p, at, at.o);
    while (!mbarrier_try_wait(full, 1)) { /* HERE: no second load */
    }
}
