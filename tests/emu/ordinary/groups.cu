// Cooperative groups: block, tiles, coalesced threads, reduce, scans, memcpy_async, partitions, split barriers.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
#include <utility>

#include "ordinary.cuh"

namespace cg = cooperative_groups;

template <typename Group>
__device__ float sum_of(const Group &group, float x)
{
    for (int offset = group.size() / 2; offset > 0; offset /= 2)
        x += group.shfl_down(x, offset);
    return group.shfl(x, 0);
}

CHECKS()
{
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
    {
        namespace cg = cooperative_groups;
        auto g = cg::this_thread_block();
        auto w = cg::tiled_partition<32>(g);
        auto q = cg::tiled_partition<8>(g);
        EXPECT(cg::reduce(w, (float)1, cg::plus<float>()) == 32 && cg::reduce(q, t, cg::less<int>()) == (t & ~7) &&
               cg::inclusive_scan(w, 1) == (int)w.thread_rank() + 1 &&
               cg::exclusive_scan(w, 1) == (int)w.thread_rank());
        EXPECT(g.group_index().x == blockIdx.x && g.thread_index().x == t && g.dim_threads().x == THREADS &&
               w.num_threads() == 32 && g.num_threads() == THREADS);
        __shared__ alignas(16) half d[64];
        cg::memcpy_async(g, d, (const half *)p.q, sizeof(half) * 16);
        cg::wait(g);
        EXPECT(__half_as_ushort(d[3]) == ((const unsigned short *)p.q)[3]);
        g.sync();
        cg::memcpy_async(w, d + 16 * w.meta_group_rank(), (const half *)p.q, cuda::aligned_size_t<16>(32));
        cg::wait_prior<0>(w);
        w.sync();
        auto half_warp = cg::tiled_partition<16, cg::thread_block>(g);
        EXPECT(half_warp.size() == 16);
        cg::thread_group tg = cg::tiled_partition(g, 4);
        EXPECT(tg.size() == 4);
        tg.sync();
        auto act = cg::coalesced_threads();
        EXPECT(act.size() >= 1);
        auto lp = cg::labeled_partition(w, t & 1);
        EXPECT(lp.size() == 16);
        if (cg::thread_rank(w) == 0)
            EXPECT(true);
        auto tok = g.barrier_arrive();
        g.barrier_wait(std::move(tok));
        cg::invoke_one(w, [&] { EXPECT(true); });
        EXPECT(cg::this_grid().num_blocks() >= 1 && cg::this_grid().thread_rank() >= 0);
        float v = cg::reduce(w, (float)t, [](float a, float b) { return a > b ? a : b; });
        EXPECT(v == (t | 31));
        EXPECT(cg::reduce(w, make_float2(1, 2), [](float2 a, float2 b) {
                   return make_float2(a.x + b.x, a.y + b.y);
               }).y == 64);
        EXPECT(w.shfl_xor(make_float4(t, 1, 2, 3), 1).x == (t ^ 1));

        auto parts = cg::tiled_partition<4>(w);
        EXPECT(parts.meta_group_rank() == t % 32 / 4 && parts.meta_group_size() == 8 && w.meta_group_rank() == t / 32);
        cg::thread_block_tile<4> parts_of_any = parts;
        EXPECT(parts_of_any.meta_group_rank() == t % 32 / 4 && tg.thread_rank() == t % 4);
        EXPECT(lp.meta_group_rank() == t % 2 && lp.meta_group_size() == 2);
        auto odd = cg::binary_partition(w, t & 1);
        auto thirds = cg::tiled_partition(odd, 4);
        EXPECT(odd.meta_group_rank() == t % 2 && thirds.size() == 4 && thirds.meta_group_rank() == t % 32 / 8);
        EXPECT(thirds.shfl(t, 1) == (t & ~7) + 2 + t % 2 && cg::invoke_one_broadcast(q, [&] { return t; }) == (t & ~7));
        cg::grid_group all = cg::this_grid();
        EXPECT(all.block_index().x == blockIdx.x && all.dim_blocks().x == gridDim.x &&
               all.dim_threads().x == gridDim.x * THREADS && all.thread_index().x == blockIdx.x * THREADS + t);
        __shared__ cg::block_tile_memory<THREADS> scratch;
        EXPECT(cg::tiled_partition<32>(cg::this_thread_block(scratch)).thread_rank() == t % 32);
    }
}
