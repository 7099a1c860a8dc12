/* The emulator's negative controls. Each does one thing wrong; the emulator must say so and name the line marked HERE.
 * Where nothing is reported but the result is wrong, the kernel compares and counts as a conformance kernel does.
 * emu_case takes one of them: --define CONTROL_name. */
#include "conform/conform.cuh"

/* The kernel, of so many threads and bytes of dynamic shared memory. */
#define KERNEL(n, bytes)                                       \
    FA_KERNEL_INFO(.threads = n, .smem_dynamic_bytes = bytes); \
    extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)

#include <mma.h>

#if defined(CONTROL_absent_lane)
/* A shuffle reads a lane that takes no part in it. */
KERNEL(32, 0)
{
    if (threadIdx.x < 16)
        put(p, threadIdx.x, __shfl_xor_sync(0xffffu, threadIdx.x, 16)); /* HERE */
}
#endif

#if defined(CONTROL_async_early)
/* A cp.async is read before it is waited for. */
KERNEL(32, 512)
{
    FA_SHARED(__half, s);
    const int t = threadIdx.x;
    cp_async_16(s + t * 8, static_cast<const __half *>(p.q) + t * 8, 16);
    cp_async_commit();
    EXPECT(half_bits(s[t * 8]) == half_bits(static_cast<const __half *>(p.q)[t * 8])); /* HERE */
    cp_async_wait<0>();
}
#endif

#if defined(CONTROL_async_left)
/* Its threads end without a wait for their copies, which is legal; others read what these may write. */
KERNEL(64, 512)
{
    FA_SHARED(__half, s);
    const int t = threadIdx.x;
    const __half *q_g = static_cast<const __half *>(p.q);
    if (t < 32) {
        cp_async_16(s + t * 8, q_g + t * 8, 16);
        cp_async_commit();
    }
    __syncthreads();
    if (t >= 32)
        EXPECT(half_bits(s[t * 4]) == half_bits(q_g[t * 4])); /* HERE */
}
#endif

#if defined(CONTROL_async_left_over)
/* The last group is not waited for, and its destination is used for something else. */
KERNEL(64, 512)
{
    FA_SHARED(__half, s);
    const int t = threadIdx.x;
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
#endif

#if defined(CONTROL_async_misaligned)
/* A 16-byte copy from an address that is no multiple of 16. */
KERNEL(32, 512)
{
    FA_SHARED(__half, s);
    cp_async_16(s + threadIdx.x * 8, static_cast<const __half *>(p.q) + threadIdx.x * 8 + 1, 16); /* HERE */
    cp_async_commit();
    cp_async_wait<0>();
    put(p, threadIdx.x, 1);
}
#endif

#if defined(CONTROL_async_no_barrier)
/* Each thread waits for its own copies and then reads another's: the __syncthreads after the wait is missing. */
KERNEL(64, 1024)
{
    FA_SHARED(__half, s);
    const __half *q_g = static_cast<const __half *>(p.q);
    const int t = threadIdx.x, other = t ^ 1;
    cp_async_16(s + t * 8, q_g + t * 8, 16);
    cp_async_commit();
    cp_async_wait<0>();
    EXPECT(half_bits(s[other * 8]) == half_bits(q_g[other * 8])); /* HERE */
}
#endif

#if defined(CONTROL_awaited_in_a_function)
/* A function waits for lanes that do not come: the report names its caller, too. */
__device__ __noinline__ int all_lanes(int value) { return __shfl_sync(~0u, value, 0); }
KERNEL(32, 0)
{
    int got = 1;
    if (threadIdx.x < 16)
        got = all_lanes(threadIdx.x); /* HERE */
    __syncthreads();
    put(p, threadIdx.x, got);
}
#endif

#if defined(CONTROL_bad_barrier)
/* Two counts for one barrier. */
KERNEL(64, 0)
{
    bar_sync(3, threadIdx.x < 32 ? 64 : 96); /* HERE */
    put(p, threadIdx.x, 1);
}
#endif

#if defined(CONTROL_bad_mask)
/* The mask does not name the lane that calls. */
KERNEL(32, 0) { put(p, threadIdx.x, __shfl_sync(0xffffu, threadIdx.x, 0)); /* HERE */ }
#endif

#if defined(CONTROL_barrier_against_shuffle)
/* Some lanes wait at a barrier, the others in a shuffle that names all lanes. */
KERNEL(64, 0)
{
    if (threadIdx.x == 40)
        __syncthreads();
    put(p, threadIdx.x, __shfl_xor_sync(~0u, threadIdx.x, 1)); /* HERE */
}
#endif

#if defined(CONTROL_buffer_overwritten)
/* One buffer, refilled while slower threads still read it: the second barrier is missing. */
KERNEL(128, 512)
{
    FA_SHARED(int, s);
    const int t = threadIdx.x;
    for (int step = 0; step < 4; step++) {
        s[t] = step; /* HERE */
        __syncthreads();
        EXPECT(s[(t + 64) % 128] == step);
    }
}
#endif

#if defined(CONTROL_divergent_barrier)
/* Half of a warp waits at one __syncthreads, half at another. */
KERNEL(64, 0)
{
    if (threadIdx.x % 32 < 16)
        __syncthreads(); /* HERE */
    else
        __syncthreads();
    put(p, threadIdx.x, 1);
}
#endif

#if defined(CONTROL_missing_barrier)
/* The neighbour's value is read without a __syncthreads. */
KERNEL(128, 512)
{
    FA_SHARED(int, s);
    const int t = threadIdx.x;
    s[t] = t;
    EXPECT(s[t > 0 ? t - 1 : 0] == (t > 0 ? t - 1 : 0)); /* HERE */
}
#endif

#if defined(CONTROL_missing_syncwarp)
/* Lanes exchange values through shared memory without a __syncwarp. */
KERNEL(32, 128)
{
    FA_SHARED(int, s);
    const int lane = threadIdx.x;
    s[lane] = lane;
    EXPECT(s[lane ^ 1] == (lane ^ 1)); /* HERE */
}
#endif

#if defined(CONTROL_named_barrier_short)
/* A named barrier that counts 96 threads, to which 64 come. */
KERNEL(64, 0)
{
    bar_sync(3, 96); /* HERE */
    put(p, threadIdx.x, 1);
}
#endif

#if defined(CONTROL_null_pointer)
/* A store through a null pointer. */
KERNEL(32, 0)
{
    if (threadIdx.x == 7)
        static_cast<volatile int *>(p.workspace)[1] = 1; /* HERE */
    put(p, threadIdx.x, 1);
}
#endif

#if defined(CONTROL_partial_warp)
/* An aligned operation that only half of the warp executes. */
KERNEL(32, 512)
{
    FA_SHARED(__half, s);
    unsigned r[2];
    if (threadIdx.x < 16) {
        ldmatrix_x2(r, s + threadIdx.x * 8); /* HERE */
        put(p, threadIdx.x, r[0]);
    }
}
#endif

#if defined(CONTROL_shuffle_as_barrier)
/* A shuffle brings the lanes together but orders no memory. */
KERNEL(32, 128)
{
    FA_SHARED(int, s);
    const int lane = threadIdx.x;
    s[lane] = lane;
    __shfl_sync(~0u, lane, 0);
    EXPECT(s[lane ^ 1] == (lane ^ 1)); /* HERE */
}
#endif

#if defined(CONTROL_tail_async)
/* A cp.async whose last bytes lie past the end of an input. */
KERNEL(32, 512)
{
    FA_SHARED(__half, s);
    const __half *q_g = static_cast<const __half *>(p.q) + FA_TEST_HALVES - 31 * 8;
    cp_async_16(s + threadIdx.x * 8, q_g + threadIdx.x * 8, 16); /* HERE */
    cp_async_commit();
    cp_async_wait<0>();
    put(p, threadIdx.x, 1);
}
#endif

#if defined(CONTROL_tail_global)
/* One element past the end of an input. */
KERNEL(32, 0)
{
    const __half *q_g = static_cast<const __half *>(p.q);
    put(p, threadIdx.x, half_bits(q_g[FA_TEST_HALVES - 31 + threadIdx.x])); /* HERE */
}
#endif

#if defined(CONTROL_tail_ldmatrix)
/* ldmatrix of a row that lies past the end of shared memory. */
KERNEL(32, 512)
{
    FA_SHARED(__half, s);
    unsigned r[4];
    ldmatrix_x4(r, s + (threadIdx.x + 1) * 8); /* HERE */
    put(p, threadIdx.x, r[0]);
}
#endif

#if defined(CONTROL_tail_shared)
/* One word past the end of dynamic shared memory. */
KERNEL(32, 128)
{
    FA_SHARED(int, s);
    s[threadIdx.x + 1] = threadIdx.x; /* HERE */
    __syncwarp();
    put(p, threadIdx.x, s[threadIdx.x]);
}
#endif

#if defined(CONTROL_tail_static_shared)
/* One word past the end of a __shared__ array. */
KERNEL(32, 0)
{
    __shared__ int first_s[32];
    __shared__ int second_s[32];
    second_s[threadIdx.x] = 0;
    first_s[threadIdx.x + 1] = threadIdx.x; /* HERE */
    __syncwarp();
    put(p, threadIdx.x, first_s[threadIdx.x] + second_s[threadIdx.x]);
}
#endif

#if defined(CONTROL_trap)
/* __trap ends the launch. */
KERNEL(32, 0)
{
    if (threadIdx.x == 7)
        __trap(); /* HERE */
    put(p, threadIdx.x, 1);
}
#endif

#if defined(CONTROL_undefined_shift)
/* A shift by more bits than there are. */
KERNEL(64, 0) { put(p, threadIdx.x, 1 << threadIdx.x); /* HERE */ }
#endif

#if defined(CONTROL_unwritten_shared)
/* A sum over shared memory of which the last word was never written. */
KERNEL(32, 132)
{
    FA_SHARED(float, s);
    s[threadIdx.x] = 1.0f;
    __syncwarp();
    float sum = 0.0f;
    for (int i = 0; i < 33; i++)
        sum += s[i];
    EXPECT(sum == sum); /* HERE */
}
#endif

#if defined(CONTROL_wmma_layout)
/* Takes it that accumulator element i of lane l is row l/4 + 8*(i/2%2), column l%4*2 + i%2 + 8*(i/4), as on today's
 * GPUs. */
using namespace nvcuda;

KERNEL(32, 1024)
{
    FA_SHARED(float, s);
    const int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32)
        s[i] = i;
    __syncwarp();
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::load_matrix_sync(c, s, 16, wmma::mem_row_major);
    for (int i = 0; i < 8; i++)
        EXPECT(c.x[i] == (lane / 4 + i / 2 % 2 * 8) * 16 + lane % 4 * 2 + i % 2 + i / 4 * 8); /* HERE */
}
#endif

#if defined(CONTROL_wmma_no_syncwarp)
/* What store_matrix_sync wrote is read without a __syncwarp. */
using namespace nvcuda;

KERNEL(32, 1024)
{
    FA_SHARED(float, s);
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 1.0f);
    wmma::store_matrix_sync(s, c, 16, wmma::mem_row_major);
    for (int i = 0; i < 8; i++)
        EXPECT(s[i * 32 + threadIdx.x] == 1.0f); /* HERE */
}
#endif
