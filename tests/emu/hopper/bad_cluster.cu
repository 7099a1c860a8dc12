/* Kernels wrong in one way each, in clusters of two blocks. Marks as in bad.cu. */
#include "cluster.cuh"

/* Another block's shared memory: PTX ISA, "Shared State Space"; CUDA C++ Guide, "Distributed Shared Memory" */

#define READ(address)         \
    do {                      \
        unsigned value_;      \
        GET(value_, address); \
        USE(value_);          \
    } while (0)
#define WORD_OF(rank, i) (*cg::this_cluster().map_shared_rank(reinterpret_cast<int *>(s_b) + (i), rank))

MEETING_EVERY_CASE(read_before_it_has_begun, READ(PEER(s)))                                  /* HERE absent block */
MEETING_EVERY_CASE(written_before_it_has_begun, PUT(PEER(s + 4 * t), t))                     /* HERE absent block */
MEETING_EVERY_CASE(reached_by_pointer_before_it_has_begun, USE(WORD_OF(other, t)))           /* HERE absent block */
MEETING_EVERY_CASE(barrier_of_the_block_before_it, __syncthreads(); PUT(PEER(s + 4 * t), t)) /* HERE absent block */

/* A statement of one block when the other one may have ended */
#define ENDED_CASE(name, rank, statement) \
    CASE(name)                            \
    {                                     \
        PUT(s + 4 * t, t);                \
        CLUSTER_SYNC();                   \
        if (mine == rank)                 \
            statement;                    \
    }

ENDED_CASE(read_after_its_end, 0, READ(PEER(s + 4 * t)))                /* HERE absent block */
ENDED_CASE(written_after_its_end, 1, PUT(PEER(s + 4 * t), t))           /* HERE absent block */
ENDED_CASE(reached_by_pointer_after_its_end, 0, USE(WORD_OF(other, t))) /* HERE absent block */

CASE(arrives_but_does_not_wait_before_its_end)
{
    PUT(s + 4 * t, t);
    CLUSTER_SYNC();
    CLUSTER_ARRIVE();
    if (mine == 0)
        READ(PEER(s + 4 * t)); /* HERE absent block */
}

READY_CASE(copied_to_after_its_end)
{
    if (t == 0 && mine == 0)
        COPY_TO_ALL(s, p.q, 1024, b, 2); /* HERE absent block; HERE bulk copy left */
}

EVERY_CASE(no_such_block, PUT(peer(s, 2), t))            /* HERE absent block */
EVERY_CASE(no_such_block_by_pointer, USE(WORD_OF(2, 0))) /* HERE absent block */

MEETING_CASE(address_of_another_block_as_its_own)
{
    unsigned value;
    CLUSTER_SYNC();
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(PEER(s)) : "memory"); /* HERE illegal address */
    USE(value);
}

/* Races between blocks: PTX ISA, "barrier.cluster", "Memory Consistency Model" */

MEETING_CASE(written_there_and_read_here)
{
    CLUSTER_SYNC();
    PUT(PEER(s + 4 * t), t); /* HERE data race */
    __syncthreads();
    USE(AT(t)); /* HERE data race */
}

MEETING_CASE(read_there_and_written_here)
{
    unsigned value;
    PUT(s + 4 * t, t);
    CLUSTER_SYNC();
    GET(value, PEER(s + 4 * t)); /* HERE data race */
    USE(value);
    PUT(s + 4 * t, value); /* HERE data race */
}

MEETING_CASE(by_pointer_there_and_here)
{
    CLUSTER_SYNC();
    WORD_OF(other, t) = t; /* HERE data race */
    USE(AT(t));            /* HERE data race */
}

CASE(variable_there_and_here)
{
    __shared__ int counts[THREADS];
    counts[t] = 0;
    CLUSTER_SYNC();
    cg::this_cluster().map_shared_rank(counts, other)[t] = t; /* HERE data race */
    __syncthreads();
    USE(counts[t]); /* HERE data race */
    CLUSTER_SYNC();
    (void)s_b;
}

EXCHANGE_CASE(relaxed_arrival, , RELAXED_SYNC(), )                                    /* HERE data race */
EXCHANGE_CASE(written_after_the_arrival, CLUSTER_ARRIVE(), CLUSTER_WAIT(), )          /* HERE data race */
EXCHANGE_CASE(read_before_the_wait, CLUSTER_SYNC(), CLUSTER_ARRIVE(), CLUSTER_WAIT()) /* HERE data race */

MEETING_CASE(atomic_there_and_read_here)
{
    if (t == 0)
        PUT(s, 0);
    CLUSTER_SYNC();
    if (mine == 0)
        USE(AT(0)); /* HERE data race */
    else
        atomicAdd(&WORD_OF(0, 0), 1); /* HERE data race */
}

/* The barrier of the cluster */

EVERY_CASE(arrives_twice, CLUSTER_ARRIVE(); CLUSTER_ARRIVE(); CLUSTER_WAIT()) /* HERE bad barrier */
EVERY_CASE(waits_without_an_arrival, CLUSTER_WAIT())                          /* HERE bad barrier */

READY_CASE(one_block_does_not_come)
{
    if (mine == 0)
        CLUSTER_SYNC(); /* HERE deadlock */
    else
        WAIT(b, 0); /* HERE deadlock */
}

CASE(lanes_that_come_alone)
{
    if (t % 2 == 0)
        CLUSTER_ARRIVE(); /* HERE partial warp */
    __syncwarp();
    CLUSTER_WAIT();
}

/* Barrier objects of another block: PTX ISA, "mbarrier" */

MEETING_CASE(initialised_without_a_fence)
{
    if (t == 0)
        INIT(b, 1);
    __syncwarp();
    RELAXED_SYNC();
    if (t == 0)
        ARRIVE_THERE(PEER(b)); /* HERE barrier not visible */
}

MEETING_CASE(initialised_later)
{
    CLUSTER_SYNC();
    if (t == 0) {
        INIT(b, 1); /* HERE barrier not visible */
        FENCE_INIT();
        ARRIVE_THERE(PEER(b)); /* HERE barrier not visible; HERE bad mbarrier */
    }
}

READY_MEETING_CASE(one_arrival_too_many)
{
    if (t == 0 && mine == 0)
        EXPECT_BYTES(b, 16);
    REJOIN();
    if (t == 0 && mine == 1)
        ARRIVE_THERE(PEER(b)); /* HERE phase overrun */
}

CASE(one_arrival_short)
{
    make_cluster_barriers(b, t, 3, 1);
    if (t == 0) {
        ARRIVE(b);
        ARRIVE_THERE(PEER(b));
    }
    WAIT_ALL(b, 0); /* HERE deadlock */
}

MEETING_CASE(arrival_in_the_scope_of_the_block)
{
    make_cluster_barriers(b, t, THREADS, 1);
    PUT(PEER(s + 4 * t), t); /* HERE data race */
    asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(PEER(b)) : "memory");
    WAIT_ALL(b, 0);
    USE(AT(t)); /* HERE data race */
}

READY_ONE_CASE(last_arrival_after_its_end, if (mine == 0) ARRIVE_THERE(PEER(b))) /* HERE absent block */
READY_MEETING_ONE_CASE(stored_over_there, PUT(PEER(b), 0))                       /* HERE ordinary access to a barrier */

/* Copies to another block: PTX ISA, "cp.async.bulk" */

READY_MEETING_CASE(barrier_of_the_sender)
{
    fill(s_b, 1024, t);
    if (t == 0)
        COPY_THERE(PEER(s + 1024), s, 1024, b); /* HERE bad mbarrier */
}

/* Every thread writes its word, and thread 0 sends them. */
#define SENT_CASE(name, written) \
    READY_MEETING_CASE(name)     \
    {                            \
        PUT(s + 4 * t, t);       \
        written;                 \
        __syncthreads();         \
        if (t == 0)              \
            SWAP_256();          \
        WAIT(b, 0);              \
    }

SENT_CASE(sent_without_a_proxy_fence, )                  /* HERE missing proxy fence */
SENT_CASE(acquired_instead_of_released, ACQUIRE_ASYNC()) /* HERE missing proxy fence */

READY_MEETING_CASE(words_read_before_they_are_received)
{
    if (t == 0)
        EXPECT_BYTES(b, 4 * THREADS);
    SEND(PEER(s + 4 * t), t, PEER(b)); /* HERE data race */
    USE(AT(t));                        /* HERE data race */
    WAIT_ALL(b, 0);
}

READY_MEETING_CASE(fewer_pieces_than_expected)
{
    if (t == 0) {
        EXPECT_BYTES(b, 4 * 64);
        for (int i = 0; i < 3; i++)
            COPY_THERE(PEER(s + 1024 + 64 * i), s + 64 * i, 64, PEER(b));
    }
    if (t % 32 == 0)
        for (unsigned done = 0; !done;)
            TEST(done, b, 0); /* HERE deadlock */
    __syncwarp();             /* HERE deadlock */
}

READY_MEETING_CASE(fewer_words_sent_than_expected)
{
    if (t == 0)
        EXPECT_BYTES(b, 4 * THREADS);
    if (t > 0)
        SEND(PEER(s + 4 * t), t, PEER(b));
    WAIT_ALL(b, 0); /* HERE deadlock */
}

READY_MEETING_ONE_CASE(word_with_a_barrier_of_ours, EXPECT_BYTES(b, 4); SEND(PEER(s), t, b)) /* HERE bad mbarrier */

READY_MEETING_CASE(read_before_it_is_received)
{
    fill(s_b, 1024, t);
    if (t == 0)
        SWAP_256(); /* HERE data race */
    __syncthreads();
    USE(AT(256 + t)); /* HERE data race */
    WAIT(b, 0);
}

READY_MEETING_CASE(source_written_before_it_is_sent)
{
    fill(s_b, 1024, t);
    if (t == 0)
        SWAP_256();    /* HERE data race */
    WAIT(b, 0);        /* for what comes, not for what goes */
    PUT(s + 4 * t, 0); /* HERE data race */
}

READY_CASE(ends_before_it_is_sent)
{
    fill(s_b, 1024, t);
    if (t == 0 && mine == 0)
        COPY_THERE(PEER(s + 1024), s, 256, PEER(b)); /* HERE absent block; HERE bulk copy left */
    if (t == 0 && mine == 1)
        EXPECT_BYTES(b, 256);
    if (mine == 1)
        WAIT(b, 0);
}

READY_MEETING_ONE_CASE(mask_of_three_blocks, if (mine == 0) LOAD_TO_ALL(s, &p.k_map, b, 0, 7)) /* HERE absent block */

READY_MEETING_CASE(one_block_expects_too_little)
{
    if (t == 0)
        EXPECT_BYTES(b, BOX_BYTES - 16 * mine);
    REJOIN();
    if (t == 0 && mine == 0)
        LOAD_TO_ALL(s, &p.k_map, b, 0, 3); /* HERE transaction count; HERE deadlock */
    WAIT(b, 0);                            /* HERE deadlock */
}

MEETING_CASE(copied_to_all_before_they_have_begun)
{
    make_barriers(b, t, 1);
    if (t == 0) {
        EXPECT_BYTES(b, 2 * BOX_BYTES);
        LOAD_TO_ALL(s + mine * BOX_BYTES, &p.k_map, b, 8 * mine, 3); /* HERE absent block */
    }
    WAIT(b, 0); /* HERE deadlock */
}

READY_MEETING_CASE(copied_to_all_but_one_does_not_wait)
{
    if (t == 0)
        EXPECT_BYTES(b, BOX_BYTES);
    if (t == 0 && mine == 0)
        LOAD_TO_ALL(s, &p.k_map, b, 0, 3); /* HERE data race */
    if (mine == 0)
        WAIT(b, 0);
    USE(AT(t)); /* HERE data race */
    WAIT(b, 0);
}

MEETING_CASE(stage_freed_by_one_block_alone)
{
    make_cluster_barriers(b, t, 1, THREADS);
    for (int i = 0; i < 2; i++) {
        if (t == 0) {
            EXPECT_BYTES(b, BOX_BYTES); /* HERE phase overrun */
            if (mine == 0)
                LOAD_TO_ALL(s, &p.k_map, b, 8 * i, 3); /* HERE data race; HERE transaction count */
        }
        WAIT(b, i); /* HERE phase overrun; HERE deadlock */
        USE(AT(t)); /* HERE data race */
        ARRIVE(b + 8);
        WAIT(b + 8, i);
    }
}

READY_MEETING_CASE(filled_by_threads_there)
{
    PUT(s + 4 * t, t); /* HERE missing proxy fence */
    CLUSTER_SYNC();
    if (t == 0)
        EXPECT_BYTES(b, BOX_BYTES);
    if (t == 0 && mine == 0)
        LOAD_TO_ALL(s, &p.k_map, b, 0, 3); /* HERE missing proxy fence */
    WAIT(b, 0);
}

/* On the block's own memory */

READY_MEETING_CASE(reduction_read_before_the_wait)
{
    fill(s_b, 512, t);
    if (t == 0) {
        EXPECT_BYTES(b, 256);
        ADD_UP(s + 256, s, 256, b); /* HERE data race */
    }
    USE(AT(64 + t)); /* HERE data race */
    WAIT(b, 0);
}

READY_MEETING_CASE(reduction_over_what_threads_wrote)
{
    fill(s_b, 256, t);
    reinterpret_cast<unsigned *>(s_b + 256)[t] = t; /* HERE missing proxy fence */
    __syncthreads();
    if (t == 0) {
        EXPECT_BYTES(b, 256);
        ADD_UP(s + 256, s, 256, b); /* HERE missing proxy fence */
    }
    WAIT(b, 0);
}

HOPPER_KERNEL
