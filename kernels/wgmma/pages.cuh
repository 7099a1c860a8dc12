/* Tiles of K and V out of pages, for the kernels with a ring of wgmma/pipeline.cuh. A box lies in one page. The boxes
 * of a tile are dealt over the producer's warpgroup: a lane of each warp looks up the pages of its own, and loads. */
#pragma once

#include "shared/sequence.cuh"
#include "wgmma/pipeline.cuh"

constexpr int PAGE_BOX = 16; /* rows of a box: two swizzle patterns. Pages are multiples of it */
constexpr int BOX_KEYS = HAS_PAGES || FA_FP8_KV ? PAGE_BOX : FA_N;
constexpr int PAGE_WARPS = 4; /* each arrives at a full barrier */

#if FA_FEATURES & FA_FEATURE_PAGED
constexpr int TILE_BOXES = FA_N / PAGE_BOX, WARP_BOXES = (TILE_BOXES + PAGE_WARPS - 1) / PAGE_WARPS;

/* Where the boxes of a warp are in a tile: their pages, and their first rows there. */
struct box_places {
    int page[WARP_BOXES], row[WARP_BOXES];
};

/* Those of the tile from key0 on. No page is looked up for keys past the sequence's last. K and V have the same. */
__device__ __forceinline__ void find_boxes(box_places &to, const paged_rows &rows, int key0, int seq_kv, int warp)
{
#pragma unroll
    for (int i = 0; i < WARP_BOXES; ++i) {
        const int key = key0 + (warp + i * PAGE_WARPS) * PAGE_BOX;
        to.row[i] = 0;
        to.page[i] = key < seq_kv ? page_at(rows, key, to.row[i]) : 0;
    }
}

/* Boxes of a tile that has `left` keys of the sequence: with K those that have some, with V those that have no others.
 * What a page has after the last key may be NaN. Scores of such keys are masked. Their P is 0, but 0 times NaN is NaN,
 * so their V must stay out of the product. */
template <bool VALUES>
__device__ __forceinline__ int boxes_of(int left)
{
    return (VALUES ? left : left + PAGE_BOX - 1) / PAGE_BOX;
}

/* The warp's boxes of a tile to its next stage, as soon as all consumers have released it. For one lane. */
template <int BOXES_OF>
__device__ __forceinline__ void load_boxes(const fa_tensor_map *map, const box_places &places, int boxes,
                                           unsigned ring_s, unsigned full, unsigned empty, pipeline_state &to,
                                           int kv_head, int warp)
{
    const unsigned bar = full + 8 * to.stage, tile_s = ring_s + to.stage * (FA_N * BOXES_OF * BOX_ROW_BYTES);
    const unsigned own = static_cast<unsigned>(boxes - warp + PAGE_WARPS - 1) / PAGE_WARPS;
    mbarrier_wait(empty + 8 * to.stage, to.phase ^ 1);
    mbarrier_arrive_expect(bar, own * (BOXES_OF * PAGE_BOX * BOX_ROW_BYTES));
#pragma unroll
    for (int i = 0; i < WARP_BOXES; ++i)
        if (warp + i * PAGE_WARPS < boxes)
#pragma unroll
            for (int box = 0; box < BOXES_OF; ++box)
                tma_load(tile_s + (box * FA_N + (warp + i * PAGE_WARPS) * PAGE_BOX) * BOX_ROW_BYTES, map, bar,
                         column_of_box(box), places.row[i], kv_head, places.page[i]);
    advance<FA_STAGES>(to);
}

/* The whole warpgroup stores the rows of a tile of V that no box holds: those of the last keys, then zeros. The lane
 * that loads joins its warp first: a warp that waits tiles ahead of it would take an old phase for its own. That lane
 * arrives at the full barrier afterwards. key0: the tile's first key; it has `left` keys. at: its stage. */
__device__ __forceinline__ void load_last_values(const paged_rows &rows, unsigned ring_s, unsigned empty,
                                                 const pipeline_state &at, int key0, int left)
{
    constexpr int CHUNKS = DIM_PAD_V / 8, BOX_CHUNKS = BOX_COLS / 8;
    const int first = boxes_of<true>(left) * PAGE_BOX;
    const unsigned tile_s = ring_s + at.stage * V_TILE_BYTES;
    __syncwarp();
    mbarrier_wait(empty + 8 * at.stage, at.phase ^ 1);
#pragma unroll 1
    for (int item = threadIdx.x; item < (FA_N - first) * CHUNKS; item += 32 * PAGE_WARPS) {
        const int row = first + item / CHUNKS, chunk = item % CHUNKS, box = chunk / BOX_CHUNKS;
        const int column = column_of_place(chunk * 8);
        uint4 words = make_uint4(0, 0, 0, 0);
        if (row < left && column < FA_DIM_V)
            words = *reinterpret_cast<const uint4 *>(row_at(rows, key0 + row, column));
        st_shared_16_at(tile_s + (box * FA_N + row) * BOX_ROW_BYTES + ((chunk % BOX_CHUNKS) ^ swizzle_of_row(row)) * 16,
                        words);
    }
    fence_async_proxy();
    __syncwarp(); /* all lanes' values before the arrival */
}
#endif
