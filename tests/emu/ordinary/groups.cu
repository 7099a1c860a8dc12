// Cooperative groups: block, tiles, coalesced threads, reduce.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "ordinary.cuh"

namespace cg = cooperative_groups;

template <typename Group>
__device__ float sum_of(const Group &group, float x)
{
    for (int offset = group.size() / 2; offset > 0; offset /= 2)
        x += group.shfl_down(x, offset);
    return group.shfl(x, 0);
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    bool good = true;
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    auto quad = cg::tiled_partition<4>(warp);
    __shared__ float partial[THREADS / 32];
    EXPECT(block.thread_rank() == threadIdx.x && block.size() == THREADS && warp.meta_group_rank() == threadIdx.x / 32);
    EXPECT(sum_of(warp, 1.0f) == 32.0f && sum_of(quad, (float)quad.thread_rank()) == 6.0f);
    EXPECT(cg::reduce(warp, (int)warp.thread_rank(), cg::plus<int>()) == 496);
    EXPECT(cg::reduce(quad, (int)threadIdx.x, cg::greater<int>()) == (int)(threadIdx.x | 3));
    EXPECT(warp.shfl_xor(threadIdx.x, 1) == (threadIdx.x ^ 1) && quad.ballot(quad.thread_rank() > 1) == 0xcu);
    EXPECT(warp.all(1) && !quad.any(0) &&
           quad.shfl_up((int)threadIdx.x, 1) == (int)threadIdx.x - (quad.thread_rank() > 0));
    if (warp.thread_rank() == 0)
        partial[warp.meta_group_rank()] = 2.0f;
    block.sync();
    EXPECT(partial[0] + partial[1] == 4.0f);
    if (threadIdx.x % 3 == 0) {
        cg::coalesced_group some = cg::coalesced_threads();
        EXPECT((int)some.size() <= 11 && cg::reduce(some, 1, cg::plus<int>()) == (int)some.size());
        EXPECT(some.shfl((int)some.thread_rank(), 0) == 0);
        some.sync();
    }
    cg::sync(block);
    attend(p, good);
}
