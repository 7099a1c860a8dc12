/* Kernels in clusters that are right, each near one of bad_cluster.cu: nothing may be reported, in any schedule. */
#include "cluster.cuh"

CASE(exchange)
{
    unsigned value;
    PUT(s + 4 * t, 100 * mine + t);
    for (int i = 0; i < 3; i++) {
        CLUSTER_SYNC();
        GET(value, PEER(s + 4 * (t ^ 5)));
        EXPECT(value == 100 * other + (t ^ 5) + i);
        CLUSTER_SYNC();
        PUT(s + 4 * t, 100 * mine + t + i + 1);
    }
}

CASE(exchange_by_pointer)
{
    __shared__ int counts[THREADS];
    const cg::cluster_group cluster = cg::this_cluster();
    EXPECT(cluster.num_blocks() == 2 && cluster.block_rank() == mine && cluster.size() == 2 * THREADS);
    counts[t] = 10 * t + mine;
    reinterpret_cast<int *>(s_b)[t] = counts[t] + 5;
    cluster.sync();
    EXPECT(cluster.map_shared_rank(counts, other)[t] == 10 * t + (int)other);
    EXPECT(cluster.map_shared_rank(counts, mine)[t] == 10 * t + (int)mine);
    EXPECT(cluster.map_shared_rank(reinterpret_cast<int *>(s_b), other)[t] == 10 * t + (int)other + 5);
    EXPECT(cluster.query_shared_rank(cluster.map_shared_rank(counts, other)) == other);
    cluster.sync();
    EXPECT(counts[t] == 10 * t + (int)mine);
}

CASE(histogram)
{
    const cg::cluster_group cluster = cg::this_cluster();
    int *const bins = reinterpret_cast<int *>(s_b);
    if (t < 8)
        bins[t] = 0;
    cluster.sync();
    atomicAdd(cluster.map_shared_rank(bins, t / 8 % 2) + t % 8, 1);
    cluster.sync();
    if (t < 8)
        EXPECT(bins[t] == 2 * THREADS / 16);
}

EXCHANGE_CASE(fence_before_a_relaxed_arrival, , asm volatile("fence.acq_rel.cluster;" ::: "memory"); RELAXED_SYNC(), )
EXCHANGE_CASE(work_between_arrival_and_wait, , CLUSTER_ARRIVE(); PUT(s + 4096 + 4 * t, 2 * t); CLUSTER_WAIT(), )

CASE(a_block_ends_before)
{
    CLUSTER_SYNC();
    if (mine == 1 && t < 32)
        return;
    CLUSTER_SYNC(); /* who has ended is not awaited */
    USE(t);
}

MEETING_CASE(arrivals_at_each_other)
{
    make_cluster_barriers(b, t, THREADS, THREADS);
    for (int i = 0; i < 4; i++) { /* barriers in turn: every thread sees each phase of both end */
        PUT(PEER(s + 1024 * (i % 2) + 4 * t), i + t);
        ARRIVE_THERE(PEER(b + 8 * (i % 2)));
        WAIT_ALL(b + 8 * (i % 2), i / 2);
        EXPECT(AT(256 * (i % 2) + (t ^ 9)) == i + (t ^ 9));
    }
}

MEETING_CASE(a_flag)
{
    unsigned seen = 0;
    if (t == 0)
        PUT(s, 0);
    CLUSTER_SYNC();
    if (t == 0 && mine == 0) {
        PUT(PEER(s + 64), 77);
        asm volatile("st.release.cluster.shared::cluster.u32 [%0], %1;" ::"r"(PEER(s)), "r"(1) : "memory");
    }
    if (t == 0 && mine == 1) {
        while (seen == 0)
            asm volatile("ld.acquire.cluster.shared::cta.u32 %0, [%1];" : "=r"(seen) : "r"(s) : "memory");
        EXPECT(AT(16) == 77);
    }
}

MEETING_CASE(sent_and_acknowledged)
{
    make_cluster_barriers(b, t, 1, THREADS);
    for (int i = 0; i < 3; i++) {
        PUT(s + 4 * t, 10 * i + t + mine);
        FENCE_ASYNC();
        __syncthreads();
        if (t == 0)
            SWAP_256();
        WAIT_ALL(b, i % 2);
        EXPECT(AT(256 + (t ^ 3)) == 10 * i + (t ^ 3) + (int)other);
        ARRIVE_THERE(PEER(b + 8)); /* the other block may send again */
        WAIT_ALL(b + 8, i % 2);
    }
}

/* Every block loads a half of each stage for both: full barriers b, empty ones b + 8, which await both's readers. */
MEETING_CASE(ring_for_all)
{
    make_cluster_barriers(b, t, 1, 2);
    if (t == 32)
        for (int i = 0; i < 5; i++) {
            WAIT_ALL(b + 8, (i + 1) % 2);
            EXPECT_BYTES(b, 2 * BOX_BYTES);
            LOAD_TO_ALL(s + mine * BOX_BYTES, &p.k_map, b, 8 * ((i + mine) % 4), 3);
        }
    if (t < 32)
        for (int i = 0; i < 5; i++) {
            WAIT_ALL(b, i % 2);
            const unsigned short *q_g = static_cast<const unsigned short *>(p.q);
            const unsigned short *row = reinterpret_cast<const unsigned short *>(s_b);
            EXPECT(row[t] == q_g[8 * (i % 4) * 64 + t]);
            EXPECT(row[8 * 64 + t] == q_g[8 * ((i + 1) % 4) * 64 + t]);
            __syncwarp();
            if (t < 2)
                ARRIVE_THERE(peer(b + 8, t));
        }
}

/* A release is half a fence of the proxy: what its thread wrote reaches copies out of its shared memory. */
READY_MEETING_CASE(released_to_the_async_proxy)
{
    reinterpret_cast<int *>(s_b)[t] = t + 7 * mine;
    asm volatile("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;" ::: "memory");
    __syncthreads();
    if (t == 0)
        SWAP_256();
    WAIT_ALL(b, 0);
    ACQUIRE_ASYNC();
    EXPECT(AT(256 + t) == t + 7 * (int)other);
}

READY_MEETING_CASE(pieces_to_the_other_block)
{
    for (int i = 0; i < 4; i++)
        reinterpret_cast<int *>(s_b)[i * 64 + t] = i + t + 100 * mine;
    FENCE_ASYNC();
    if (t == 0)
        EXPECT_BYTES(b, 1024);
    CLUSTER_SYNC();
    if (t == 0)
        for (int i = 0; i < 4; i++)
            COPY_THERE(PEER(s + 1024 + 256 * i), s + 256 * i, 256, PEER(b));
    WAIT_ALL(b, 0);
    EXPECT(AT(256 + 128 + (t ^ 5)) == 2 + (t ^ 5) + 100 * (int)other);
}

/* Every thread's word to the other block, one by one and four together; st.async needs no proxy fence. */
READY_MEETING_CASE(words_sent)
{
    reinterpret_cast<unsigned *>(s_b)[t] = 0;
    CLUSTER_SYNC();
    if (t == 0)
        EXPECT_BYTES(b, 20 * THREADS);
    SEND(PEER(s + 4 * t), 100 * mine + t, PEER(b));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %1, %2, %2}, [%3];" ::"r"(
                     PEER(s + 1024 + 16 * t)),
                 "r"(t), "r"(t + 1), "r"(PEER(b))
                 : "memory");
    WAIT_ALL(b, 0);
    EXPECT(AT(t ^ 9) == 100 * (int)other + (t ^ 9));
    EXPECT(AT(256 + 4 * (t ^ 9) + 3) == (t ^ 9) + 1);
}

READY_MEETING_CASE(sums_sent)
{
    reinterpret_cast<unsigned *>(s_b)[t] = t;
    reinterpret_cast<unsigned *>(s_b + 256)[t] = t + 100 * mine;
    FENCE_ASYNC();
    CLUSTER_SYNC();
    if (t == 0) {
        EXPECT_BYTES(b, mine == 0 ? 2 * 256 + 8 * THREADS : 0);
        ADD_UP(peer(s, 0), s + 256, 256, peer(b, 0));
    }
    SEND_SUM(peer(s + 512, 0), t, peer(b, 0));
    WAIT_ALL(b, 0);
    EXPECT(mine == 1 || AT(t) == t + t + t + 100);
}

READY_MEETING_CASE(sent_to_itself)
{
    if (t == 0) {
        EXPECT_BYTES(b, 1024);
        COPY_TO_ALL(s, p.q, 1024, b, 1 << mine);
        EXPECT_BYTES(b + 8, 1024);
        COPY(peer(s + 1024, mine), p.q, 1024, peer(b + 8, mine));
    }
    WAIT(b, 0);
    WAIT(b + 8, 0);
    EXPECT(AT(t) == AT(256 + t));
}

CASE(dependent_launches)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
    reinterpret_cast<int *>(s_b)[t] = t;
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    EXPECT(AT(t) == t);
}

HOPPER_KERNEL
