/* Tiles of K and V out of pages, for the kernels with a ring of wgmma/pipeline.cuh. The producer's whole warp loads: a
 * lane looks up the page of PAGE_BOX keys, the elected one issues their boxes. A box lies in one page. K and V have the
 * same pages. */
#pragma once

#include "shared/sequence.cuh"
#include "wgmma/pipeline.cuh"

constexpr int PAGE_BOX = 16; /* rows of a box: two swizzle patterns. Pages are multiples of it */
constexpr int BOX_KEYS = HAS_PAGES ? PAGE_BOX : FA_N;

#if FA_FEATURES & FA_FEATURE_PAGED
/* The rows of a tile of V from `first` on: those that no box of whole keys holds, then zeros. What a page has after the
 * sequence's last key may be NaN, and P is 0 there, so it must not be multiplied. tile_s: of key key0. */
__device__ __forceinline__ void load_last_values(const paged_rows &rows, unsigned tile_s, int key0, int first,
                                                 int seq_kv)
{
    constexpr int CHUNKS = DIM_PAD_V / 8, BOX_CHUNKS = BOX_COLS / 8;
#pragma unroll 1
    for (int item = threadIdx.x % 32; item < (FA_N - first) * CHUNKS; item += 32) {
        const int row = first + item / CHUNKS, chunk = item % CHUNKS, box = chunk / BOX_CHUNKS;
        const int column = column_of_place(chunk * 8);
        uint4 words = make_uint4(0, 0, 0, 0);
        if (key0 + row < seq_kv && column < FA_DIM_V)
            words = *reinterpret_cast<const uint4 *>(row_at(rows, key0 + row, column));
        st_shared_16_at(tile_s + (box * FA_N + row) * BOX_ROW_BYTES + ((chunk % BOX_CHUNKS) ^ swizzle_of_row(row)) * 16,
                        words);
    }
    fence_async_proxy();
}

/* Where a box of keys is: its page, and its first row there. A warp's lanes have 32 boxes in a row. */
struct box_place {
    int page, row;
};

__device__ __forceinline__ box_place find_box(const paged_rows &rows, int key0, int seq_kv)
{
    const int key = key0 + static_cast<int>(threadIdx.x % 32) * PAGE_BOX;
    if (key >= seq_kv)
        return {0, 0};
    const unsigned entry = static_cast<unsigned>(key) / rows.size;
    return {rows.table[entry], static_cast<int>(key - entry * rows.size)};
}

/* load_kv of a tile of keys from key0 on, by a warp of which one lane leads. Lane `first` and those after it have its
 * boxes. Keys past the sequence's last are not loaded: in K they are masked, in V they are zeros (VALUES). */
template <int BOXES_OF, bool VALUES>
__device__ __forceinline__ void load_kv_from_pages(const fa_tensor_map *map, const paged_rows &rows,
                                                   const box_place &place, int first, unsigned ring_s, unsigned full,
                                                   unsigned empty, pipeline_state &to, int key0, int seq_kv,
                                                   int kv_head, bool leads)
{
    const unsigned bar = full + 8 * to.stage, tile_s = ring_s + to.stage * (FA_N * BOXES_OF * BOX_ROW_BYTES);
    const int left = max(min(seq_kv - key0, FA_N), 0);
    const int boxes = (VALUES ? left : left + PAGE_BOX - 1) / PAGE_BOX;
    mbarrier_wait(empty + 8 * to.stage, to.phase ^ 1);
    if (VALUES && boxes < FA_N / PAGE_BOX)
        load_last_values(rows, tile_s, key0, boxes * PAGE_BOX, seq_kv);
    __syncwarp(); /* all lanes' values before the arrival */
    if (leads)
        mbarrier_arrive_expect(bar, boxes * BOXES_OF * PAGE_BOX * BOX_ROW_BYTES);
#pragma unroll 1
    for (int i = 0; i < boxes; ++i) {
        const int from = __shfl_sync(ALL_LANES, place.page, first + i);
        const int row = __shfl_sync(ALL_LANES, place.row, first + i);
        if (leads)
#pragma unroll
            for (int box = 0; box < BOXES_OF; ++box)
                tma_load(tile_s + (box * FA_N + i * PAGE_BOX) * BOX_ROW_BYTES, map, bar, column_of_box(box), row,
                         kv_head, from);
    }
    advance<FA_STAGES>(to);
}
#endif
