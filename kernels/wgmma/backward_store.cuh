/* How dK and dV leave wgmma_backward: a warp's rows as whole lines, or in a cluster as sums over its blocks. */
#pragma once

#include "wgmma/backward.cuh"

/* Stores dV = sums, or dK = `scale` times the sums. A warp makes whole lines of its 16 rows in two boxes of shared
 * memory: at warp_s, and box_step bytes further on. */
template <bool DV, int REGISTERS>
__device__ __forceinline__ void store_sums(const float (&sums)[REGISTERS], const fa_params &p, const key_block &block,
                                           int first_key, unsigned warp_s, int box_step, int thread)
{
    const fa_i64 *strides = p.grad_stride[DV ? 3 : 2];
    const int lane = thread % 32, warp_row = thread / 32 * 16, columns = (DV ? FA_DIM_V : FA_DIM) - lane % 8 * 8;
    const int keys = block.seq.seq_kv - first_key - warp_row;
    fa_element *rows_g = key_rows(DV ? p.dv : p.dk, block.seq, strides[0], strides[1], strides[2], block.kv_head) +
                         (first_key + warp_row) * strides[2] + lane % 8 * 8;
    const float factor = DV ? 1.0f : p.scale;
#pragma unroll
    for (int box = 0; box < REGISTERS / 32; ++box) {
        const unsigned box_at = warp_s + box % 2 * box_step;
        __syncwarp(); /* what was there has been read */
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float *from = sums + box * 32 + i * 8;
            const unsigned four[4] = {
                pack_elements(from[0] * factor, from[1] * factor), pack_elements(from[2] * factor, from[3] * factor),
                pack_elements(from[4] * factor, from[5] * factor), pack_elements(from[6] * factor, from[7] * factor)};
            stmatrix_x4_at(box_at + lane % 16 * BOX_ROW_BYTES + (i * 2 + lane / 16 ^ lane % 8) * 16, four);
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = i * 4 + lane / 8;
            uint4 chunk;
            ld_shared_16_at(chunk, box_at + row * BOX_ROW_BYTES + (lane % 8 ^ row % 8) * 16);
            if (row < keys && box * 64 < columns)
                st_global_16(rows_g + row * strides[2] + box * 64, chunk);
        }
    }
}

/* Where a sum of dK or dV waits for the other blocks: four neighbouring keys fall in different banks. */
__device__ __forceinline__ int place_of_sum(int key, int column)
{
    return (key * SUM_COLUMNS + (column ^ key % 4 * 8)) * 4;
}

/* A warpgroup's dK or dV of 64 keys to the block's sums. */
template <int REGISTERS>
__device__ __forceinline__ void put_sums(const float (&sums)[REGISTERS], unsigned char *smem, int key0, int column0,
                                         int thread)
{
    const int key = key0 + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
    for (int i = 0; i < REGISTERS; i += 2)
        *reinterpret_cast<float2 *>(smem + place_of_sum(key + i / 2 % 2 * 8, column0 + i / 4 * 8) + thread % 4 * 8) =
            make_float2(sums[i], sums[i + 1]);
}

/* Waits for all threads of the cluster that have not ended; what they did before is seen after it. Whole warps call. */
__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* Four floats at this place in the shared memory of a block of the cluster. */
__device__ __forceinline__ float4 ld_block_shared(unsigned from_s, unsigned block)
{
    float4 x;
    asm volatile("{\n\t.reg .u32 there;\n\tmapa.shared::cluster.u32 there, %4, %5;\n\t"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n\t}"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(from_s), "r"(block)
                 : "memory");
    return x;
}

/* Each block of the cluster stores dK and dV of its share of the keys: what all blocks have, added in their order. */
__device__ __forceinline__ void store_shares(const fa_params &p, const key_block &block, unsigned base)
{
    constexpr int KEYS = N / SPLITS, CHUNKS = SUM_COLUMNS / 4;
    cluster_sync();
#pragma unroll 2
    for (int i = threadIdx.x; i < KEYS * CHUNKS; i += CONSUMERS) {
        const int key = blockIdx.x % SPLITS * KEYS + i / CHUNKS, place = i % CHUNKS * 4;
        const bool dv = place >= DIM_PAD;
        float4 sum = {};
#pragma unroll
        for (int share = 0; share < SPLITS; ++share) {
            const float4 part = ld_block_shared(base + place_of_sum(key, place), share);
            sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
        }
        const int column = place - (dv ? DIM_PAD : 0);
        const fa_i64 *strides = p.grad_stride[dv ? 3 : 2];
        const float factor = dv ? 1.0f : p.scale;
        fa_element *head_g = key_rows(dv ? p.dv : p.dk, block.seq, strides[0], strides[1], strides[2], block.kv_head);
        if (block.key0 + key < block.seq.seq_kv && column < (dv ? FA_DIM_V : FA_DIM))
            *reinterpret_cast<uint2 *>(head_g + (block.key0 + key) * strides[2] + column) = {
                pack_elements(sum.x * factor, sum.y * factor), pack_elements(sum.z * factor, sum.w * factor)};
    }
    __syncwarp();
    cluster_sync(); /* no block ends while another reads its sums */
}
