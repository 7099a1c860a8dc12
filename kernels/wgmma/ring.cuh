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
#if ASKS_FOR_Q
    u64 next_full, next_empty;
    int4 next; /* the next query tile's first row, head and batch; the row is negative where there is none */
#endif
#if FA_FEATURES & FA_FEATURE_PAGED
    int tickets[2]; /* for the warps that load */
#endif
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
        load_tile<64, BOXES, SHORT>(at.q_s, slot, at.q_full + 8 * slot, &p.q_map, from.row, part, tile.head,
                                    from.batch);
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

#if ASKS_FOR_Q
/* Tells ask_for_q the next tile. phase: of the barrier that it empties. */
__device__ __forceinline__ void tell_next(barriers &bars, const block_tile &next, bool more, unsigned phase)
{
    mbarrier_wait(smem_address(&bars.next_empty), phase);
    bars.next = make_int4(more ? next.row0 : -1, next.head, next.seq.batch, 0);
    mbarrier_arrive(smem_address(&bars.next_full));
}

/* A warp that does for Q of every next tile what prefetch_q does, a line of 128 bytes a lane. */
__device__ __forceinline__ void ask_for_q(const fa_params &p, barriers &bars, int lane)
{
    constexpr int LINES = FA_DIM / 64 + 1;
    for (unsigned phase = 0;; phase ^= 1) {
        mbarrier_wait(smem_address(&bars.next_full), phase);
        const int4 next = bars.next;
        __syncwarp();
        if (lane == 0)
            mbarrier_arrive(smem_address(&bars.next_empty));
        if (next.x < 0)
            return;
        const fa_element *q_g = query_rows(p.q, {next.z}, p.q_stride_b, p.q_stride_h, p.q_stride_s, next.y);
        for (int i = lane; i < min(FA_M, p.seq_q - next.x) * LINES; i += 32)
            prefetch_l2(q_g + (next.x + i / LINES) * p.q_stride_s + i % LINES * 64);
    }
}
#endif

/* The next ticket is drawn this many key tiles before a query tile ends. Drawn earlier, a block with a long tile would
 * claim the next long one while other blocks run out of work. Packed rows have short loops, alike: there it is drawn a
 * query tile ahead. */
constexpr int TICKET_AHEAD = 3;

/* A tile of K or V from `row` on, as TMA counts the rows of keys. */
template <bool VALUES>
__device__ __forceinline__ void load_keys(const fa_params &p, const shared_layout &at, pipeline_state &to, int row,
                                          const block_tile &tile, const tma_row &key0)
{
    load_kv<VALUES ? BOXES_V : BOXES>(VALUES ? &p.v_map : &p.k_map, VALUES ? at.v_s : at.k_s,
                                      VALUES ? at.v_full : at.k_full, VALUES ? at.v_empty : at.k_empty, to,
                                      row_in_map(p, row), tile.kv_head, key0.batch);
}

/* The producer, one thread. Key tiles come last to first. K runs one tile ahead of V, as the consumers use them. The
 * next tile is known before this one's last V is loaded, so the ticket's round trip and the divisions cost no time.
 * With two buffers of Q the next Q is loaded before that V, with one buffer after the next tile's first K. */
__device__ __forceinline__ void produce(const fa_params &p, const shared_layout &at, barriers &bars, scheduler tiles)
{
    constexpr bool Q_EARLY = Q_STAGES > 1;
    announced_tile *tiles_s = &bars.tile[0][0];
    pipeline_state q_to = {0, 0}, k_to = {0, 0}, v_to = {0, 0};
    block_tile tile;
    int count = 0;
    bool more = tiles.first(tile);
    if (Q_EARLY && more)
        load_q(p, at, tiles_s, q_to, count, tile);
    int early = PACKED && more ? tiles.draw() : 0;
    for (; more; ++count) {
        const tma_row key0 = tma_key_row(p, tile.seq, tile.first_key);
        const int last_row = key0.row + (FA_SPLITS > 1 ? tile.first_key_tile * FA_N : 0);
        int row = key0.row + (tile.key_tiles - 1) * FA_N;
        load_keys<false>(p, at, k_to, row, tile, key0);
        if (!Q_EARLY)
            load_q(p, at, tiles_s, q_to, count, tile);
        const int draw_row = min(row, last_row + TICKET_AHEAD * FA_N);
        int ticket = early;
        for (;; row -= FA_N) {
            if (!PACKED && row == draw_row)
                ticket = tiles.draw();
            if (row == last_row)
                break;
            load_keys<false>(p, at, k_to, row - FA_N, tile, key0);
            load_keys<true>(p, at, v_to, row, tile, key0);
        }
        block_tile next = tile;
        more = tiles.next(ticket, next);
        if (PACKED && more)
            early = tiles.draw();
        if (more && Q_EARLY)
            load_q(p, at, tiles_s, q_to, count + 1, next);
        else if (!PACKED && more && !ASKS_FOR_Q)
            prefetch_q(p, next);
#if ASKS_FOR_Q
        tell_next(bars, next, more, count % 2 ^ 1);
#endif
        load_keys<true>(p, at, v_to, last_row, tile, key0);
        tile = next;
    }
    end_q(at, tiles_s, q_to, count);
    tiles.leave();
}

#if FA_FEATURES & FA_FEATURE_PAGED
constexpr int BAR_TICKETS = 8; /* the producer's warpgroup meets */

/* A query tile's keys for the producer: its key tiles begin at first_key, first_key - FA_N, ..., last_key. */
struct key_pages {
    paged_rows rows;
    int seq_kv, kv_head, first_key, last_key;
    box_places k, after; /* of the tile whose K comes next, and of the one after it */

    __device__ __forceinline__ void begin(const fa_params &p, const block_tile &tile, int warp)
    {
        rows = kv_rows_of(p, p.v, p.v_stride_b, p.v_stride_h, p.v_stride_s, tile.seq.batch, tile.kv_head);
        seq_kv = tile.seq.seq_kv;
        kv_head = tile.kv_head;
        first_key = tile.first_key + (tile.key_tiles - 1) * FA_N;
        last_key = tile.first_key + (FA_SPLITS > 1 ? tile.first_key_tile * FA_N : 0);
        find_boxes(k, rows, first_key, seq_kv, warp);
        find_after(first_key - FA_N, warp);
    }

    __device__ __forceinline__ void find_after(int key, int warp)
    {
        if (key >= last_key)
            find_boxes(after, rows, key, seq_kv, warp);
    }
};

template <bool VALUES>
__device__ __forceinline__ void load_from_pages(const fa_params &p, const shared_layout &at, pipeline_state &to,
                                                const box_places &places, int boxes, int kv_head, int warp)
{
    load_boxes<VALUES ? BOXES_V : BOXES>(VALUES ? &p.v_map : &p.k_map, places, boxes, VALUES ? at.v_s : at.k_s,
                                         VALUES ? at.v_full : at.k_full, VALUES ? at.v_empty : at.k_empty, to, kv_head,
                                         warp);
}

/* produce for keys in pages, by the producer's warpgroup. A lane of each warp loads; all lanes know the tiles and store
 * the last keys' values. Warp 0 draws tickets and loads Q. A look-up takes longer than a tile: it begins before. */
__device__ __forceinline__ void produce_from_pages(const fa_params &p, const shared_layout &at, announced_tile *tiles_s,
                                                   int *tickets_s, scheduler tiles, int warp)
{
    constexpr bool Q_EARLY = Q_STAGES > 1;
    block_tile tile;
    key_pages keys;
    int count = 0, loaded = 0; /* query tiles; key tiles before this query tile's */
    const bool leads = elect_one(), leads_all = leads && warp == 0;
    bool more = tiles.first(tile);
    if (more)
        keys.begin(p, tile, warp);
    if (Q_EARLY && more && leads_all) {
        pipeline_state q_to = {0, 0};
        load_q(p, at, tiles_s, q_to, count, tile);
    }
    for (; more; ++count) {
        const int left = max(min(keys.seq_kv - keys.first_key, FA_N), 0); /* of the first tile's keys */
        const int first_key = keys.first_key, last_key = keys.last_key, kv_head = keys.kv_head;
        const int draw_key = PACKED ? first_key : min(first_key, last_key + TICKET_AHEAD * FA_N);
        if (leads) {
            pipeline_state k_to = state_of<FA_STAGES>(loaded), q_to = state_of<Q_STAGES>(count);
            load_from_pages<false>(p, at, k_to, keys.k, boxes_of<false>(left), kv_head, warp);
            if (!Q_EARLY && warp == 0)
                load_q(p, at, tiles_s, q_to, count, tile);
        }
        if (left < FA_N)
            load_last_values(keys.rows, at.v_s, at.v_empty, state_of<FA_STAGES>(loaded), first_key, left);
        int boxes = boxes_of<true>(left);
        if (leads) {
            pipeline_state k_to = state_of<FA_STAGES>(loaded + 1), v_to = state_of<FA_STAGES>(loaded);
            int ticket = 0;
            for (int key = first_key;; key -= FA_N) {
                if (warp == 0 && key == draw_key)
                    ticket = tiles.draw();
                if (key == last_key)
                    break;
                const box_places of_v = keys.k;
                keys.k = keys.after;
                keys.find_after(key - 2 * FA_N, warp);
                load_from_pages<false>(p, at, k_to, keys.k, TILE_BOXES, kv_head, warp);
                load_from_pages<true>(p, at, v_to, of_v, boxes, kv_head, warp);
                boxes = TILE_BOXES;
            }
            if (warp == 0)
                tickets_s[count % 2] = ticket;
        }
        const box_places last = keys.k;
        boxes = first_key == last_key ? boxes : TILE_BOXES;
        loaded += (first_key - last_key) / FA_N + 1;
        bar_sync(BAR_TICKETS, 32 * PAGE_WARPS);
        block_tile next = tile;
        more = tiles.next(static_cast<int>(uniform_by_shuffle(tickets_s[count % 2])), next);
        if (more)
            keys.begin(p, next, warp);
        if (leads) {
            pipeline_state v_to = state_of<FA_STAGES>(loaded - 1), q_to = state_of<Q_STAGES>(count + 1);
            if (more && warp == 0 && Q_EARLY)
                load_q(p, at, tiles_s, q_to, count + 1, next);
            else if (more && warp == 0 && !PACKED)
                prefetch_q(p, next);
            load_from_pages<true>(p, at, v_to, last, boxes, kv_head, warp);
        }
        tile = next;
    }
    if (leads_all) {
        end_q(at, tiles_s, state_of<Q_STAGES>(count), count);
        tiles.leave();
    }
}
#endif
