/* Kernels without a data race: --race must find none in any schedule, and each must end with the right values. */
#include "race.cuh"

/* Within a block */

WORDS_CASE(barrier, __syncthreads(), 127 - t)
WORDS_CASE(half_warps_in_themselves, __syncwarp(t % 32 < 16 ? 0x0000ffffu : 0xffff0000u), t ^ 8)

CASE(half_warp_nested_in_a_branch)
{
    if (t % 32 < 16) {
        s[t] = t;
        __syncwarp(0x0000ffffu);
        EXPECT(s[t ^ 15] == (t ^ 15));
    }
    __syncwarp();
    s[t] = t + 1;
    __syncwarp();
    EXPECT(s[t ^ 31] == (t ^ 31) + 1);
}

CASE(quarters_then_halves)
{
    s[t] = t;
    __syncwarp(0xffu << t % 32 / 8 * 8);
    EXPECT(s[t ^ 4] == (t ^ 4));
    __syncwarp(0xffffu << t % 32 / 16 * 16);
    EXPECT(s[t ^ 8] == (t ^ 8));
    __syncwarp();
    EXPECT(s[t ^ 16] == (t ^ 16));
}

CASE(tree_sum)
{
    s[t] = 1;
    __syncthreads();
    for (int half = 64; half >= 32; half /= 2) {
        if (t < half)
            s[t] += s[t + half];
        __syncthreads();
    }
    for (int half = 16; t < 32 && half > 0; half /= 2) {
        const int other = t < half ? s[t + half] : 0;
        __syncwarp();
        s[t] += other;
        __syncwarp();
    }
    if (t == 0)
        EXPECT(s[0] == 128);
}

WORDS_CASE(named_barriers, bar_sync(1 + t / 64, 64), t ^ 32)

CASE(producer_and_consumer)
{
    for (int i = 0; i < 3; i++) {
        if (t < 64) {
            if (i > 0)
                bar_sync(2, 128);
            s[t] = t + i;
            bar_arrive(1, 128);
        } else {
            bar_sync(1, 128);
            EXPECT(s[t - 64] == t - 64 + i);
            if (i < 2)
                bar_arrive(2, 128);
        }
    }
}

CASE(two_stages)
{
    for (int i = 0; i < 4; i++) {
        s[i % 2 * 128 + t] = t + i;
        __syncthreads();
        EXPECT(s[i % 2 * 128 + 127 - t] == 127 - t + i);
    }
}

CASE(atomics_alone)
{
    set_first(s, t, 0);
    atomicAdd(&s[0], 1);
    __syncthreads();
    EXPECT(s[0] == 128);
}

FLAG_CASE(volatile_flag_with_fences, 127, 0, store_volatile(flag, 1), load_volatile(flag), __threadfence_block(),
          __threadfence_block())
FLAG_CASE(atomic_flag_with_fences, 0, 96, atomicExch(flag, 1u), atomicAdd(flag, 0u), __threadfence(), __threadfence())

CASE(flag_read_before_a_barrier)
{
    set_first(s, t, 0);
    if (t == 0) {
        s[1] = 7;
        __threadfence_block();
        atomicExch(&s[0], 1);
    }
    if (t >= 64) {
        while (t == 64 && atomicAdd(&s[0], 0) == 0)
            ;
        bar_sync(1, 64);
        EXPECT(s[1] == 7);
    }
}

CASE(neighbouring_bytes)
{
    char *bytes = reinterpret_cast<char *>(s);
    bytes[t] = static_cast<char>(t);
    __syncthreads();
    EXPECT(bytes[127 - t] == 127 - t);
}

READERS_CASE(many_readers_then_a_writer, __syncthreads())

CASE(async_then_barrier)
{
    const unsigned short *q = static_cast<const unsigned short *>(p.q);
    for (int i = 0; i < 2; i++) {
        cp_async_16(s + t * 4, q + (t + i) * 8, 16);
        cp_async_commit();
        cp_async_wait<0>();
        __syncthreads();
        EXPECT(static_cast<unsigned short>(s[(t ^ 1) * 4]) == q[((t ^ 1) + i) * 8]);
        __syncthreads();
    }
}

LDMATRIX_CASE(ldmatrix_after_syncwarp, __syncwarp())

CASE(sum_of_warps)
{
    int sum = t;
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(~0u, sum, lanes);
    if (t % 32 == 0)
        s[t / 32] = sum;
    __syncthreads();
    EXPECT(s[0] + s[1] + s[2] + s[3] == 127 * 64);
}

CASE(half_of_the_threads_leave)
{
    s[t] = t;
    if (t >= 64)
        return;
    __syncthreads();
    EXPECT(s[63 - t] == 63 - t);
}

WORDS_CASE(vote_of_the_block, EXPECT(__syncthreads_count(t & 1) == 64), 127 - t)

CASE(atomics_of_a_block)
{
    atomicAdd_block(&o_g[16 + blockIdx.x], 1u);
    __syncthreads();
    EXPECT(o_g[16 + blockIdx.x] == THREADS);
}

/* Between blocks */

OWN_ROWS_CASE(own_rows, __syncthreads())
LAST_BLOCK_CASE(last_block_with_fences, (__syncthreads(), FENCE_OF_0(__threadfence)))

TICKET_CASE(last_block_of_the_guide, (void)0, load_volatile)
TICKET_CASE(last_block_that_fences, __threadfence(), load)

LAST_WARP_CASE(last_warp_with_fences, (__threadfence(), __syncwarp()), (__syncwarp(), __threadfence()))

LOCK_CASE(lock_with_fences, 2, __threadfence(), __threadfence())

CASE(tickets)
{
    __shared__ unsigned ticket_s;
    for (;;) {
        if (t == 0)
            ticket_s = atomicAdd(&o_g[2], 1u);
        __syncthreads();
        const unsigned ticket = ticket_s;
        __syncthreads();
        if (ticket >= 7)
            break;
        o_g[16 + ticket * THREADS + t] = ticket;
    }
}

CASE(sums_by_atomics)
{
    atomicAdd(&o_g[16 + t], 1u);
    atomicMax(&o_g[15], static_cast<unsigned>(t));
}

/* As the CUDA guide writes an atomicAdd of double: the first read is a guess, which the atomicCAS checks. */
CASE(sums_by_atomic_cas)
{
    unsigned long long *words[] = {reinterpret_cast<unsigned long long *>(o_g + 32),
                                   reinterpret_cast<unsigned long long *>(s)};
    if (t == 0)
        *words[1] = 0;
    __syncthreads();
    for (unsigned long long *word : words) {
        unsigned long long old = *word, assumed;
        do {
            assumed = old;
            old = atomicCAS(word, assumed, assumed + 1);
        } while (assumed != old);
    }
    __syncthreads();
    EXPECT(*words[1] == THREADS);
    unsigned old = o_g[8], now;
    asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(now) : "l"(o_g + 8), "r"(old), "r"(1u) : "memory");
    EXPECT(now <= 1);
}

ALONE_CASE(wait_for_the_block_before)
{
    while (blockIdx.x > 0 && load_volatile(&o_g[2 + blockIdx.x - 1]) == 0)
        ;
    __threadfence();
    const unsigned before = blockIdx.x > 0 ? o_g[16 + blockIdx.x - 1] : 0;
    o_g[16 + blockIdx.x] = before + 1;
    __threadfence();
    store_volatile(&o_g[2 + blockIdx.x], 1);
    EXPECT(before == blockIdx.x);
}

GRID_CASE(barrier_of_the_grid, load_volatile(&o_g[2]), __threadfence(), (void)0)
GRID_CASE(barrier_of_the_grid_then_fences, atomicAdd(&o_g[2], 0u), (void)0, __threadfence())

/* Static shared memory is each block's own, also while it waits for another block. */
CASE(blocks_wait_with_shared_variables)
{
    __shared__ unsigned mine_s[THREADS];
    mine_s[t] = blockIdx.x;
    __syncthreads();
    if (t == 0) {
        atomicAdd(&o_g[2], 1u);
        while (atomicAdd(&o_g[2], 0u) < gridDim.x)
            ;
    }
    __syncthreads();
    EXPECT(mine_s[t ^ 64] == blockIdx.x);
}

CASE(clocks)
{
    USE((int)clock64());
    USE((int)clock());
}

RACE_KERNEL
