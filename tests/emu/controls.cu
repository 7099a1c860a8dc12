/* The emulator's negative controls. Each does one thing wrong; the emulator must say so and name the line marked HERE.
 * Where nothing is reported but the result is wrong, the kernel compares and counts as a conformance kernel does.
 * emu_case takes one of them: --define CONTROL_NAME=name. */
#include "conform/conform.cuh"

#include <assert.h>
#include <cooperative_groups.h>
#include <mma.h>

using namespace nvcuda;

/* A shuffle reads a lane that takes no part in it. */
CONTROL(absent_lane, 32, 0)
{
    if (t < 16)
        put(p, t, __shfl_xor_sync(0xffffu, t, 16)); /* HERE */
}

/* A cp.async is read before it is waited for. */
CONTROL(async_early, 32, 512)
{
    FA_SHARED(__half, s);
    cp_async_16(s + t * 8, static_cast<const __half *>(p.q) + t * 8, 16);
    cp_async_commit();
    EXPECT(half_bits(s[t * 8]) == half_bits(static_cast<const __half *>(p.q)[t * 8])); /* HERE */
    cp_async_wait<0>();
}

/* Its threads end without a wait for their copies, which is legal; others read what these may write. */
CONTROL(async_left, 64, 512)
{
    FA_SHARED(__half, s);
    const __half *q_g = static_cast<const __half *>(p.q);
    if (t < 32) {
        cp_async_16(s + t * 8, q_g + t * 8, 16);
        cp_async_commit();
    }
    __syncthreads();
    if (t >= 32)
        EXPECT(half_bits(s[t * 4]) == half_bits(q_g[t * 4])); /* HERE */
}

/* The last group is not waited for, and its destination is used for something else. */
CONTROL(async_left_over, 64, 512)
{
    FA_SHARED(__half, s);
    if (t < 32) {
        cp_async_16(s + t * 8, static_cast<const __half *>(p.q) + t * 8, 16);
        cp_async_commit();
    }
    __syncthreads();
    if (t < 32)
        s[t * 8] = __float2half(1.0f);
    __syncthreads();
    for (int i = 0; t >= 32 && i < 1000; i++)
        __nanosleep(10);
    if (t >= 32)
        EXPECT(half_bits(s[(t - 32) * 8]) == half_bits(__float2half(1.0f))); /* HERE */
}

/* A 16-byte copy from an address that is no multiple of 16. */
CONTROL(async_misaligned, 32, 512)
{
    FA_SHARED(__half, s);
    cp_async_16(s + t * 8, static_cast<const __half *>(p.q) + t * 8 + 1, 16); /* HERE */
    cp_async_commit();
    cp_async_wait<0>();
    put(p, t, 1);
}

/* Each thread waits for its own copies and then reads another's: the __syncthreads after the wait is missing. */
CONTROL(async_no_barrier, 64, 1024)
{
    FA_SHARED(__half, s);
    const __half *q_g = static_cast<const __half *>(p.q);
    const int other = t ^ 1;
    cp_async_16(s + t * 8, q_g + t * 8, 16);
    cp_async_commit();
    cp_async_wait<0>();
    EXPECT(half_bits(s[other * 8]) == half_bits(q_g[other * 8])); /* HERE */
}

/* A function waits for lanes that do not come: the report names its caller, too. */
__device__ __noinline__ int all_lanes(int value) { return __shfl_sync(~0u, value, 0); }
CONTROL(awaited_in_a_function, 32, 0)
{
    int got = 1;
    if (t < 16)
        got = all_lanes(t); /* HERE */
    __syncthreads();
    put(p, t, got);
}

/* Two counts for one barrier. */
CONTROL(bad_barrier, 64, 0)
{
    bar_sync(3, t < 32 ? 64 : 96); /* HERE */
    put(p, t, 1);
}

/* The mask does not name the lane that calls. */
CONTROL(bad_mask, 32, 0) { put(p, t, __shfl_sync(0xffffu, t, 0)); /* HERE */ }

/* Some lanes wait at a barrier, the others in a shuffle that names all lanes. */
CONTROL(barrier_against_shuffle, 64, 0)
{
    if (t == 40)
        __syncthreads();
    put(p, t, __shfl_xor_sync(~0u, t, 1)); /* HERE */
}

/* One buffer, refilled while slower threads still read it: the second barrier is missing. */
CONTROL(buffer_overwritten, 128, 512)
{
    FA_SHARED(int, s);
    for (int step = 0; step < 4; step++) {
        s[t] = step; /* HERE */
        __syncthreads();
        EXPECT(s[(t + 64) % 128] == step);
    }
}

/* Half of a warp waits at one __syncthreads, half at another. */
CONTROL(divergent_barrier, 64, 0)
{
    if (t % 32 < 16)
        __syncthreads(); /* HERE */
    else
        __syncthreads();
    put(p, t, 1);
}

/* The neighbour's value is read without a __syncthreads. */
CONTROL(missing_barrier, 128, 512)
{
    FA_SHARED(int, s);
    s[t] = t;
    EXPECT(s[t > 0 ? t - 1 : 0] == (t > 0 ? t - 1 : 0)); /* HERE */
}

/* Lanes exchange values through shared memory without a __syncwarp. */
CONTROL(missing_syncwarp, 32, 128)
{
    FA_SHARED(int, s);
    s[t] = t;
    EXPECT(s[t ^ 1] == (t ^ 1)); /* HERE */
}

/* A named barrier that counts 96 threads, to which 64 come. */
CONTROL(named_barrier_short, 64, 0)
{
    bar_sync(3, 96); /* HERE */
    put(p, t, 1);
}

/* A store through a null pointer. */
CONTROL(null_pointer, 32, 0)
{
    if (t == 7)
        static_cast<volatile int *>(p.workspace)[1] = 1; /* HERE */
    put(p, t, 1);
}

/* An aligned operation that only half of the warp executes. */
CONTROL(partial_warp, 32, 512)
{
    FA_SHARED(__half, s);
    unsigned r[2];
    if (t < 16) {
        ldmatrix_x2(r, s + t * 8); /* HERE */
        put(p, t, r[0]);
    }
}

/* A shuffle brings the lanes together but orders no memory. */
CONTROL(shuffle_as_barrier, 32, 128)
{
    FA_SHARED(int, s);
    s[t] = t;
    __shfl_sync(~0u, t, 0);
    EXPECT(s[t ^ 1] == (t ^ 1)); /* HERE */
}

/* A cp.async whose last bytes lie past the end of an input. */
CONTROL(tail_async, 32, 512)
{
    FA_SHARED(__half, s);
    const __half *q_g = static_cast<const __half *>(p.q) + FA_TEST_HALVES - 31 * 8;
    cp_async_16(s + t * 8, q_g + t * 8, 16); /* HERE */
    cp_async_commit();
    cp_async_wait<0>();
    put(p, t, 1);
}

/* One element past the end of an input. */
CONTROL(tail_global, 32, 0)
{
    const __half *q_g = static_cast<const __half *>(p.q);
    put(p, t, half_bits(q_g[FA_TEST_HALVES - 31 + t])); /* HERE */
}

/* ldmatrix of a row that lies past the end of shared memory. */
CONTROL(tail_ldmatrix, 32, 512)
{
    FA_SHARED(__half, s);
    unsigned r[4];
    ldmatrix_x4(r, s + (t + 1) * 8); /* HERE */
    put(p, t, r[0]);
}

/* One word past the end of dynamic shared memory. */
CONTROL(tail_shared, 32, 128)
{
    FA_SHARED(int, s);
    s[t + 1] = t; /* HERE */
    __syncwarp();
    put(p, t, s[t]);
}

/* One word past the end of a __shared__ array. */
CONTROL(tail_static_shared, 32, 0)
{
    __shared__ int first_s[32];
    __shared__ int second_s[32];
    second_s[t] = 0;
    first_s[t + 1] = t; /* HERE */
    __syncwarp();
    put(p, t, first_s[t] + second_s[t]);
}

/* __trap ends the launch. */
CONTROL(trap, 32, 0)
{
    if (t == 7)
        __trap(); /* HERE */
    put(p, t, 1);
}

/* A barrier of the grid takes a launch that the bench does not make. */
CONTROL(grid_barrier, 32, 0) { cooperative_groups::this_grid().sync(); /* HERE */ }

/* An assertion does not hold. */
CONTROL(false_assert, 32, 0)
{
    assert(t != 7); /* HERE */
    put(p, t, 1);
}

/* A shift by more bits than there are. */
CONTROL(undefined_shift, 64, 0) { put(p, t, 1 << t); /* HERE */ }

/* A sum over shared memory of which the last word was never written. */
CONTROL(unwritten_shared, 32, 132)
{
    FA_SHARED(float, s);
    s[t] = 1.0f;
    __syncwarp();
    float sum = 0.0f;
    for (int i = 0; i < 33; i++)
        sum += s[i];
    EXPECT(sum == sum); /* HERE */
}

/* Assumes that accumulator element i of lane l is row l/4 + 8*(i/2%2), column l%4*2 + i%2 + 8*(i/4). */
CONTROL(wmma_layout, 32, 1024)
{
    FA_SHARED(float, s);
    for (int i = t; i < 256; i += 32)
        s[i] = i;
    __syncwarp();
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::load_matrix_sync(c, s, 16, wmma::mem_row_major);
    for (int i = 0; i < 8; i++)
        EXPECT(c.x[i] == (t / 4 + i / 2 % 2 * 8) * 16 + t % 4 * 2 + i % 2 + i / 4 * 8); /* HERE */
}

/* What store_matrix_sync wrote is read without a __syncwarp. */
CONTROL(wmma_no_syncwarp, 32, 1024)
{
    FA_SHARED(float, s);
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 1.0f);
    wmma::store_matrix_sync(s, c, 16, wmma::mem_row_major);
    for (int i = 0; i < 8; i++)
        EXPECT(s[i * 32 + t] == 1.0f); /* HERE */
}

CONTROL_KERNEL
