/* What a block of wgmma_mla works on: rows, keys, shared memory; and the producer, one thread that loads keys. */
#pragma once

#include "shared/hopper.cuh"
#include "shared/packed.cuh"
#include "shared/sequence.cuh"

constexpr int BLOCK_THREADS = 384, CONSUMER_THREADS = 256;
constexpr int BOX_BYTES = 64 * 128; /* 64 rows of 64 columns */
constexpr int BOXES = FA_DIM / 64, HALF_BOXES = FA_DIM_V / 128, HALF_DIM = FA_DIM_V / 2;
constexpr int TILE_BYTES = BOXES * BOX_BYTES;
constexpr int O_REGS = HALF_DIM / 2, S_REGS = FA_N / 2, P_REGS = FA_N / 4;
constexpr int BARS_OFFSET = 3 * TILE_BYTES;
constexpr int REFS_OFFSET = BARS_OFFSET + 10 * 8;
constexpr int SUMS_OFFSET = REFS_OFFSET + 2 * 64 * 4;
constexpr int LAST_OFFSET = SUMS_OFFSET + 2 * 64 * 4; /* is this block the last of its tile to end? */
constexpr int ORDER_OFFSET = LAST_OFFSET + 16;
constexpr int WORK_OFFSET = ORDER_OFFSET + 16; /* block_work */
constexpr int SMEM_BYTES = WORK_OFFSET + 128;
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;
constexpr float RAISE_LOG2 = 8.0f; /* 2^8 is far inside both types */

/* Named barriers: the warps of a warpgroup meet (and of the next one), those of both. */
enum { BAR_OWN = 1, BAR_BOTH = 3 };

/* What a block does: 64 packed rows of a sequence and K/V head, and the blocks [first, end) of its keys. It lies in
 * shared memory: in registers it would crowd the loop. */
struct block_work {
    packed_tile tile;
    sequence seq;
    int first, end;
    int unmasked; /* all rows see the keys before this one */
};

/* False: the sequences end before this block. */
__device__ __forceinline__ bool find_work(const fa_params &p, block_work &work)
{
    packed_tile &tile = work.tile;
    tile = find_packed_tile(p, blockIdx.x);
    int tile_m = tile.row0 / FA_M;
    if constexpr (HAS_VARLEN) {
        if (!find_sequence<FA_M>(work.seq, tile_m, p, tile.group))
            return false;
        tile.row0 = tile_m * FA_M;
        tile.rows = work.seq.seq_q * tile.group;
    } else {
        work.seq = sequence_of(p, tile.batch);
    }
    const int last = last_query(tile);
    work.unmasked = keys_seen_by_all(p, work.seq, first_query(tile), last).end;
    const int blocks = (keys_seen_by_any(p, work.seq, first_query(tile), last).end + FA_N - 1) / FA_N;
    work.first = blocks * tile.split / FA_SPLITS;
    work.end = blocks * (tile.split + 1) / FA_SPLITS;
    return true;
}

/* Addresses in shared memory. Columns 0..255 and 256..511 of a block of keys are its halves; columns 512..575 are with
 * the half of the warpgroup that does not own the block: it reads P in their place. A half is refilled when the
 * warpgroup of its columns has multiplied with it. */
struct shared_layout {
    unsigned base_s;

    __device__ unsigned keys(int buffer) const { return base_s + TILE_BYTES * (1 + buffer); }
    __device__ unsigned p(int buffer) const { return keys(buffer) + FA_DIM_V / 64 * BOX_BYTES; }
    __device__ unsigned full(int buffer, int half) const { return base_s + BARS_OFFSET + 16 * buffer + 8 * half; }
    __device__ unsigned empty(int buffer, int half) const { return full(buffer, half) + 32; }
    __device__ unsigned p_full(int buffer) const { return base_s + BARS_OFFSET + 64 + 8 * buffer; }
    __device__ unsigned refs(int buffer) const { return base_s + REFS_OFFSET + buffer * 256; }
    __device__ unsigned sums(int half) const { return base_s + SUMS_OFFSET + half * 256; }
};

__device__ __forceinline__ void init_barriers(const shared_layout &at)
{
    for (int buffer = 0; buffer < 2; ++buffer) {
        for (int half = 0; half < 2; ++half) {
            mbarrier_init(at.full(buffer, half), 1);
            mbarrier_init(at.empty(buffer, half), 4); /* a lane of every warp of the warpgroup */
        }
        mbarrier_init(at.p_full(buffer), 4);
    }
    mbarrier_init_fence();
}

/* The number in the page table of the page that holds a block of keys. */
__device__ __forceinline__ int page_of(const fa_params &p, int batch, int block)
{
    const fa_i64 start = p.page_start != nullptr ? p.page_start[batch] : batch * p.pages_stride;
    return p.pages[start + static_cast<unsigned>(block * FA_N) / static_cast<unsigned>(p.page_size)];
}

/* The producer, one thread. Block number i goes to buffer i % 2; its owner's half first, which is free first. */
__device__ __forceinline__ void produce(const fa_params &p, const shared_layout &at, const block_work &work)
{
    int page = HAS_PAGES && work.first < work.end ? page_of(p, work.seq.batch, work.first) : 0;
    for (int n = work.first; n < work.end; ++n) {
        const int i = n - work.first, buffer = i % 2;
        const sequence &seq = work.seq; /* with lengths the map's rows end with the sequence's */
        const int row = HAS_PAGES ? n * FA_N % p.page_size : n * FA_N + (HAS_VARLEN ? p.seq_kv - seq.seq_kv : 0);
        const int batch = HAS_PAGES ? page : HAS_VARLEN ? seq.first_kv + seq.seq_kv : seq.batch;
        if (HAS_PAGES && n + 1 < work.end)
            page = page_of(p, work.seq.batch, n + 1);
        for (int turn = 0; turn < 2; ++turn) {
            const int half = buffer ^ turn;
            const unsigned bar = at.full(buffer, half), to_s = at.keys(buffer);
            mbarrier_wait(at.empty(buffer, half), (i / 2 + 1) % 2);
            mbarrier_arrive_expect(bar, (HALF_BOXES + turn) * BOX_BYTES);
            for (int box = half * HALF_BOXES; box < (half + 1) * HALF_BOXES; ++box)
                tma_load(to_s + box * BOX_BYTES, &p.k_map, bar, box * 64, row, work.tile.kv_head, batch);
            if (turn == 1)
                tma_load(at.p(buffer), &p.k_map, bar, FA_DIM_V, row, work.tile.kv_head, batch);
        }
    }
}

/* The rows of Q, as TMA would lay them; zero past the last row. By all consumers. */
__device__ __forceinline__ void load_q(const fa_params &p, const block_work &work, unsigned q_s, int thread)
{
    constexpr int CHUNKS = FA_DIM / 8;
    const fa_element *q_g = query_rows(p.q, work.seq, p.q_stride_b, p.q_stride_h, p.q_stride_s, 0);
#pragma unroll 6
    for (int item = thread; item < 64 * CHUNKS; item += CONSUMER_THREADS) {
        const int at = item / CHUNKS, chunk = item % CHUNKS;
        const packed_row row = find_packed_row(work.tile, work.tile.row0 + at);
        uint4 words = make_uint4(0, 0, 0, 0);
        if (row.exists)
            words =
                *reinterpret_cast<const uint4 *>(q_g + row.head * p.q_stride_h + row.query * p.q_stride_s + chunk * 8);
        st_shared_16_at(q_s + chunk / 8 * BOX_BYTES + at * 128 + ((chunk ^ at) % 8) * 16, words);
    }
    fence_async_proxy();
}
