/* Kernels with a data race each; --race must name one in every schedule. Many give the right result all the same. */
#include "race.cuh"

#include <cuda/atomic>

/* Within a block */

WORDS_CASE(no_barrier, (void)0, 127 - t)

CASE(barrier_too_early)
{
    __syncthreads();
    s[t] = t;
    USE(s[127 - t]);
}

WORDS_CASE(shuffle_for_barrier, USE(__shfl_xor_sync(~0u, t, 1)), t ^ 1)
WORDS_CASE(vote_for_barrier, USE((int)__ballot_sync(~0u, t & 1)), t ^ 1)
WORDS_CASE(syncwarp_for_block, __syncwarp(), t ^ 32)
WORDS_CASE(half_warps_apart, __syncwarp(t % 32 < 16 ? 0x0000ffffu : 0xffff0000u), t ^ 16)
WORDS_CASE(pairs_apart, __syncwarp(3u << t % 32 / 2 * 2), t ^ 2)

CASE(nested_mask_too_narrow)
{
    if (t % 32 < 16) {
        s[t] = t;
        if (t % 32 < 8)
            __syncwarp(0xffu);
        USE(s[t % 8 + t / 32 * 32 + 8]);
    }
}

CASE(tile_reused)
{
    for (int i = 0; i < 3; i++) {
        s[t] = t + i;
        __syncthreads();
        USE(s[127 - t]);
    }
}

CASE(two_stages_every_other_barrier)
{
    for (int i = 0; i < 4; i++) {
        s[i % 2 * 128 + t] = t + i;
        USE(s[(i + 1) % 2 * 128 + 127 - t]);
        if (i % 2 == 1)
            __syncthreads();
    }
}

WORDS_CASE(named_barriers_apart, bar_sync(1 + t / 64, 64), t ^ 64)

/* Half of the threads write words, the others read them. */
#define HALVES_CASE(name, before, written, met) \
    CASE(name)                                  \
    {                                           \
        if (t < 64) {                           \
            before;                             \
            s[t] = t;                           \
            written;                            \
        } else {                                \
            met;                                \
            USE(s[t - 64]);                     \
        }                                       \
    }

HALVES_CASE(reader_only_arrives, , bar_sync(1, 128), bar_arrive(1, 128))
HALVES_CASE(writer_after_arrive, bar_arrive(1, 128), , bar_sync(1, 128))

CASE(atomic_and_plain_read)
{
    set_first(s, t, 0);
    atomicAdd(&s[0], 1);
    USE(s[0]);
}

/* The atomicCAS expects another value: the plain read was no guess. */
CASE(plain_read_before_another_cas)
{
    const int seen = s[0] & 1;
    atomicCAS(s, seen + 2, t);
    USE(seen);
    atomicExch(s, t);
}

CASE(plain_counter)
{
    set_first(s, t, 0);
    s[0]++;
}

CASE(same_value_by_all) { s[t / 32] = 1; }
CASE(first_value_is_not_the_last)
{
    s[0] = 1;
    s[0] = t;
}

FLAG_CASE(flag_without_fences, 0, 64, atomicExch(flag, 1u), atomicAdd(flag, 0u), (void)0, (void)0)
FLAG_CASE(flag_without_readers_fence, 0, 64, store_volatile(flag, 1), load_volatile(flag), __threadfence_block(),
          (void)0)

FLAG_CASE(volatile_flag_without_fence, 64, 0, store_volatile(flag, 1), load_volatile(flag), (void)0,
          __threadfence_block())

CASE(warp_synchronous_sum)
{
    volatile int *v = s;
    v[t] = t;
    __syncthreads();
    if (t < 16) {
        v[t] = v[t] + v[t + 16];
        v[t] = v[t] + v[t + 8];
    }
    __syncthreads();
}

CASE(plain_flag)
{
    if (t == 0)
        s[0] = 1;
    else
        USE(s[0]);
}

READERS_CASE(many_readers_one_writer, (void)0)

/* The writer waits for all readers but those of warp 1. */
READERS_CASE(one_warp_of_readers_forgotten, t / 32 != 1 ? bar_sync(1, 96) : (void)0)

CASE(bytes_overlap)
{
    char *bytes = reinterpret_cast<char *>(s);
    const short two = 1;
    memcpy(bytes + t, &two, 2);
}

struct large {
    int word[12];
};

CASE(large_struct_copied)
{
    large *tiles = reinterpret_cast<large *>(s);
    large mine;
    for (int i = 0; i < 12; i++)
        mine.word[i] = t;
    if (t < 64)
        tiles[t] = mine;
    const large theirs = tiles[t % 64 ^ 1];
    USE(theirs.word[t % 12]);
}

CASE(async_seen_by_others)
{
    cp_async_16(s + t * 4, static_cast<const char *>(p.q) + t * 16, 16);
    cp_async_commit();
    cp_async_wait<0>();
    USE(s[(t ^ 1) * 4]);
}

CASE(async_into_a_tile_in_use)
{
    if (t < 64)
        s[t] = t;
    __syncthreads();
    USE(s[63 - t % 64]);
    if (t < 16)
        cp_async_16(s + t * 4, static_cast<const char *>(p.q) + t * 16, 16);
    asm volatile("cp.async.wait_all;" ::: "memory");
}

LDMATRIX_CASE(ldmatrix_too_early, (void)0)
OWN_ROWS_CASE(own_rows_of_global_memory, (void)0)

/* Between blocks */

ALONE_CASE(blocks_write_one_word) { o_g[16] = blockIdx.x; }

ALONE_CASE(blocks_read_a_neighbour)
{
    o_g[16 + blockIdx.x] = 1;
    USE((int)o_g[16 + (blockIdx.x + 1) % gridDim.x]);
}

CASE(blocks_add_in_place)
{
    if (blockIdx.x > 0)
        o_g[16 + t] += 1;
}

GRID_CASE(barrier_of_the_grid_by_volatile, load_volatile(&o_g[2]), (void)0, (void)0)
TICKET_CASE(last_block_by_a_barrier, (void)0, load)
GRID_CASE(barrier_of_the_grid_by_adding_0, atomicAdd(&o_g[2], 0u), (void)0, (void)0)
LAST_BLOCK_CASE(last_block_without_fence, __syncthreads())
LAST_BLOCK_CASE(last_block_with_a_block_fence, (__syncthreads(), FENCE_OF_0(__threadfence_block)))

ALONE_CASE(fence_before_the_data)
{
    __threadfence();
    o_g[16 + blockIdx.x] = 1;
    if (atomicAdd(&o_g[2], 1u) == gridDim.x - 1) {
        __threadfence();
        for (unsigned i = 0; i < gridDim.x; i++)
            USE((int)o_g[16 + i]);
    }
}

/* The fence of thread 0 alone, before the barrier: it does not cover what the others wrote. */
LAST_BLOCK_CASE(one_fence_before_the_barrier, (FENCE_OF_0(__threadfence), __syncthreads()))

/* Lane 0 sees that the others have arrived. Neither a shuffle nor their own fences tell the other lanes. */
LAST_WARP_CASE(last_warp_by_a_shuffle, (__threadfence(), __syncwarp()), __threadfence())
LAST_WARP_CASE(last_warp_without_writers_fence, __syncwarp(), (__syncwarp(), __threadfence()))
LAST_WARP_CASE(last_warp_of_lanes_apart, __threadfence(), (__syncwarp(), __threadfence()))

ALONE_CASE(atomics_of_a_block_between_blocks) { atomicAdd_block(&o_g[2], 1u); }
ALONE_CASE(cas_of_a_block_between_blocks) { atomicCAS_block(&o_g[2], 0u, 1u); }
ALONE_CASE(atomic_ref_of_a_block_between_blocks) { cuda::atomic_ref<unsigned, cuda::thread_scope_block>(o_g[2])++; }

ALONE_CASE(every_block_resets_the_counter)
{
    atomicAdd(&o_g[2], 1u);
    __threadfence();
    o_g[2] = 0;
}

LOCK_CASE(lock_without_fences, 2, (void)0, (void)0)
LOCK_CASE(two_locks_for_one_word, 2 + blockIdx.x % 2, __threadfence(), __threadfence())

ALONE_CASE(volatile_data_between_blocks)
{
    store_volatile(&o_g[16 + blockIdx.x], 1);
    USE((int)load_volatile(&o_g[16 + (blockIdx.x + 1) % gridDim.x]));
}

RACE_KERNEL
