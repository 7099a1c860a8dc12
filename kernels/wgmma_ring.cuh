/* The rings of `wgmma`: which buffers and barriers there are, and the thread that fills them by TMA with the tiles of Q, K
 * and V, for one tile of queries after the other. Included by wgmma.cu after its constants. */
#ifndef FA_WGMMA_RING_CUH
#define FA_WGMMA_RING_CUH

constexpr int TILES_KNOWN = 4; /* a power of two */

typedef struct barriers {
    u64 q_full[CONSUMERS][Q_STAGES], q_empty[CONSUMERS][Q_STAGES];
    u64 k_full[FA_STAGES], k_empty[FA_STAGES], v_full[FA_STAGES], v_empty[FA_STAGES];
    int4 tile[CONSUMERS][TILES_KNOWN]; /* of the latest Q parts: row0 (-1: no more), key tiles, head, batch */
} barriers;

/* Of the tile with this count: it is read last while the tile after it begins, and the producer is two ahead at most. */
__device__ __forceinline__ int tile_slot(int warpgroup, int count)
{
    return warpgroup * TILES_KNOWN + count % TILES_KNOWN;
}

/* Addresses in shared memory, and where in the ring a warpgroup is. */
typedef struct layout {
    unsigned q, k, v, ones, o;
    unsigned q_full, q_empty, k_full, k_empty, v_full, v_empty;
} layout;

typedef struct pipeline_state {
    int slot;
    unsigned phase;
} pipeline_state;

template <int STAGES>
__device__ __forceinline__ void advance(pipeline_state &at)
{
    if (++at.slot == STAGES) {
        at.slot = 0;
        at.phase ^= 1;
    }
}

/* The same for a whole warp: the place stays in uniform registers, and the descriptors made from it. */
template <int STAGES>
__device__ __forceinline__ void advance_warp(pipeline_state &at)
{
    advance<STAGES>(at);
    at.slot = warp_uniform(at.slot);
    at.phase = warp_uniform(at.phase);
}

/* A ticket for the next tile of this block, from a counter all blocks share: drawn, and read a round trip later. */
__device__ __forceinline__ int draw_ticket(const fa_params &p) { return atomicAdd(static_cast<int *>(p.workspace), 1); }

__device__ __forceinline__ int read_ticket(int drawn)
{
    asm volatile("" : "+r"(drawn)::"memory"); /* nothing waits for it before */
    return static_cast<int>(gridDim.x) + drawn;
}

/* The last block to leave puts the counters back to zero. */
__device__ __forceinline__ void return_tickets(const fa_params &p)
{
    int *counters = static_cast<int *>(p.workspace);
    if (atomicAdd(&counters[1], 1) == static_cast<int>(gridDim.x) - 1) {
        counters[0] = 0;
        counters[1] = 0;
    }
}

__device__ __forceinline__ void load_tile(const fa_tensor_map *map, unsigned ring, unsigned full, unsigned empty,
                                          pipeline_state &to, int row, int head, int batch)
{
    const unsigned bar = full + 8 * to.slot;
    mbarrier_wait(empty + 8 * to.slot, to.phase ^ 1);
    mbarrier_arrive_expect(bar, KV_TILE_BYTES);
    tma_load_boxes(ring + to.slot * KV_TILE_BYTES, map, bar, FA_N, row, head, batch);
    advance<FA_STAGES>(to);
}

/* Q of the tile to come to L2: no other block reads it, so it would come from memory when it is waited for. */
__device__ __forceinline__ void prefetch_q(const fa_params &p, const block_tile &tile)
{
#pragma unroll
    for (int box = 0; box < BOXES; ++box)
#pragma unroll
        for (int w = 0; w < CONSUMERS; ++w)
            tma_prefetch_l2(&p.q_map, box * 64, tile.row0 + 64 * w, tile.head, tile.batch);
}

/* Q of the tile with this count, and what the tile is. */
__device__ __forceinline__ void load_q(const fa_params &p, const layout &at, int4 *tile_s, pipeline_state &to,
                                       int count, const block_tile &tile)
{
    for (int w = 0; w < CONSUMERS; ++w) {
        const int slot = w * Q_STAGES + to.slot;
        mbarrier_wait(at.q_empty + 8 * slot, to.phase ^ 1);
        tile_s[tile_slot(w, count)] = make_int4(tile.row0, tile.key_tiles, tile.head, tile.batch);
        mbarrier_arrive_expect(at.q_full + 8 * slot, Q_TILE_BYTES);
        tma_load_boxes(at.q + slot * Q_TILE_BYTES, &p.q_map, at.q_full + 8 * slot, 64, tile.row0 + 64 * w, tile.head,
                       tile.batch);
    }
    advance<Q_STAGES>(to);
}

/* That there is no tile with this count. */
__device__ __forceinline__ void load_no_q(const layout &at, int4 *tile_s, const pipeline_state &to, int count)
{
    for (int w = 0; w < CONSUMERS; ++w) {
        const int slot = w * Q_STAGES + to.slot;
        mbarrier_wait(at.q_empty + 8 * slot, to.phase ^ 1);
        tile_s[tile_slot(w, count)] = make_int4(-1, 0, 0, 0);
        mbarrier_arrive(at.q_full + 8 * slot);
    }
}

/* Key tiles before a tile's end at which the next ticket is drawn. Earlier, and a block with a long tile would claim the
 * next long one while others run out of work. */
constexpr int TICKET_AHEAD = 3;

/* One thread. K runs a tile ahead of V, as the consumers use them, and Q of the next tile is on its way before this one's
 * last V where it has a buffer of its own. What the next tile is becomes known while this one's last loads wait for room:
 * the ticket's round trip and the divisions are off the critical path. */
__device__ __forceinline__ void produce(const fa_params &p, const layout &at, int4 *tile_s)
{
    constexpr bool q_early = Q_STAGES > 1;
    pipeline_state q_to = {0, 0}, k_to = {0, 0}, v_to = {0, 0};
    block_tile tile = block_tile_of(p, blockIdx.x, FA_M);
    int count = 0;
    if (q_early)
        load_q(p, at, tile_s, q_to, count, tile);
    for (bool more = true; more; ++count) {
        int row = (tile.key_tiles - 1) * FA_N;
        load_tile(&p.k_map, at.k, at.k_full, at.k_empty, k_to, row, tile.kv_head, tile.batch);
        if (!q_early)
            load_q(p, at, tile_s, q_to, count, tile);
        const int draw_row = min(row, TICKET_AHEAD * FA_N);
        int drawn = 0;
        for (;; row -= FA_N) {
            if (row == draw_row)
                drawn = draw_ticket(p);
            if (row == 0)
                break;
            load_tile(&p.k_map, at.k, at.k_full, at.k_empty, k_to, row - FA_N, tile.kv_head, tile.batch);
            load_tile(&p.v_map, at.v, at.v_full, at.v_empty, v_to, row, tile.kv_head, tile.batch);
        }
        const int ticket = read_ticket(drawn);
        more = ticket < p.tiles;
        const block_tile next = more ? block_tile_of(p, ticket, FA_M) : tile;
        if (more && q_early)
            load_q(p, at, tile_s, q_to, count + 1, next);
        else if (more)
            prefetch_q(p, next);
        load_tile(&p.v_map, at.v, at.v_full, at.v_empty, v_to, 0, tile.kv_head, tile.batch);
        tile = next;
    }
    load_no_q(at, tile_s, q_to, count);
    return_tickets(p);
}

#endif
