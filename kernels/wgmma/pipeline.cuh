/* A pipeline of FA_STAGES buffers in shared memory, which one thread fills by TMA and warpgroups read. A full barrier
 * waits for a buffer's bytes, an empty one for its readers. */
#pragma once

#include "wgmma/parts.cuh"

/* A full barrier waits for the producer (a lane of each of `writers` warps) and its bytes, an empty one for a lane of
 * every warp that reads. LAYOUT has the address of each first barrier: k_full, k_empty, v_full, v_empty. */
template <class LAYOUT>
__device__ __forceinline__ void init_kv_barriers(const LAYOUT &at, int readers, int writers = 1)
{
    for (int i = 0; i < FA_STAGES; ++i) {
        mbarrier_init(at.k_full + 8 * i, writers);
        mbarrier_init(at.v_full + 8 * i, writers);
        mbarrier_init(at.k_empty + 8 * i, readers);
        mbarrier_init(at.v_empty + 8 * i, readers);
    }
}

/* Where a producer or consumer is in a pipeline. */
struct pipeline_state {
    int stage;
    unsigned phase;
};

/* After `count` buffers. */
template <int STAGES>
__device__ __forceinline__ pipeline_state state_of(unsigned count)
{
    return {static_cast<int>(count % STAGES), count / STAGES % 2};
}

template <int STAGES>
__device__ __forceinline__ void advance(pipeline_state &at)
{
    if (++at.stage == STAGES) {
        at.stage = 0;
        at.phase ^= 1;
    }
}

/* advance for a whole warp. The state stays in uniform registers, and so do the descriptors made from it. */
template <int STAGES>
__device__ __forceinline__ void advance_warp(pipeline_state &at)
{
    advance<STAGES>(at);
    at.stage = uniform_by_shuffle(at.stage);
    at.phase = uniform_by_shuffle(at.phase);
}

__device__ __forceinline__ void consumer_wait(unsigned full, const pipeline_state &at)
{
    mbarrier_wait(full + 8 * at.stage, at.phase);
}

/* The warp has read its buffer for the last time: the producer may fill it again. */
template <int STAGES>
__device__ __forceinline__ void consumer_release(unsigned empty, pipeline_state &at, int lane)
{
    if (lane == 0)
        mbarrier_arrive(empty + 8 * at.stage);
    advance_warp<STAGES>(at);
}

/* Frees a buffer without reading it. All lanes have seen it full by then: one that comes later would wait for another
 * phase. */
template <int STAGES>
__device__ __forceinline__ void consumer_pass(unsigned full, unsigned empty, pipeline_state &at, int lane)
{
    consumer_wait(full, at);
    __syncwarp();
    consumer_release<STAGES>(empty, at, lane);
}

/* Loads a tile of K or V (BOXES_OF) into its next stage, as soon as all consumers have released it. */
template <int BOXES_OF>
__device__ __forceinline__ void load_kv(const fa_tensor_map *map, unsigned ring_s, unsigned full, unsigned empty,
                                        pipeline_state &to, int row, int head, int batch)
{
    const unsigned bar = full + 8 * to.stage;
    mbarrier_wait(empty + 8 * to.stage, to.phase ^ 1);
    load_tile<FA_N, BOXES_OF>(ring_s, to.stage, bar, map, row, 0, head, batch);
    advance<FA_STAGES>(to);
}
