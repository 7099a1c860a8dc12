/* Instructions of sm_90a for the kernels of this folder. Macros, so that a report names the kernel's line.
 * A launch names a case by its number (p.seq_q); 3 blocks of 256 threads, or with CLUSTER 2 clusters of so many blocks
 * of 64. k_map: 32 rows of 64 halves, the numbers of q; v_map: as much of o, from byte 4096
 * on; boxes of 8 rows, 128-byte swizzle. */
#include "../conform/conform.cuh"

#ifndef CLUSTER
#define CLUSTER 0
#endif
constexpr int THREADS = CLUSTER > 0 ? 64 : 256, BOX_ROWS = 8, BOX_BYTES = BOX_ROWS * 128;
FA_KERNEL_INFO(.threads = THREADS, .smem_dynamic_bytes = 32768, .cluster = CLUSTER, .tma_k_rows = BOX_ROWS,
               .tma_v_rows = BOX_ROWS, .tma_cols = 64);

typedef unsigned long long u64;

/* s: the block's shared memory, b: two barrier objects in it, as addresses; s_b: s as a pointer; t: the thread */
#define CASE_BETWEEN(name, first, last)                                                                                \
    NUMBERED_CASE(name, (const fa_params &p, unsigned s, unsigned b, unsigned char *s_b, int t), first, last, p, s, b, \
                  s_b, t)
#define CASE(name) CASE_BETWEEN(name, (void)0, (void)0)
/* The barriers are initialised, with one arrival each. */
#ifndef READY
#define READY make_barriers(b, t, 1)
#endif
#define READY_CASE(name) CASE_BETWEEN(name, READY, (void)0)
/* Thread 0 of block 0 alone runs it. */
#define SINGLE_CASE(name) CASE_BETWEEN(name, if (t != 0 || blockIdx.x != 0) return, (void)0)
/* A copy of 1 KiB of Q to s has been issued. */
#define FETCHED_CASE(name) CASE_BETWEEN(name, READY; if (t == 0) FETCH(s, p.q, 1024, b), (void)0)
/* The case is these statements, run by the first `threads` threads: one, half a warp, a warp, a warpgroup, or all. */
#define SHORT_CASE(kind, name, threads, statements) \
    kind(name)                                      \
    {                                               \
        if (t < threads) {                          \
            statements;                             \
        }                                           \
    }
#define ONE_CASE(name, statements) SHORT_CASE(CASE, name, 1, statements)
#define READY_ONE_CASE(name, statements) SHORT_CASE(READY_CASE, name, 1, statements)
#define WARP_CASE(name, statements) SHORT_CASE(CASE, name, 32, statements)
#define HALF_WARP_CASE(name, statements) SHORT_CASE(CASE, name, 16, statements)
#define GROUP_CASE(name, statements) SHORT_CASE(CASE, name, 128, statements)
#define EVERY_CASE(name, statements) SHORT_CASE(CASE, name, THREADS, statements)

/* What every case of a file begins with. */
#ifndef SET_UP
#define SET_UP(s_b, b, t)
#endif
/* Where a case's s, s_b, b and t come from */
#define THEIR_PLACES                                                           \
    FA_SHARED_ALIGNED(unsigned char, s_b, 1024);                               \
    const unsigned s = (unsigned)__cvta_generic_to_shared(s_b), b = s + 32512; \
    const int t = threadIdx.x
#define HOPPER_KERNEL                                                         \
    extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p) \
    {                                                                         \
        THEIR_PLACES;                                                         \
        SET_UP(s_b, b, t);                                                    \
        run_case<CASES>(p.seq_q, p, s, b, s_b, t);                            \
    }

/* What a thread reads must not be thought away. */
#define USE(value) EXPECT((value) != 12345678)

/* Word i of the block's shared memory */
#define AT(i) (reinterpret_cast<const int *>(s_b)[i])

#define INIT(bar, count) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory")
#define INVAL(bar) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar) : "memory")
#define FENCE_INIT() asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
#define FENCE_ASYNC() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define FENCE_GLOBAL() asm volatile("fence.proxy.async.global;" ::: "memory")
#define ARRIVE(bar) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory")
#define ARRIVE_NO_COMPLETE(bar) \
    asm volatile("{.reg .b64 x; mbarrier.arrive.noComplete.shared::cta.b64 x, [%0], 1;}" ::"r"(bar) : "memory")
#define EXPECT_BYTES(bar, bytes) \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory")
#define ADD_BYTES(bar, bytes) \
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(bytes) : "memory")
#define TRY(done, bar, parity)                                                                                 \
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}" \
                 : "=r"(done)                                                                                  \
                 : "r"(bar), "r"(parity)                                                                       \
                 : "memory")
/* Polls: gives no other thread a turn of its own accord. */
#define TEST(done, bar, parity)                                                                                 \
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}" \
                 : "=r"(done)                                                                                   \
                 : "r"(bar), "r"(parity)                                                                        \
                 : "memory")
#define WAIT(bar, parity)            \
    do {                             \
        unsigned done_ = 0;          \
        while (!done_)               \
            TRY(done_, bar, parity); \
    } while (0)

/* Bulk copies */
#define COPY(to, from_g, bytes, bar)                                                                                  \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), \
                 "l"(from_g), "r"(bytes), "r"(bar)                                                                    \
                 : "memory")
#define LOAD_AT(to, map, bar, column, row)                                                           \
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes " \
                 "[%0], [%1, {%4, %5, %3, %3}], [%2];" ::"r"(to),                                    \
                 "l"(map), "r"(bar), "r"(0), "r"(column), "r"(row)                                   \
                 : "memory")
#define LOAD(to, map, bar, row) LOAD_AT(to, map, bar, 0, row)
/* By a map of rank 2 */
#define LOAD_2D(to, map, bar, column, row)                                                           \
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes " \
                 "[%0], [%1, {%3, %4}], [%2];" ::"r"(to),                                            \
                 "l"(map), "r"(bar), "r"(column), "r"(row)                                           \
                 : "memory")
/* Copies that their barrier expects */
#define FETCH(to, from_g, bytes, bar) \
    do {                              \
        EXPECT_BYTES(bar, bytes);     \
        COPY(to, from_g, bytes, bar); \
    } while (0)
#define FETCH_BOX(to, map, bar, row)  \
    do {                              \
        EXPECT_BYTES(bar, BOX_BYTES); \
        LOAD(to, map, bar, row);      \
    } while (0)
#define COPY_OUT(to_g, from, bytes)                                                                               \
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to_g), "r"(from), "r"(bytes) \
                 : "memory")
#define REDUCE_OUT(op, to_g, from, bytes)                                                                            \
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." op " [%0], [%1], %2;" ::"l"(to_g), "r"(from), \
                 "r"(bytes)                                                                                          \
                 : "memory")
#define ADD_BOX(map, from, row)                                                           \
    asm volatile("cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group " \
                 "[%0, {%2, %3, %2, %2}], [%1];" ::"l"(map),                              \
                 "r"(from), "r"(0), "r"(row)                                              \
                 : "memory")
#define STORE(map, from, row)                                                                                  \
    asm volatile(                                                                                              \
        "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %2, %2}], [%1];" ::"l"(map), \
        "r"(from), "r"(0), "r"(row)                                                                            \
        : "memory")
#define ADD_UP(to, from, bytes, bar)                                                                                  \
    asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%0], [%1], " \
                 "%2, [%3];" ::"r"(to),                                                                               \
                 "r"(from), "r"(bytes), "r"(bar)                                                                      \
                 : "memory")
#define ASYNC_16(to, from_g) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from_g) : "memory")
#define COPIES_ARRIVE(how, bar) asm volatile("cp.async.mbarrier.arrive" #how ".b64 [%0];" ::"r"(bar) : "memory")
#define COMMIT() asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define WAIT_GROUP(n) asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) : "memory")
#define WAIT_READ(n) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) : "memory")
#define COMMIT_AND_WAIT() \
    do {                  \
        COMMIT();         \
        WAIT_GROUP(0);    \
    } while (0)
#define COPY_OUT_AND_WAIT(to_g, from, bytes) \
    do {                                     \
        COPY_OUT(to_g, from, bytes);         \
        COMMIT_AND_WAIT();                   \
    } while (0)
#define STORE_AND_WAIT(map, from, row) \
    do {                               \
        STORE(map, from, row);         \
        COMMIT_AND_WAIT();             \
    } while (0)

/* Products m64n8k16 of 128-byte swizzled tiles */
#define WG_FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WG_COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WG_WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")
#define PRODUCT(d, a, b)                                                                                   \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %6, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " \
                 "{%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;}"                                               \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                          \
                 : "l"(descriptor(a)), "l"(descriptor(b)), "r"(1))
#define PRODUCT_RS(d, a, b)                                                                                \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %9, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1, 0;}"                                    \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                          \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptor(b)), "r"(1))
#define WG_FINISH()  \
    do {             \
        WG_COMMIT(); \
        WG_WAIT(0);  \
    } while (0)
/* A group of one product */
#define MULTIPLY(d, a, b) \
    do {                  \
        WG_FENCE();       \
        PRODUCT(d, a, b); \
        WG_COMMIT();      \
    } while (0)
#define MULTIPLY_AND_WAIT(d, a, b) \
    do {                           \
        MULTIPLY(d, a, b);         \
        WG_WAIT(0);                \
    } while (0)
#define REGISTERS(how, n) asm volatile("setmaxnreg." #how ".sync.aligned.u32 %0;" ::"n"(n))
#define NAMED_SYNC(id, n) asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(n) : "memory")

__device__ __forceinline__ u64 descriptor(unsigned address_s)
{
    return 1ull << 62 | (u64)(1024 >> 4) << 32 | (address_s & 0x3ffff) >> 4;
}

constexpr int A_BYTES = 8192, B_BYTES = 1024; /* of a product: A lies at s, B after it */

/* The block's barriers b (and b + 8), ready for copies. */
__device__ __forceinline__ void make_barriers(unsigned b, int t, int count, int count_next = 0)
{
    if (t == 0) {
        INIT(b, count);
        INIT(b + 8, count_next > 0 ? count_next : count);
        FENCE_INIT();
    }
    __syncthreads();
}

/* Half `column` of row `row` of a box of 64 columns at `place`, 128-byte swizzled */
__device__ __forceinline__ int box_half(const unsigned char *place_s, int row, int column)
{
    const int chunk = column / 8 ^ row % 8;
    return reinterpret_cast<const unsigned short *>(place_s)[row * 64 + chunk * 8 + column % 8];
}

/* Fills `bytes` of shared memory from s_b on with halves of 1.0, visible to the async proxy. */
__device__ __forceinline__ void fill(unsigned char *s_b, int bytes, int t)
{
    for (int i = t; i < bytes / 4; i += THREADS)
        reinterpret_cast<unsigned *>(s_b)[i] = 0x3c003c00u;
    FENCE_ASYNC();
    __syncthreads();
}
