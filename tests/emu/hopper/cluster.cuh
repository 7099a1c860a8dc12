/* Instructions of clusters of two blocks, or of CLUSTER. mine: the block's rank, other: that of the other one. An
 * address of the block's own becomes one of another block by PEER. */
#ifndef CLUSTER
#define CLUSTER 2
#endif
#define READY make_cluster_barriers(b, t, 1, 1)
#include "hopper.cuh"

#include <cooperative_groups.h>
namespace cg = cooperative_groups;

#define CLUSTER_ARRIVE() asm volatile("barrier.cluster.arrive.aligned;" ::: "memory")
#define CLUSTER_ARRIVE_RELAXED() asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory")
#define CLUSTER_WAIT() asm volatile("barrier.cluster.wait.aligned;" ::: "memory")
#define CLUSTER_SYNC()    \
    do {                  \
        CLUSTER_ARRIVE(); \
        CLUSTER_WAIT();   \
    } while (0)

#define RELAXED_SYNC()            \
    do {                          \
        CLUSTER_ARRIVE_RELAXED(); \
        CLUSTER_WAIT();           \
    } while (0)

/* Where lanes have gone apart */
#define REJOIN()        \
    do {                \
        __syncwarp();   \
        CLUSTER_SYNC(); \
    } while (0)

/* At the end of which the blocks meet */
#define MEETING_CASE(name) CASE_BETWEEN(name, (void)0, REJOIN())
#define READY_MEETING_CASE(name) CASE_BETWEEN(name, READY, REJOIN())
#define MEETING_EVERY_CASE(name, statements) SHORT_CASE(MEETING_CASE, name, THREADS, statements)
#define READY_MEETING_ONE_CASE(name, statements) SHORT_CASE(READY_MEETING_CASE, name, 1, statements)
/* Every thread writes its word of s and reads the other block's. */
#define EXCHANGE_CASE(name, before, between, after) \
    MEETING_CASE(name)                              \
    {                                               \
        unsigned value;                             \
        before;                                     \
        PUT(s + 4 * t, t);                          \
        between;                                    \
        GET(value, PEER(s + 4 * t));                \
        EXPECT((int)value == t);                    \
        after;                                      \
    }

__device__ __forceinline__ unsigned block_rank()
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
#define mine block_rank()
#define other (block_rank() ^ 1)

__device__ __forceinline__ unsigned peer(unsigned address_s, unsigned rank FA_CALLER)
{
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address_s), "r"(rank));
    return there;
}
#define PEER(address) peer(address, other)

#define GET(value, address) asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory")
#define PUT(address, value) asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory")
#define ARRIVE_THERE(bar) \
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory")
#define ACQUIRE_ASYNC() \
    asm volatile("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;" ::: "memory")
#define COPY_THERE(to, from, bytes, bar)                                                                          \
    asm volatile(                                                                                                 \
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), \
        "r"(from), "r"(bytes), "r"(bar)                                                                           \
        : "memory")
/* 256 bytes of this block for the other one, and its own from there */
#define SWAP_256()                                   \
    do {                                             \
        EXPECT_BYTES(b, 256);                        \
        COPY_THERE(PEER(s + 1024), s, 256, PEER(b)); \
    } while (0)
#define SEND(to, value, bar)                                                                                 \
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to), \
                 "r"(value), "r"(bar)                                                                        \
                 : "memory")
#define SEND_SUM(to, value, bar)                                                                                    \
    asm volatile(                                                                                                   \
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(to), \
        "r"(value), "r"(bar)                                                                                        \
        : "memory")
#define COPY_TO_ALL(to, from_g, bytes, bar, mask)                                                        \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster " \
                 "[%0], [%1], %2, [%3], %4;" ::"r"(to),                                                  \
                 "l"(from_g), "r"(bytes), "r"(bar), "h"((unsigned short)(mask))                          \
                 : "memory")
#define LOAD_TO_ALL(to, map, bar, row, mask)                                                                   \
    asm volatile(                                                                                              \
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster " \
        "[%0], [%1, {%3, %4, %3, %3}], [%2], %5;" ::"r"(to),                                                   \
        "l"(map), "r"(bar), "r"(0), "r"(row), "h"((unsigned short)(mask))                                      \
        : "memory")
/* Acquires what the arrivals of other blocks released. */
#define WAIT_ALL(bar, parity)                                                                                    \
    do {                                                                                                         \
        unsigned done_ = 0;                                                                                      \
        while (!done_)                                                                                           \
            asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; " \
                         "selp.b32 %0, 1, 0, p;}"                                                                \
                         : "=r"(done_)                                                                           \
                         : "r"(bar), "r"(parity)                                                                 \
                         : "memory");                                                                            \
    } while (0)

/* The barriers b (and b + 8) of every block, for all of the cluster. */
__device__ __forceinline__ void make_cluster_barriers(unsigned b, int t, int count, int count_next)
{
    if (t == 0) {
        INIT(b, count);
        INIT(b + 8, count_next);
        FENCE_INIT();
    }
    __syncwarp();
    RELAXED_SYNC();
}
