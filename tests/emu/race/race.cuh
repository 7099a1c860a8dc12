/* Kernels for the race detector, several to a file: the launch names one by its number (p.seq_q). Each runs with 3
 * blocks of 128 threads. o: counters at words 0 to 15, zero before; later words are free. */
#include "../conform/conform.cuh"

constexpr int THREADS = 128;
FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = 4096);

#define CASE_AFTER(first, name) \
    NUMBERED_CASE(name, (const fa_params &p, int *s, unsigned *o_g, int t), first, (void)0, p, s, o_g, t)
#define CASE(name) CASE_AFTER((void)0, name)
#define ALONE_CASE(name) CASE_AFTER(if (t != 0) return, name) /* thread 0 alone runs it */

/* Each thread writes its word of s, and reads that of another; `between` stands between. */
#define WORDS_CASE(name, between, other) \
    CASE(name)                           \
    {                                    \
        s[t] = t;                        \
        between;                         \
        EXPECT(s[other] == (other));     \
    }

/* Thread `writer` writes word 1 of s and sets flag 0 after `released`; `reader` awaits it, then runs `acquired`. */
#define FLAG_CASE(name, writer, reader, set, seen, released, acquired) \
    CASE(name)                                                         \
    {                                                                  \
        unsigned *flag = reinterpret_cast<unsigned *>(s);              \
        set_first(s, t, 0);                                            \
        if (t == writer) {                                             \
            s[1] = 7;                                                  \
            released;                                                  \
            set;                                                       \
        } else if (t == reader) {                                      \
            while (seen == 0)                                          \
                ;                                                      \
            acquired;                                                  \
            EXPECT(s[1] == 7);                                         \
        }                                                              \
    }

/* Every block writes its words, then `written`; thread 0 counts it, and that of the last block reads all words. */
#define LAST_BLOCK_CASE(name, written)                           \
    CASE(name)                                                   \
    {                                                            \
        o_g[16 + blockIdx.x * THREADS + t] = t;                  \
        written;                                                 \
        if (t == 0 && atomicAdd(&o_g[2], 1u) == gridDim.x - 1) { \
            unsigned sum = 0;                                    \
            __threadfence();                                     \
            for (unsigned i = 0; i < gridDim.x * THREADS; i++)   \
                sum += o_g[16 + i];                              \
            EXPECT(sum == 3 * 127 * 64);                         \
            o_g[2] = 0;                                          \
        }                                                        \
    }
/* A fence of thread 0 alone. */
#define FENCE_OF_0(fence) (t == 0 ? fence() : (void)0)

/* As the programming guide has it: every thread's fence, one counts, a barrier, all threads of the last block read.
 * met: stands after the barrier. */
#define TICKET_CASE(name, met, read)                                                            \
    CASE(name)                                                                                  \
    {                                                                                           \
        __shared__ bool last_s;                                                                 \
        o_g[16 + blockIdx.x * THREADS + t] = t;                                                 \
        __threadfence();                                                                        \
        __syncthreads();                                                                        \
        if (t == 0)                                                                             \
            last_s = atomicInc(&o_g[2], gridDim.x) == gridDim.x - 1;                            \
        __syncthreads();                                                                        \
        if (last_s) {                                                                           \
            met;                                                                                \
            for (unsigned i = 0; i < gridDim.x; i++)                                            \
                EXPECT(read(&o_g[16 + i * THREADS + (t ^ 1)]) == static_cast<unsigned>(t ^ 1)); \
            if (t == 5)                                                                         \
                o_g[2] = 0;                                                                     \
        }                                                                                       \
    }

/* Every block writes its words; thread 0 counts it and polls until all have come. polled: stands after the loop; met:
 * after the barrier that follows. */
#define GRID_CASE(name, count, polled, met)                                         \
    CASE(name)                                                                      \
    {                                                                               \
        o_g[16 + blockIdx.x * THREADS + t] = t;                                     \
        __syncthreads();                                                            \
        if (t == 0) {                                                               \
            __threadfence();                                                        \
            atomicAdd(&o_g[2], 1u);                                                 \
            while (count < gridDim.x)                                               \
                ;                                                                   \
            polled;                                                                 \
        }                                                                           \
        __syncthreads();                                                            \
        met;                                                                        \
        const unsigned next = (blockIdx.x + 1) % gridDim.x;                         \
        EXPECT(o_g[16 + next * THREADS + (t ^ 1)] == static_cast<unsigned>(t ^ 1)); \
    }

/* Every warp of a block writes its words, and lane 0 counts it. A shuffle tells all lanes whether theirs is the last of
 * the blocks' warps. Then they read all words. written: stands after the words; told: before they are read. */
#define LAST_WARP_CASE(name, written, told)                               \
    CASE(name)                                                            \
    {                                                                     \
        unsigned arrived = 0, *words_g = o_g + 16 + t;                    \
        words_g[blockIdx.x * THREADS] = t;                                \
        written;                                                          \
        if (t % 32 == 0)                                                  \
            arrived = atomicAdd(&o_g[2 + t / 32], 1u);                    \
        if (__shfl_sync(~0u, arrived, 0) == gridDim.x - 1) {              \
            told;                                                         \
            for (unsigned i = 0; i < gridDim.x; i++)                      \
                EXPECT(words_g[i * THREADS] == static_cast<unsigned>(t)); \
        }                                                                 \
    }

/* Thread 0 of every block adds to a word under the lock in word `word` of o. */
#define LOCK_CASE(name, word, acquired, released) \
    ALONE_CASE(name)                              \
    {                                             \
        unsigned *lock = &o_g[word];              \
        while (atomicCAS(lock, 0u, 1u) != 0)      \
            ;                                     \
        acquired;                                 \
        o_g[16]++;                                \
        released;                                 \
        atomicExch(lock, 0u);                     \
    }

/* All threads read a word, then the last one writes it; `between` stands between. */
#define READERS_CASE(name, between) \
    CASE(name)                      \
    {                               \
        set_first(s, t, 1);         \
        USE(s[0]);                  \
        between;                    \
        if (t == 127)               \
            s[0] = 2;               \
    }

/* Each thread writes a word of its warp's tile, which the warp reads as a matrix. */
#define LDMATRIX_CASE(name, between)                                          \
    CASE(name)                                                                \
    {                                                                         \
        __shared__ uint4 tile_s[4][8];                                        \
        unsigned *row_s = reinterpret_cast<unsigned *>(tile_s[t / 32]), r[1]; \
        row_s[t % 32] = t % 32;                                               \
        between;                                                              \
        ldmatrix_x1(r, row_s + t % 8 * 4);                                    \
        EXPECT(r[0] == static_cast<unsigned>(t % 32));                        \
    }

/* Each thread writes its word of the block's row in global memory, and reads that of another. */
#define OWN_ROWS_CASE(name, between)                                                        \
    CASE(name)                                                                              \
    {                                                                                       \
        o_g[16 + blockIdx.x * THREADS + t] = t;                                             \
        between;                                                                            \
        EXPECT(o_g[16 + blockIdx.x * THREADS + (t ^ 33)] == static_cast<unsigned>(t ^ 33)); \
    }

/* What a thread reads must not be thought away. */
#define USE(value) EXPECT((value) != 0x7fffffff)

#define RACE_KERNEL                                                           \
    extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p) \
    {                                                                         \
        FA_SHARED_ALIGNED(int, s, 16);                                        \
        unsigned *o_g = static_cast<unsigned *>(p.o);                         \
        const int t = threadIdx.x;                                            \
        run_case<CASES>(p.seq_q, p, s, o_g, t);                               \
    }

__device__ __forceinline__ unsigned load(const unsigned *at) { return *at; }
__device__ __forceinline__ unsigned load_volatile(const unsigned *at)
{
    return *static_cast<const volatile unsigned *>(at);
}
__device__ __forceinline__ void store_volatile(unsigned *at, unsigned value)
{
    *static_cast<volatile unsigned *>(at) = value;
}
/* Word 0 of s, for all of the block. */
__device__ __forceinline__ void set_first(int *s, int t, int value)
{
    if (t == 0)
        s[0] = value;
    __syncthreads();
}
