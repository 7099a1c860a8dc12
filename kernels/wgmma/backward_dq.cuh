/* How parts of dQ reach the sums in the workspace: through shared memory, by bulk reductions. */
#pragma once

#include "wgmma/backward.cuh"

/* Ends the turn that add_dq began, if any, once its sums are in memory: by now they mostly are. */
__device__ __forceinline__ void end_turn(unsigned *&turn_g)
{
    if constexpr (DETERMINISTIC) {
        if (turn_g != nullptr) {
            bulk_wait_done();
            add_release(turn_g, 1);
            turn_g = nullptr;
        }
        __syncwarp();
    }
}

/* With shared keys: adds the part of dQ to the sums, each warp its 16 rows, through shared memory. With --deterministic
 * it waits for so many turns of tiles of keys at these rows; the lane that does gets the turn that it must end. */
__device__ __forceinline__ unsigned *add_dq(const float (&dq)[32], const gradient_rows &rows, unsigned char *dq_s,
                                            int row0, int seq_q, unsigned turns, int part, int thread)
{
    const int lane = thread % 32, column0 = part * 64;
    const int columns = DIM16 % 64 == 0 ? 64 : smaller(DIM16 - column0, 64);
    const int first_row = row0 + thread / 32 * 16;
    float *warp_s = reinterpret_cast<float *>(dq_s) + thread / 32 * 16 * 64;
    const bool elected = elect_one();
    if (elected)
        tma_store_wait_read(); /* of the part before */
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 32; i += 2) {
        const int row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8;
        if (column < columns)
            *reinterpret_cast<float2 *>(warp_s + row * columns + dq_place(row, column, columns) + lane % 4 * 2) =
                make_float2(dq[i], dq[i + 1]);
    }
    fence_async_proxy();
    __syncwarp();
    unsigned *turn_g = nullptr;
    if (elected) {
        const int count = smaller(seq_q - first_row, 16);
        if (DETERMINISTIC && count > 0) {
            turn_g = rows.turn_g + first_row;
            if (turns > 0)
                wait_for_turn(turn_g, TURN_ENDS * turns);
        }
        if (count > 0)
            bulk_add_floats(rows.dq_g + first_row * static_cast<fa_i64>(DIM16) + column0 +
                                dq_moved(rows, first_row, column0),
                            smem_address(warp_s), count * columns * 4);
        tma_store_commit();
    }
    return turn_g;
}

/* A warp's 16 columns of a part of dQ^T to shared memory, as its registers lie. count: rows that exist. */
template <int REGISTERS>
__device__ __forceinline__ void put_transposed_dq(const float (&dq)[REGISTERS], unsigned char *warp_s, int count)
{
    const int lane = threadIdx.x % 32;
    if (count >= 2 * REGISTERS) {
#pragma unroll
        for (int i = 0; i < REGISTERS / 4; ++i)
            *reinterpret_cast<float4 *>(warp_s + i * 512 + lane * 16) =
                make_float4(dq[4 * i], dq[4 * i + 1], dq[4 * i + 2], dq[4 * i + 3]);
        return;
    }
#pragma unroll
    for (int i = 0; i < REGISTERS; ++i) {
        const int eight = i / 4 * 8, row = eight + lane % 4 * 2 + i % 2, column = i / 2 % 2 * 8 + lane / 4;
        if (eight + 8 <= count)
            *reinterpret_cast<float *>(warp_s + eight * 64 + lane * 16 + i % 4 * 4) = dq[i];
        else if (row < count)
            *reinterpret_cast<float *>(warp_s + row * 64 + column * 4) = dq[i];
    }
}

/* For blocks that make whole rows of dQ. A row meets some tiles of keys, with WHOLE_ROWS two. Each adds what the one
 * before left of a warp's 16 columns of dQ^T. The last stores the sums as dQ, 32 bytes (a sector) at a time, the others
 * leave them in shared memory, or, where WHOLE_HEADS has no place there, in the workspace. */
template <int REGISTERS>
__device__ __forceinline__ void put_whole_dq(float (&dq)[REGISTERS], const fa_params &p, const key_block &block,
                                             unsigned char *warp_s, const query_loop &loop, int row0, int warp)
{
    const fa_i64 *of_dq = p.grad_stride[1];
    const int lane = threadIdx.x % 32, column = warp * 16 + lane % 2 * 8, end_row = min((loop.tile + 1) * M, p.seq_q);
    fa_element *rows_g =
        query_rows(p.dq, block.seq, of_dq[0], of_dq[1], of_dq[2], loop.head) + row0 * of_dq[2] + column;
    const bool last =
        WHOLE_HEADS ? block.key0 + N >= keys_seen(p, block.seq, end_row - 1).end : loop.tile * M == block.key0;
    if (!WHOLE_HEADS && !last) {
        put_transposed_dq(dq, warp_s, 2 * REGISTERS);
        return;
    }
    const auto add = [&](unsigned char *kept) {
#pragma unroll
        for (int i = 0; block.key0 > 0 && i < REGISTERS / 4; ++i) {
            const float4 four = *reinterpret_cast<const float4 *>(kept + i * 512 + lane * 16);
            dq[4 * i] += four.x, dq[4 * i + 1] += four.y, dq[4 * i + 2] += four.z, dq[4 * i + 3] += four.w;
        }
        if (WHOLE_HEADS && !last)
            put_transposed_dq(dq, kept, 2 * REGISTERS);
    };
    const fa_i64 head_rows = (static_cast<fa_i64>(block.seq.batch) * p.heads + loop.head) * p.tiles_m * M;
    if (!WHOLE_HEADS || (loop.tile < 4 && p.seq_q == p.seq_kv && p.heads == p.kv_heads))
        add(warp_s);
    else if (warp * 16 < DIM16)
        add(static_cast<unsigned char *>(p.workspace) + (head_rows + row0) * (DIM16 * 4) + warp * REGISTERS * 128);
    if (WHOLE_HEADS && !last)
        return;
    __syncwarp();
    const unsigned at = smem_address(warp_s);
#pragma unroll
    for (int i = 0; i < REGISTERS / 8; ++i) {
        unsigned pairs[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
            pairs[j] = pack_elements(dq[8 * i + 2 * j] * p.scale, dq[8 * i + 2 * j + 1] * p.scale);
        const int row = i * 16 + lane / 16 * 8 + lane % 8;
        stmatrix_x4_trans_at(at + row * 32 + (lane / 8 ^ lane / 4) % 2 * 16, pairs);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < REGISTERS / 8; ++i) {
        const int row = i * 16 + lane / 2;
        uint4 chunk;
        ld_shared_16_at(chunk, at + row * 32 + (lane ^ row / 4) % 2 * 16);
        if (row0 + row < p.seq_q && column < FA_DIM)
            st_global_16(rows_g + row * of_dq[2], chunk);
    }
    __syncwarp();
}

/* The warp that sends the count-th tile. */
__device__ __forceinline__ int sender_of(int count) { return SENDERS > 1 ? count % SENDERS : 0; }

/* Around a warpgroup's part of dQ in shared memory: the tile before was sent; this one may be. */
__device__ __forceinline__ void begin_part(bool first, int group)
{
    if (!first)
        bar_sync(BAR_DQ + 2 + group, 128 + 32);
}

__device__ __forceinline__ void end_part(int group, int count)
{
    fence_async_proxy();
    bar_arrive(BAR_DQ + group + sender_of(count) * 6, 128 + 32);
}

/* A warp that sends dQ: adds what the warpgroups leave in shared memory to the sums, four boxes of 16 columns each, of
 * WIDE's third part half of the rows. With --deterministic a tile waits for so many turns of tiles of keys. */
__device__ __forceinline__ void send_dq(const fa_params &p, const key_block &block, query_loop &loop, unsigned dq_at,
                                        int sender)
{
    if (WHOLE_HEADS || has_whole_rows(p))
        return;
    const int lane = threadIdx.x % 32, seq_q = block.seq.seq_q;
    const gradient_rows rows = gradients_of(p, block.seq, loop.head, block.kv_head, loop.group);
    float *head_g = rows.dq_g + lane % 4 * 16 + dq_moved(rows, 0, lane % 4 * 16);
    unsigned *turn_g = rows.turn_g;
#pragma unroll 1
    for (; loop.left > 0; advance(loop, block)) {
        const int row0 = loop.tile * M;
        const bool sends = SENDERS == 1 || sender_of(loop.count) == sender;
        for (int group = 0; PERSISTENT && group < 2 && loop.count > 0; ++group)
            bar_arrive(BAR_DQ + 2 + group, 128 + 32);
        if (DETERMINISTIC && sends) {
            const unsigned turns = turn_of(p, block, row0);
            if (lane == 0 && turns > 0)
                wait_for_turn(turn_g + row0, turns);
            __syncwarp();
        }
#pragma unroll
        for (int group = 0; group < 2 && sends; ++group) {
            bar_sync(BAR_DQ + group + sender * 6, 128 + 32);
            const int first = row0 + (BY_COLUMNS ? 0 : group * DQ_ROWS), count = smaller(seq_q - first, DQ_ROWS);
            if (lane < smaller(DIM16 / 16 - (BY_COLUMNS ? group * 4 : 0), 4) && count > 0) {
                bulk_add_floats(head_g + first * 16 + (BY_COLUMNS ? group * 64 * rows.all : 0),
                                dq_at + group * DQ_BYTES + lane * (DQ_BYTES / 4), count * 64);
                tma_store_commit();
            }
            const int third = row0 + group * (M / 2), count_third = smaller(seq_q - third, M / 2);
            if (WIDE && lane / 4 == 1 && lane < DIM16 / 16 - 4 && count_third > 0) {
                bulk_add_floats(head_g + third * 16 + 128 * rows.all,
                                dq_at + (4 + group) * (DQ_BYTES / 2) + lane % 4 * (DQ_BYTES / 8), count_third * 64);
                tma_store_commit();
            }
        }
        if (lane < (WIDE ? 8 : 4))
            tma_store_wait_read();
        __syncwarp();
#pragma unroll
        for (int group = 0; !PERSISTENT && group < 2 && loop.left > 1 && sends; ++group)
            bar_arrive(BAR_DQ + 2 + group, 128 + 32);
        if (DETERMINISTIC && sends) {
            if (lane < (WIDE ? 8 : 4))
                bulk_wait_done();
            __syncwarp();
            if (lane == 0)
                add_release(turn_g + row0, 1);
        }
        if (ZIGZAG || BACK || loop.tile + 1 == block.end) { /* another head */
            query_loop next = loop;
            advance(next, block);
            const int rows_of_head = (next.head - loop.head) * (HAS_VARLEN ? p.total_q : p.seq_q);
            head_g += rows_of_head * static_cast<fa_i64>(16), turn_g += rows_of_head;
        }
    }
}
