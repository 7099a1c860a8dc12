/* The pipelines of wgmma: buffers and barriers in shared memory, and the producer, one thread that fills the buffers by
 * TMA with tiles of Q, K and V. */
#pragma once

#include "wgmma/config.cuh"
#include "wgmma/pages.cuh"

constexpr int TILES_KNOWN = 4; /* a power of two */

struct barriers {
    u64 q_full[CONSUMERS][Q_STAGES], q_empty[CONSUMERS][Q_STAGES];
    u64 k_full[FA_STAGES], k_empty[FA_STAGES], v_full[FA_STAGES], v_empty[FA_STAGES];
    announced_tile tile[CONSUMERS][TILES_KNOWN]; /* the latest query tiles */
#if VARLEN
    short order[SORTED_SEQUENCES]; /* of the sequences */
#endif
};

/* Slot of query tile number `count`. It is read last while the next tile begins; the producer is at most two ahead. */
__device__ __forceinline__ int tile_slot(int warpgroup, int count)
{
    return warpgroup * TILES_KNOWN + count % TILES_KNOWN;
}

__device__ __forceinline__ scheduler scheduler_of(const fa_params &p, const barriers &bars)
{
#if VARLEN
    return scheduler(p, bars.order);
#else
    return {p};
#endif
}

/* Addresses in shared memory: of the first stage of each buffer, and of its first barrier. */
struct shared_layout {
    unsigned q_s, k_s, v_s, ones_s, o_s;
    unsigned q_full, q_empty, k_full, k_empty, v_full, v_empty;
};

#if PACKED
/* The packed rows of a warpgroup. Those past the last are others' again, never stored: row_in_map says why. */
__device__ __forceinline__ void load_packed_q(const fa_params &p, announced_tile &announced, unsigned to_s,
                                              unsigned bar, const block_tile &tile, int warpgroup)
{
    tile_row part[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        part[i] = announced.part[i] = tile_row_of(tile.group, tile.head, tile.row0 + 64 * warpgroup + 16 * i);
    announced.first_key = tile.first_key;
    announced.x = part[0].query;
    mbarrier_arrive_expect(bar, Q_TILE_BYTES);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const bool exists = part[i].query < tile.seq.seq_q;
        const tma_row row = tma_query_row(p, tile.seq, exists ? part[i].query : 0);
#pragma unroll
        for (int box = 0; box < BOXES; ++box)
            tma_load(to_s + (box * 64 + i * 16) * BOX_ROW_BYTES, &p.q_map, bar, column_of_box(box), row.row,
                     part[i].head, row.batch);
    }
}
#endif

/* Loads Q of query tile number `count` for every warpgroup, and tells each what the tile is. */
__device__ __forceinline__ void load_q(const fa_params &p, const shared_layout &at, announced_tile *tiles_s,
                                       pipeline_state &to, int count, const block_tile &tile)
{
    const tma_row from = tma_query_row(p, tile.seq, tile.row0);
    for (int w = 0; w < CONSUMERS; ++w) {
        const int slot = w * Q_STAGES + to.stage;
        mbarrier_wait(at.q_empty + 8 * slot, to.phase ^ 1);
        tiles_s[tile_slot(w, count)] = announce(tile);
#if PACKED
        load_packed_q(p, tiles_s[tile_slot(w, count)], at.q_s + slot * Q_TILE_BYTES, at.q_full + 8 * slot, tile, w);
        continue;
#endif
        const int part = HAS_VARLEN && tile.row0 + 64 * w >= tile.seq.seq_q ? 0 : w; /* row_in_map says why */
        load_tile<64>(at.q_s, slot, at.q_full + 8 * slot, &p.q_map, from.row, part, tile.head, from.batch);
    }
    advance<Q_STAGES>(to);
}

/* Tells every warpgroup that there is no query tile number `count`. */
__device__ __forceinline__ void end_q(const shared_layout &at, announced_tile *tiles_s, const pipeline_state &to,
                                      int count)
{
    for (int w = 0; w < CONSUMERS; ++w) {
        const int slot = w * Q_STAGES + to.stage;
        mbarrier_wait(at.q_empty + 8 * slot, to.phase ^ 1);
        static_cast<int4 &>(tiles_s[tile_slot(w, count)]) = make_int4(-1, 0, 0, 0);
        mbarrier_arrive(at.q_full + 8 * slot);
    }
}

/* Q of the next tile to L2. No other block reads it, so it would come from memory when it is waited for. */
__device__ __forceinline__ void prefetch_q(const fa_params &p, const block_tile &tile)
{
    const tma_row from = tma_query_row(p, tile.seq, tile.row0);
#pragma unroll
    for (int box = 0; box < BOXES; ++box)
#pragma unroll
        for (int w = 0; w < CONSUMERS; ++w)
            if (!HAS_VARLEN || tile.row0 + 64 * w < tile.seq.seq_q)
                tma_prefetch_l2(&p.q_map, box * BOX_COLS, from.row + 64 * w, tile.head, from.batch);
}

/* The next ticket is drawn this many key tiles before a query tile ends. Drawn earlier, a block with a long tile would
 * claim the next long one while other blocks run out of work. Packed rows have short loops, alike: there it is drawn a
 * query tile ahead. */
constexpr int TICKET_AHEAD = 3;

/* The next ticket, for a thread, or for a warp of which one lane leads. */
__device__ __forceinline__ int draw_ticket(const scheduler &tiles, bool leads)
{
    if constexpr (!HAS_PAGES)
        return tiles.draw();
    return __shfl_sync(ALL_LANES, leads ? tiles.draw() : 0, __ffs(__ballot_sync(ALL_LANES, leads)) - 1);
}

/* Where keys are: the first one for TMA. With pages also the boxes of the tile whose K comes next, of the one before,
 * whose V does, and of the one after. */
#if FA_FEATURES & FA_FEATURE_PAGED
struct key_source : tma_row {
    box_place k, v, after;
};

__device__ __forceinline__ box_place find_place(const fa_params &p, const block_tile &tile, int row)
{
    return find_box(kv_rows_of(p, p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s, tile.seq.batch, tile.kv_head), row,
                    tile.seq.seq_kv);
}

/* K of the tile from `row` on has been loaded: on to the one before it. A look-up takes longer than a tile. */
__device__ __forceinline__ void look_ahead(key_source &from, const fa_params &p, const block_tile &tile, int row,
                                           int last_row)
{
    from.v = from.k, from.k = from.after;
    if (row - FA_N > last_row)
        from.after = find_place(p, tile, row - 2 * FA_N);
}

__device__ __forceinline__ key_source key_source_of(const fa_params &p, const block_tile &tile)
{
    return {tma_key_row(p, tile.seq, tile.first_key), {0, 0}, {0, 0}, {0, 0}};
}

__device__ __forceinline__ void look_up(key_source &from, const fa_params &p, const block_tile &tile, int row,
                                        int last_row)
{
    from.k = find_place(p, tile, row);
    if (row > last_row)
        from.after = find_place(p, tile, row - FA_N);
}
#else
using key_source = tma_row;
__device__ __forceinline__ key_source key_source_of(const fa_params &p, const block_tile &tile)
{
    return tma_key_row(p, tile.seq, tile.first_key);
}
__device__ __forceinline__ void look_up(const key_source &, const fa_params &, const block_tile &, int, int) {}
__device__ __forceinline__ void look_ahead(const key_source &, const fa_params &, const block_tile &, int, int) {}
#endif

/* A tile of K and one of V from `row` on, as TMA counts the rows of keys. */
template <bool VALUES>
__device__ __forceinline__ void load_keys(const fa_params &p, const shared_layout &at, pipeline_state &to, int row,
                                          const block_tile &tile, const key_source &key0, bool leads)
{
    constexpr int BOXES_OF = VALUES ? BOXES_V : BOXES;
    const fa_tensor_map *map = VALUES ? &p.v_map : &p.k_map;
    const unsigned ring_s = VALUES ? at.v_s : at.k_s;
    const unsigned full = VALUES ? at.v_full : at.k_full, empty = VALUES ? at.v_empty : at.k_empty;
#if FA_FEATURES & FA_FEATURE_PAGED
    const paged_rows rows =
        VALUES ? kv_rows_of(p, p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s, tile.seq.batch, tile.kv_head)
               : kv_rows_of(p, p.k, p.k_stride_b, p.k_stride_h, p.k_stride_s, tile.seq.batch, tile.kv_head);
    load_kv_from_pages<BOXES_OF, VALUES>(map, rows, VALUES ? key0.v : key0.k, 0, ring_s, full, empty, to, row,
                                         tile.seq.seq_kv, tile.kv_head, leads);
#else
    load_kv<BOXES_OF>(map, ring_s, full, empty, to, row_in_map(p, row), tile.kv_head, key0.batch);
#endif
}

/* The producer, one thread, or with pages a warp of which one lane leads. Key tiles come last to first. K runs one tile
 * ahead of V, as the consumers use them. The next tile is known before this one's last V is loaded, so the ticket's
 * round trip and the divisions cost no time.
 * With two buffers of Q the next Q is loaded before that V, with one buffer after the next tile's first K. */
__device__ __forceinline__ void produce(const fa_params &p, const shared_layout &at, announced_tile *tiles_s,
                                        scheduler tiles)
{
    constexpr bool Q_EARLY = Q_STAGES > 1;
    pipeline_state q_to = {0, 0}, k_to = {0, 0}, v_to = {0, 0};
    block_tile tile;
    int count = 0;
    bool more = tiles.first(tile);
    const bool leads = !HAS_PAGES || elect_one();
    if (Q_EARLY && more && leads)
        load_q(p, at, tiles_s, q_to, count, tile);
    int early = PACKED && more ? draw_ticket(tiles, leads) : 0;
    for (; more; ++count) {
        key_source key0 = key_source_of(p, tile);
        const int last_row = key0.row + (FA_SPLITS > 1 ? tile.first_key_tile * FA_N : 0);
        int row = key0.row + (tile.key_tiles - 1) * FA_N;
        look_up(key0, p, tile, row, last_row);
        load_keys<false>(p, at, k_to, row, tile, key0, leads);
        if (!Q_EARLY && leads)
            load_q(p, at, tiles_s, q_to, count, tile);
        const int draw_row = min(row, last_row + TICKET_AHEAD * FA_N);
        int ticket = early;
        for (;; row -= FA_N) {
            if (!PACKED && row == draw_row)
                ticket = draw_ticket(tiles, leads);
            if (row == last_row)
                break;
            look_ahead(key0, p, tile, row, last_row);
            load_keys<false>(p, at, k_to, row - FA_N, tile, key0, leads);
            load_keys<true>(p, at, v_to, row, tile, key0, leads);
        }
        block_tile next = tile;
        more = tiles.next(ticket, next);
        if (PACKED && more)
            early = draw_ticket(tiles, leads);
        if (more && Q_EARLY && leads)
            load_q(p, at, tiles_s, q_to, count + 1, next);
        else if (!PACKED && more && leads)
            prefetch_q(p, next);
        look_ahead(key0, p, tile, last_row, last_row);
        load_keys<true>(p, at, v_to, last_row, tile, key0, leads);
        tile = next;
    }
    if (!leads)
        return;
    end_q(at, tiles_s, q_to, count);
    tiles.leave();
}
