/* Kernels wrong in one way each: barrier objects and copies. The report must have a class that is marked HERE, with the
 * line of the mark, in every schedule, or in those of ONLY (a d r g: ascending, descending, random, greedy). */
#include "hopper.cuh"

/* Barrier objects: PTX ISA, "mbarrier" */

ONE_CASE(no_barrier_there, ARRIVE(b))                   /* HERE bad mbarrier */
ONE_CASE(initialised_twice, INIT(b, 1); INIT(b, 1))     /* HERE bad mbarrier */
READY_ONE_CASE(used_after_its_end, INVAL(b); ARRIVE(b)) /* HERE bad mbarrier */
ONE_CASE(count_of_none, INIT(b, 0))                     /* HERE bad mbarrier */
ONE_CASE(not_aligned, INIT(b + 4, 1))                   /* HERE misaligned */
ONE_CASE(barrier_outside, INIT(s + 32768, 1))           /* HERE illegal address */

CASE(stored_over)
{
    make_barriers(b, t, 2);
    if (t == 0)
        *reinterpret_cast<unsigned *>(s_b + 32512) = 0; /* HERE ordinary access to a barrier */
    __syncthreads();
    ARRIVE(b);
}

CASE(read_as_memory)
{
    make_barriers(b, t, 2);
    USE(*reinterpret_cast<unsigned *>(s_b + 32512)); /* HERE ordinary access to a barrier */
}

CASE(not_made_visible)
{
    if (t == 0)
        INIT(b, 1);
    if (t == 32)
        ARRIVE(b); /* HERE barrier not visible; HERE bad mbarrier */
}

CASE(made_visible_by_a_shuffle)
{
    if (t == 0)
        INIT(b, 32);
    if (t < 32) {
        USE(__shfl_sync(~0u, t, 0));
        ARRIVE(b); /* HERE barrier not visible */
    }
}

READY_ONE_CASE(one_arrival_too_many, EXPECT_BYTES(b, 1024); ARRIVE(b)) /* HERE phase overrun */

READY_CASE(phases_run_ahead)
{
    if (t == 0)
        for (int i = 0; i < 9; i++)
            ARRIVE(b);
    if (t == 64)
        for (int i = 0; i < 9; i++)
            WAIT(b, i % 2); /* HERE phase overrun; HERE deadlock */
}

READY_CASE(arrives_in_a_phase_it_has_not_seen)
{
    if (t == 0)
        ARRIVE(b);
    if (t == 64)
        ARRIVE(b + 8);
    __syncwarp();
    if (t == 32)
        ARRIVE(b); /* HERE phase overrun */
    if (t == 0) {
        WAIT(b, 0);
        ARRIVE(b); /* HERE phase overrun */
    }
}

READY_ONE_CASE(promise_not_to_complete, ARRIVE_NO_COMPLETE(b)) /* HERE bad mbarrier */

READY_CASE(parity_that_is_none)
{
    unsigned done;
    TRY(done, b, 2); /* HERE bad mbarrier */
    USE(done);
}

READY_ONE_CASE(bytes_out_of_range, ADD_BYTES(b, (1 << 20) - 1); ADD_BYTES(b, 16)) /* HERE transaction count */

READY_CASE(nobody_arrives) { WAIT(b, 0); /* HERE deadlock */ }

CASE(polls_in_vain)
{
    make_barriers(b, t, 2);
    if (t == 0)
        ARRIVE(b);
    for (unsigned done = 0; t < 32 && !done;)
        TEST(done, b, 0); /* HERE deadlock */
}

/* An instruction in a function: the report has the line of its call, too. */
__device__ __noinline__ void wait_for_it(unsigned b) { WAIT(b, 0); }
__device__ __forceinline__ void arrive_there(unsigned b) { ARRIVE(b); }

READY_CASE(nobody_arrives_for_a_function) { wait_for_it(b); /* HERE deadlock */ }

ONE_CASE(no_barrier_for_a_function, arrive_there(b)) /* HERE bad mbarrier */

CASE(one_arrival_short)
{
    make_barriers(b, t, 2);
    if (t == 0)
        ARRIVE(b);
    WAIT(b, 0); /* HERE deadlock */
}

READY_CASE(wrong_barrier)
{
    if (t == 0) {
        EXPECT_BYTES(b + 8, 1024);
        COPY(s, p.q, 1024, b); /* HERE bulk copy left; HERE transaction count */
    }
    WAIT(b + 8, 0); /* HERE deadlock */
}

/* Every thread reads what comes, after statements that are no wait for it. */
#define READ_CASE(name, statements) \
    FETCHED_CASE(name)              \
    {                               \
        statements;                 \
        USE(AT(t));                 \
    }

READ_CASE(phase_off_by_one, WAIT(b, 1))                          /* HERE deadlock; HERE data race */
READ_CASE(tries_once, unsigned done; TRY(done, b, 0); USE(done)) /* HERE data race ONLY dr */
READ_CASE(wait_by_one_lane, if (t % 32 == 0) WAIT(b, 0); USE(__shfl_sync(~0u, t, 0))) /* HERE data race */

/* Copies: PTX ISA, "cp.async.bulk" */

CASE(initialisation_without_a_fence)
{
    if (t == 0)
        INIT(b, 1);
    __syncthreads();
    if (t == 0)
        FETCH(s, p.q, 1024, b); /* HERE missing fence.mbarrier_init */
    WAIT(b, 0);
}

/* Statements of thread 0; all wait for the barrier. */
#define WAITED_CASE(name, statements) \
    READY_CASE(name)                  \
    {                                 \
        if (t == 0) {                 \
            statements;               \
        }                             \
        WAIT(b, 0);                   \
    }
#define COPY_1024(expected)        \
    do {                           \
        EXPECT_BYTES(b, expected); \
        COPY(s, p.q, 1024, b);     \
    } while (0)

WAITED_CASE(fewer_bytes_expected, COPY_1024(1008))                   /* HERE deadlock; HERE transaction count */
WAITED_CASE(more_bytes_expected, COPY_1024(1040))                    /* HERE deadlock */
WAITED_CASE(read_before_the_wait, COPY_1024(1024); USE(AT(0)))       /* HERE data race */
WAITED_CASE(written_while_it_copies, COPY_1024(1024); s_b[1023] = 1) /* HERE data race */

WAITED_CASE(only_the_first_copy_expected, COPY_1024(1024); COPY(s + 1024, p.q, 1024, b)) /* NO LINE transaction count */

READY_CASE(no_bytes_expected)
{
    if (t == 0) {
        ARRIVE(b);
        COPY(s, p.q, 1024, b);
    }
    WAIT(b, 0);
    USE(AT(t)); /* HERE data race */
}

FETCHED_CASE(barrier_of_threads_for_a_wait)
{
    __syncthreads();
    USE(AT(t)); /* HERE data race */
    WAIT(b, 0);
}

READY_CASE(two_copies_to_one_place)
{
    if (t == 0) {
        FETCH(s, p.q, 1024, b);
        FETCH(s + 512, p.q, 1024, b + 8); /* HERE data race */
    }
    WAIT(b, 0);
    WAIT(b + 8, 0);
}

READY_CASE(refilled_before_it_is_read)
{
    for (int i = 0; i < 2; i++) {
        if (t == 0)
            FETCH_BOX(s, &p.k_map, b, 8 * i); /* HERE data race */
        WAIT(b, i);                           /* HERE phase overrun; HERE deadlock */
        USE(AT(t));                           /* HERE data race */
    }
}

FETCHED_CASE(freed_by_one_of_two_readers)
{
    if (t < 64) {
        WAIT(b, 0); /* HERE phase overrun; HERE deadlock */
        USE(AT(t)); /* HERE data race */
        if (t == 32)
            ARRIVE(b + 8);
    }
    if (t == 64) {
        WAIT(b + 8, 0);
        FETCH(s, p.q, 1024, b); /* HERE data race */
        WAIT(b, 1);
    }
}

CASE(source_is_written)
{
    unsigned *o_g = static_cast<unsigned *>(p.o);
    make_barriers(b, t, 1);
    if (t == 0 && blockIdx.x == 0) {
        FETCH(s, o_g + 64, 1024, b);
        o_g[80] = 1; /* HERE data race */
        WAIT(b, 0);
    }
}

READY_ONE_CASE(shared_address_of_a_copy, FETCH(s + 8, p.q, 1024, b))                            /* HERE misaligned */
READY_ONE_CASE(global_address_of_a_copy, FETCH(s, static_cast<const char *>(p.q) + 8, 1024, b)) /* HERE misaligned */
READY_ONE_CASE(size_of_a_copy, FETCH(s, p.q, 1000, b))                                          /* HERE misaligned */
READY_ONE_CASE(box_not_aligned, FETCH_BOX(s + 64, &p.k_map, b, 0))                              /* HERE misaligned */
READY_ONE_CASE(box_off_16_bytes, EXPECT_BYTES(b, BOX_BYTES); LOAD_AT(s, &p.k_map, b, 36, 0))    /* HERE misaligned */
READY_ONE_CASE(no_tensor_map, FETCH_BOX(s, &p.q_map, b, 0))                           /* HERE bad tensor map */
READY_ONE_CASE(other_rank, EXPECT_BYTES(b, BOX_BYTES); LOAD_2D(s, &p.k_map, b, 0, 0)) /* HERE bad tensor map */

CASE(copies_that_count_no_arrival)
{
    make_barriers(b, t, THREADS);
    ASYNC_16(s + 16 * t, static_cast<const uint4 *>(p.q) + t);
    COPIES_ARRIVE(.shared::cta, b);
    WAIT(b, 0); /* HERE deadlock */
}

CASE(copies_of_threads_not_waited_for)
{
    make_barriers(b, t, THREADS);
    ASYNC_16(s + 16 * t, static_cast<const uint4 *>(p.q) + t); /* HERE data race */
    COPIES_ARRIVE(.noinc.shared::cta, b);                      /* HERE data race */
    USE(AT(4 * ((t + 64) % 256)));                             /* HERE data race */
    WAIT(b, 0);
}

READY_ONE_CASE(beyond_shared_memory, FETCH(s + 32768 - 512, p.q, 1024, b)) /* HERE shared memory overflow */
READY_ONE_CASE(block_ends_while_it_copies, FETCH(s, p.q, 1024, b))         /* HERE bulk copy left ONLY dg */

READY_CASE(stage_filled_by_threads_before)
{
    s_b[t] = 1; /* HERE missing proxy fence */
    __syncthreads();
    if (t == 0)
        FETCH(s, p.q, 1024, b); /* HERE missing proxy fence */
    WAIT(b, 0);
}

READY_CASE(stage_filled_by_a_result)
{
    reinterpret_cast<half2 *>(s_b)[t] = __float2half2_rn(1.0f);
    FENCE_ASYNC();
    const half2 old = reinterpret_cast<half2 *>(s_b)[t];
    reinterpret_cast<half2 *>(s_b)[t] = __hmul2(old, old); /* HERE missing proxy fence */
    __syncthreads();
    if (t == 0)
        COPY_OUT_AND_WAIT(static_cast<unsigned *>(p.o) + 64 + 1024 * blockIdx.x, s,
                          1024); /* HERE missing proxy fence */
}

/* Out of shared memory into shared memory without clusters: an H200 ends the launch with "illegal instruction". */
WAITED_CASE(copy_within_a_block, EXPECT_BYTES(b, 512); ADD_UP(s + 1024, s, 512, b)) /* HERE absent block */

HOPPER_KERNEL
