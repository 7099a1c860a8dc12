/* wgmma_fp8 in persistent blocks, which take tiles of queries from a counter: a warp loads Q, K and V, also those of
 * the next tile, and three transpose V. O is stored under the products of other consumers. A consumer without rows, or
 * whose rows see none of the last keys (at most one tile), has no products there. */
#pragma once

#include "wgmma/fp8.cuh"

/* Causal: the longest tiles of a section of heads first (tile_in_sections; DIM: a row has half as many bytes). */
constexpr int SECTION_DIM = ceil_div(FA_DIM + FA_DIM_V, 4);
/* Without a mask the last head has tiles of 128 rows where tiles of 192 would leave many blocks idle in the end. Short
 * tile i has index SHORT_TILE_AT - i. */
constexpr bool SHORT_TILES_LAST = M == 192 && !FA_CAUSAL;
constexpr int SHORT_TILE = 128, NO_TILE = -1, SHORT_TILE_AT = -2;

/* Tile `index` of a head. */
struct tile_place {
    int index, head, batch;
};

/* For one thread. */
__device__ __forceinline__ tile_place place_of(const fa_params &p, unsigned number)
{
    unsigned index, batch_head;
    tile_in_sections<SECTION_DIM, true>(index, batch_head, p, number);
    const unsigned batch = batch_head / p.heads;
    return {static_cast<int>(index), static_cast<int>(batch_head - batch * p.heads), static_cast<int>(batch)};
}

/* A tile of queries and its keys. */
struct tile_work {
    query_tile tile;
    key_tiles keys;
};

__device__ __forceinline__ tile_work work_at(const fa_params &p, const tile_place &place)
{
    const bool is_short = SHORT_TILES_LAST && place.index <= SHORT_TILE_AT;
    const int index = is_short ? SHORT_TILE_AT - place.index : place.index;
    const int kv_head = static_cast<unsigned>(place.head) / static_cast<unsigned>(p.heads / p.kv_heads);
    const query_tile tile = tile_of_sequences<M>(p, place.batch, place.head, kv_head, index, is_short ? SHORT_TILE : M);
    return {tile, keys_of_tile(p, tile)};
}

/* A place in a ring of so many slots. */
template <int SLOTS>
struct ring_place {
    int slot, phase;
    __device__ __forceinline__ void next()
    {
        if (++slot == SLOTS)
            slot = 0, phase ^= 1;
    }
};

__device__ __forceinline__ void st_shared_word(unsigned to_s, int x) { st_shared_at(to_s, __int_as_float(x)); }
__device__ __forceinline__ int ld_shared_word(unsigned from_s) { return __float_as_int(ld_shared_at(from_s)); }

/* To L2, where shared memory has no room for them yet. */
__device__ __forceinline__ void prefetch_queries(const fa_params &p, const query_tile &tile)
{
    for (int row = tile.row0; row < tile.row0 + M; row += 64)
        for (int box = 0; box < BOXES; ++box)
            tma_prefetch_l2(&p.q_map, box * ROW_BYTES, row, tile.head, tile.seq.batch);
}

/* One thread loads. The last block to leave resets the counter. */
__device__ __forceinline__ void load_tiles(const shared_layout &at, const fa_params &p)
{
    int *counters = static_cast<int *>(p.workspace);
    ring_place<Q_STAGES> q = {0, 0};
    ring_place<STAGES> k = {0, 0};
    ring_place<RAW_STAGES> raw = {0, 0};
    int tiles = p.tiles, first_short = p.tiles;
    if (SHORT_TILES_LAST) {
        const int blocks = gridDim.x, rest = tiles - tiles / blocks * blocks;
        if (rest > 0 && 3 * rest <= 2 * blocks)
            first_short = tiles - p.tiles_m, tiles = first_short + ceil_div(p.seq_q, SHORT_TILE);
    }
    for (int number = blockIdx.x; number < tiles; number = static_cast<int>(gridDim.x) + atomicAdd(counters, 1)) {
        const bool is_short = SHORT_TILES_LAST && number >= first_short;
        tile_place place = place_of(p, is_short ? first_short : number);
        if (is_short)
            place.index = SHORT_TILE_AT - (number - first_short);
        const tile_work w = work_at(p, place);
        if (Q_STAGES == 1)
            prefetch_queries(p, w.tile);
        mbarrier_wait(at.q_empty(q.slot), q.phase ^ 1);
        st_shared_word(at.place(q.slot), place.index);
        st_shared_word(at.place(q.slot) + 4, place.head);
        st_shared_word(at.place(q.slot) + 8, place.batch);
        if (w.keys.count > 0)
            load_queries(at, p, w.tile, q.slot);
        else
            mbarrier_arrive(at.q_full(q.slot));
        q.next();
        for (int i = 0; i < w.keys.count; ++i, k.next(), raw.next()) {
            mbarrier_wait(at.k_empty(k.slot), k.phase ^ 1);
            load_keys<BOXES>(at.k(k.slot), at.k_full(k.slot), &p.k_map, p, w.tile, w.keys, i);
            mbarrier_wait(at.raw_empty(raw.slot), raw.phase ^ 1);
            st_shared_word(at.more(raw.slot), 1);
            load_keys<BOXES_V>(at.raw(raw.slot), at.raw_full(raw.slot), &p.v_map, p, w.tile, w.keys, i);
        }
    }
    mbarrier_wait(at.q_empty(q.slot), q.phase ^ 1);
    st_shared_word(at.place(q.slot), NO_TILE);
    mbarrier_arrive(at.q_full(q.slot));
    mbarrier_wait(at.raw_empty(raw.slot), raw.phase ^ 1);
    st_shared_word(at.more(raw.slot), 0);
    mbarrier_arrive(at.raw_full(raw.slot));
    if (atomicAdd(&counters[1], 1) == static_cast<int>(gridDim.x) - 1)
        counters[0] = counters[1] = 0;
}

__device__ __forceinline__ void transpose_tiles(const shared_layout &at, int warp, int lane)
{
    ring_place<RAW_STAGES> raw = {0, 0};
    ring_place<STAGES> v = {0, 0};
    for (;; raw.next(), v.next()) {
        mbarrier_wait(at.raw_full(raw.slot), raw.phase);
        if (!ld_shared_word(at.more(raw.slot)))
            break;
        mbarrier_wait(at.v_empty(v.slot), v.phase ^ 1);
        transpose_values(at.raw(raw.slot), at.v(v.slot), warp, lane);
        mbarrier_arrive(at.raw_empty(raw.slot));
        fence_async_proxy();
        mbarrier_arrive(at.v_full(v.slot));
    }
}

/* Tiles of keys that some row of the consumer sees: all, all but the last, or, without rows, none. */
__device__ __forceinline__ int tiles_seen(const fa_params &p, const tile_work &w, int consumer)
{
    int count = w.keys.count;
    if (FA_CAUSAL) {
        const int end = keys_seen(p, w.tile.seq, w.tile.row0 + 64 * consumer + 63).end;
        count = min(count, ceil_div(max(end, 0), N));
    }
    return static_cast<int>(uniform_by_shuffle(64 * consumer < w.tile.rows ? count : 0));
}

__device__ __forceinline__ tile_place announced_place(const shared_layout &at, int slot)
{
    const auto word = [&](int i) { return static_cast<int>(uniform_by_shuffle(ld_shared_word(at.place(slot) + i))); };
    return {word(0), word(4), word(8)};
}

/* Whose turn comes then: consumers without rows have none. Who passes a turn is told as the one before that. */
__device__ __forceinline__ int next_turn(const tile_work &w, int consumer)
{
    return static_cast<int>(uniform_by_shuffle(consumer + 1 >= ceil_div(w.tile.rows, 64) ? 0 : consumer + 1));
}

__device__ __forceinline__ void consume_tiles(const shared_layout &at, const fa_params &p, int consumer, int thread)
{
    const int lane = thread % 32, warp_row = consumer * 64 + uniform_by_reduction(thread / 32 % 4) * 16;
    int tiles = 0, key_tiles = 0;  /* that the consumer has been through */
    if (consumer == CONSUMERS - 1) /* the first turn is consumer 0's */
        pass_turn(consumer);
#pragma unroll 1
    for (;; ++tiles) {
        const int slot = tiles % Q_STAGES;
        mbarrier_wait(at.q_full(slot), tiles / Q_STAGES % 2);
        const tile_place place = announced_place(at, slot);
        if (place.index == NO_TILE)
            break;
        const tile_work w = work_at(p, place);
        const head_scores scores = scores_of_head(p, w.tile.seq, w.tile.head);
        const unsigned q = uniform_by_shuffle(descriptor_start(at.q(slot * CONSUMERS + consumer)));
        const int next = next_turn(w, consumer), end = key_tiles + tiles_seen(p, w, consumer);
        consumer_state c;
#pragma unroll
        for (int i = 0; i < DIM_N / 2; ++i)
            c.o[i / 8][i / 4 % 2][i % 4] = 0.0f;
        c.m[0] = c.m[1] = NO_MAX, c.l[0] = c.l[1] = 0.0f;
        if (w.keys.count > 0 && 64 * consumer < w.tile.rows)
            take_turn(consumer);
        /* Without the causal mask each tile of queries has as many of keys: from constants, which take no register. */
        const int all = ceil_div(p.seq_kv, N);
        if (FA_CAUSAL || 64 * consumer < w.tile.rows) {
#pragma unroll 1
            for (int gone = 0; key_tiles < (FA_CAUSAL ? end : (tiles + 1) * all); gone += N, ++key_tiles) {
                const int key0 = FA_CAUSAL ? gone : (key_tiles - tiles * all) * N;
                const int stage = key_tiles % STAGES, phase = key_tiles / STAGES % 2;
                float s[N / 8][4];
                const unsigned k = uniform_by_shuffle(descriptor_start(at.k(stage)));
                mbarrier_wait(at.k_full(stage), phase);
                score_tile(s, q, k, next - 1);
                if (lane == 0)
                    mbarrier_arrive(at.k_empty(stage));
                const bool masked = /* no lengths, windows or chunks here: without the causal mask only the last tile */
                    FA_CAUSAL ? is_masked(p, w.tile, w.tile.row0 + warp_row, 16, key0, N) : key0 + N > p.seq_kv;
                if (masked || CHANGES_SCORES) /* the lane again: kept over the loop, it would spill */
                    finish_scores(s, p, w.tile, scores, w.tile.row0 + warp_row + reload_thread_index() % 32 / 4,
                                  key0 + reload_thread_index() % 4 * 2, masked);
                finish_tile(c, s, at, scores, stage, phase, consumer, lane);
            }
        }
        const tile_work same = work_at(p, announced_place(at, slot)); /* again: kept over the loop, it would spill */
        const bool takes_turns = 64 * consumer < same.tile.rows;
        if (same.keys.count > 0 && takes_turns)
            pass_turn(next_turn(same, consumer) - 1);
        for (int i = tiles_seen(p, same, consumer); i < same.keys.count; ++i, ++key_tiles) {
            if (takes_turns) {
                take_turn(consumer);
                pass_turn(next_turn(same, consumer) - 1);
            }
            const int stage = key_tiles % STAGES, phase = key_tiles / STAGES % 2;
            mbarrier_wait(at.k_full(stage), phase);
            mbarrier_wait(at.v_full(stage), phase);
            __syncwarp();
            if (lane == 0)
                mbarrier_arrive(at.k_empty(stage)), mbarrier_arrive(at.v_empty(stage));
        }
        __syncwarp();
        if (lane == 0)
            mbarrier_arrive(at.q_empty(slot));
        store_band(c.o, c.m, c.l, p, same.tile, consumer * 64 + reload_thread_index() / 32 % 4 * 16 + lane / 4);
    }
    if (consumer == 0)
        take_turn(consumer);
}
