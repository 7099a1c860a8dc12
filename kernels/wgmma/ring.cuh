/* The pipelines of wgmma: buffers and barriers in shared memory, and the producer, one thread that fills the buffers by
 * TMA with tiles of Q, K and V. */
#ifndef FA_WGMMA_RING_CUH
#define FA_WGMMA_RING_CUH

#include "wgmma/config.cuh"
#include "wgmma/pipeline.cuh"

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

/* Loads Q of query tile number `count` for every warpgroup, and tells each what the tile is. */
__device__ __forceinline__ void load_q(const fa_params &p, const shared_layout &at, announced_tile *tiles_s,
                                       pipeline_state &to, int count, const block_tile &tile)
{
    const tma_row from = tma_query_row(p, tile.seq, tile.row0);
    for (int w = 0; w < CONSUMERS; ++w) {
        const int slot = w * Q_STAGES + to.stage;
        mbarrier_wait(at.q_empty + 8 * slot, to.phase ^ 1);
        tiles_s[tile_slot(w, count)] = announce(tile);
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
 * claim the next long one while other blocks run out of work. */
constexpr int TICKET_AHEAD = 3;

/* The producer, one thread. Key tiles come last to first. K runs one tile ahead of V, as the consumers use them. The
 * next tile is known before this one's last V is loaded, so the ticket's round trip and the divisions cost no time.
 * With two buffers of Q the next Q is loaded before that V, with one buffer after the next tile's first K. */
__device__ __forceinline__ void produce(const fa_params &p, const shared_layout &at, announced_tile *tiles_s,
                                        scheduler tiles)
{
    constexpr bool Q_EARLY = Q_STAGES > 1;
    pipeline_state q_to = {0, 0}, k_to = {0, 0}, v_to = {0, 0};
    block_tile tile;
    int count = 0;
    bool more = tiles.first(tile);
    if (Q_EARLY && more)
        load_q(p, at, tiles_s, q_to, count, tile);
    for (; more; ++count) {
        const tma_row key0 = tma_key_row(p, tile.seq, tile.first_key);
        const int last_row = key0.row + (FA_SPLITS > 1 ? tile.first_key_tile * FA_N : 0);
        int row = key0.row + (tile.key_tiles - 1) * FA_N;
        load_kv<BOXES>(&p.k_map, at.k_s, at.k_full, at.k_empty, k_to, row_in_map(p, row), tile.kv_head, key0.batch);
        if (!Q_EARLY)
            load_q(p, at, tiles_s, q_to, count, tile);
        const int draw_row = min(row, last_row + TICKET_AHEAD * FA_N);
        int ticket = 0;
        for (;; row -= FA_N) {
            if (row == draw_row)
                ticket = tiles.draw();
            if (row == last_row)
                break;
            load_kv<BOXES>(&p.k_map, at.k_s, at.k_full, at.k_empty, k_to, row_in_map(p, row - FA_N), tile.kv_head,
                           key0.batch);
            load_kv<BOXES_V>(&p.v_map, at.v_s, at.v_full, at.v_empty, v_to, row_in_map(p, row), tile.kv_head,
                             key0.batch);
        }
        block_tile next = tile;
        more = tiles.next(ticket, next);
        if (more && Q_EARLY)
            load_q(p, at, tiles_s, q_to, count + 1, next);
        else if (more)
            prefetch_q(p, next);
        load_kv<BOXES_V>(&p.v_map, at.v_s, at.v_full, at.v_empty, v_to, row_in_map(p, last_row), tile.kv_head,
                         key0.batch);
        tile = next;
    }
    end_q(at, tiles_s, q_to, count);
    tiles.leave();
}

#endif
