/* Kernels that are right, each near one of bad.cu or bad_products.cu: nothing may be reported, in any schedule. */
#include "hopper.cuh"

CASE(full_and_empty)
{
    make_barriers(b, t, 1, 64);
    if (t == 64)
        for (int i = 0; i < 5; i++) {
            WAIT(b + 8, (i + 1) % 2);
            EXPECT_BYTES(b, 1024);
            COPY(s, p.q, 512, b);
            COPY(s + 512, p.q, 512, b);
        }
    if (t < 64)
        for (int i = 0; i < 5; i++) {
            WAIT(b, i % 2);
            USE(AT(t));
            ARRIVE(b + 8);
        }
    __syncthreads();
    if (t == 0) {
        INVAL(b);
        INIT(b, 1);
    }
}

CASE(phases_by_their_state)
{
    make_barriers(b, t, THREADS);
    for (int i = 0; i < 4; i++) {
        u64 state;
        unsigned done = 0;
        asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
        while (!done)
            asm volatile("{.reg .pred p; mbarrier.try_wait.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
                         : "=r"(done)
                         : "r"(b), "l"(state)
                         : "memory");
    }
}

READY_CASE(polls_until_the_bytes_have_come)
{
    if (t == 64)
        for (int i = 0; i < 2; i++) {
            FETCH(s + 1024 * i, p.q, 1024, b + 8 * i);
        }
    for (unsigned i = 0, done = 0; i < 2; i += done, done = 0) {
        TEST(done, b + 8 * i, 0);
        if (t % 2 == 0)
            __nanosleep(20);
    }
    USE(AT(t) + AT(256 + t));
}

READY_CASE(bytes_first)
{
    if (t == 0) {
        COPY(s, p.q, 1024, b);
        EXPECT_BYTES(b, 1024);
    }
    WAIT(b, 0);
    USE(AT(t));
}

CASE(fence_of_the_async_proxy_for_a_barrier)
{
    if (t == 0) {
        INIT(b, 1);
        FENCE_ASYNC();
    }
    __syncthreads();
    if (t == 32)
        FETCH(s, p.q, 1024, b);
    WAIT(b, 0);
    USE(AT(t));
}

CASE(stores_in_groups)
{
    for (int i = 0; i < 4; i++) {
        if (t == 0 && i >= 2)
            WAIT_READ(1);
        __syncthreads();
        reinterpret_cast<unsigned *>(s_b)[i % 2 * 256 + t] = t;
        FENCE_ASYNC();
        __syncthreads();
        if (t == 0) {
            COPY_OUT(static_cast<unsigned *>(p.o) + 64 + 1024 * blockIdx.x + 256 * i, s + i % 2 * 1024, 1024);
            COMMIT();
        }
    }
    if (t == 0) {
        WAIT_GROUP(0);
        EXPECT(static_cast<unsigned *>(p.o)[64 + 1024 * blockIdx.x + 700] == (700 & 255));
    }
}

/* As a backward kernel sums dQ: all blocks reduce into the same floats, which the last one reads. */
CASE(sums_of_all_blocks)
{
    constexpr int ROUNDS = 16;
    float *sums_g = static_cast<float *>(p.o) + 2048;
    unsigned *done_g = static_cast<unsigned *>(p.o) + 64;
    reinterpret_cast<float *>(s_b)[t] = static_cast<float>(t);
    FENCE_ASYNC();
    __syncthreads();
    if (t == 0) {
        for (int i = 0; i < ROUNDS; i++)
            REDUCE_OUT("add.f32", sums_g, s, 512);
        COMMIT_AND_WAIT();
        asm volatile("fence.proxy.async;" ::: "memory");
        __threadfence();
        if (atomicAdd(done_g, 1u) == gridDim.x - 1)
            for (int i = 0; i < 128; i++)
                EXPECT(atomicAdd(sums_g + i, 0.0f) == static_cast<float>(i * ROUNDS) * static_cast<float>(gridDim.x));
    }
}

CASE(reductions)
{
    reinterpret_cast<unsigned *>(s_b)[t] = t;
    FENCE_ASYNC();
    __syncthreads();
    if (t < 2) {
        REDUCE_OUT("add.u32", static_cast<unsigned *>(p.o) + 64 + 128 * t, s + 512 * t, 512);
        REDUCE_OUT("max.u32", static_cast<unsigned *>(p.o) + 2048 + 128 * t, s + 512 * t, 512);
        COMMIT_AND_WAIT();
        if (t == 1) { /* other blocks may have added theirs, too */
            const unsigned sum = atomicAdd(static_cast<unsigned *>(p.o) + 64 + 130, 0u);
            EXPECT(sum >= 130 && sum % 130 == 0);
            EXPECT(atomicAdd(static_cast<unsigned *>(p.o) + 2048 + 133, 0u) == 133);
        }
    }
}

/* cp.async that a barrier awaits: an arrival of each thread, or beside one of its own. */
CASE(copies_of_threads_arrive)
{
    make_barriers(b, t, THREADS);
    for (int i = 0; i < 3; i++) {
        ASYNC_16(s + 4096 * (i % 2) + 16 * t, static_cast<const uint4 *>(p.q) + (t + i) % 256);
        if (i == 1) {
            COPIES_ARRIVE(.shared::cta, b);
            ARRIVE(b);
        } else {
            COPIES_ARRIVE(.noinc.shared::cta, b);
        }
        WAIT(b, i % 2);
        EXPECT(AT(1024 * (i % 2) + 4 * ((t + 1) % 256)) == static_cast<const int *>(p.q)[4 * ((t + 1 + i) % 256)]);
    }
}

CASE(matrices_by_generic_addresses)
{
    unsigned r = t;
    if (t < 32) {
        asm volatile("stmatrix.sync.aligned.m8n8.x1.b16 [%0], {%1};" ::"l"(s_b + t % 8 * 16), "r"(r) : "memory");
        __syncwarp();
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.b16 {%0}, [%1];" : "=r"(r) : "l"(s_b + t % 8 * 16) : "memory");
        EXPECT(r == t);
    }
}

READY_CASE(load_then_store)
{
    if (t == 0 && blockIdx.x == 0) {
        FETCH_BOX(s, &p.k_map, b, 8);
        WAIT(b, 0);
        STORE_AND_WAIT(&p.v_map, s, 24);
        const unsigned short *o_g = static_cast<const unsigned short *>(p.o) + 2048;
        EXPECT(o_g[24 * 64 + 5] == static_cast<const unsigned short *>(p.q)[8 * 64 + 5]);
    }
}

READY_CASE(reductions_of_a_box)
{
    fill(s_b, BOX_BYTES, t);
    if (t == 0 && blockIdx.x == 0) {
        for (int i = 0; i < 2; i++) {
            ADD_BOX(&p.v_map, s, 16);
            COMMIT_AND_WAIT();
        }
        EXPECT(static_cast<const unsigned short *>(p.o)[2048 + 16 * 64 + 9] == 0x4000);
    }
}

CASE(prefetches_and_hints)
{
    const u64 policy = 0x1000000000000000ull; /* of createpolicy: evict_normal */
    make_barriers(b, t, 1);
    if (t == 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(&p.k_map) : "memory");
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(p.q), "r"(512) : "memory");
        asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %1, %1, %1}];" ::"l"(&p.k_map), "r"(0)
                     : "memory");
        EXPECT_BYTES(b, BOX_BYTES);
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
                     "[%0], [%1, {%3, %3, %3, %3}], [%2], %4;" ::"r"(s),
                     "l"(&p.k_map), "r"(b), "r"(0), "l"(policy)
                     : "memory");
    }
    WAIT(b, 0);
    EXPECT(reinterpret_cast<const unsigned short *>(s_b)[5] == static_cast<const unsigned short *>(p.q)[5]);
}

CASE(half_of_the_threads_drop_out)
{
    make_barriers(b, t, THREADS);
    if (t >= 128)
        asm volatile("{.reg .b64 x; mbarrier.arrive_drop.shared::cta.b64 x, [%0];}" ::"r"(b) : "memory");
    for (int i = 0; i < 3 && t < 128; i++) {
        ARRIVE(b);
        WAIT(b, i % 2);
    }
}

READY_CASE(generic_writes_then_a_copy)
{
    fill(s_b, 1024, t);
    if (t == 0)
        FETCH(s, p.q, 1024, b);
    WAIT(b, 0);
    __syncthreads();
    s_b[t] = 1;
}

/* The matrices of products are there: A, and B twice. */
#define MATRICES_CASE(name) CASE_BETWEEN(name, fill(s_b, A_BYTES + 2 * B_BYTES, t), (void)0)

MATRICES_CASE(products_in_a_chain)
{
    float d[4] = {0, 0, 0, 0};
    if (t < 128) {
        for (int i = 0; i < 3; i++) {
            WG_FENCE();
            for (int k = 0; k < 4; k++)
                PRODUCT(d, s + 32 * k, s + A_BYTES + 32 * k);
            WG_FINISH();
            for (int k = 0; k < 4; k++)
                d[k] *= 0.5f;
        }
        EXPECT(d[0] == 56.0f && d[3] == 56.0f);
    }
}

MATRICES_CASE(two_groups_under_way)
{
    float d[4] = {0, 0, 0, 0}, e[4] = {0, 0, 0, 0};
    if (t < 128) {
        MULTIPLY(d, s, s + A_BYTES);
        PRODUCT(e, s, s + A_BYTES + B_BYTES);
        WG_COMMIT();
        WG_WAIT(1);
        EXPECT(d[0] == 16.0f);
        asm volatile("bar.sync 1, 128;" ::: "memory");
        reinterpret_cast<unsigned *>(s_b + A_BYTES)[t] = 0;
        WG_WAIT(0);
        EXPECT(e[1] == 16.0f);
    }
}

MATRICES_CASE(product_of_a_in_registers)
{
    float d[4] = {0, 0, 0, 0};
    unsigned a[4] = {0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u};
    if (t >= 128) {
        for (int i = 0; i < 2; i++) {
            WG_FENCE();
            PRODUCT_RS(d, a, s + A_BYTES);
            WG_FINISH();
            for (int k = 0; k < 4; k++)
                a[k] = 0;
        }
        EXPECT(d[0] == 16.0f);
    }
}

/* Statements that name a product's registers and leave them alone; one that changes them after the wait. */
MATRICES_CASE(registers_in_other_statements)
{
    float d[4] = {0, 0, 0, 0};
    if (t >= 128) {
        asm volatile("mul.f32 %0, %0, 0f3f000000;" : "+f"(d[2]));
        asm volatile("wgmma.fence.sync.aligned;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
        PRODUCT(d, s, s + A_BYTES);
        asm volatile("wgmma.commit_group.sync.aligned;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
        asm volatile("mul.f32 %0, %0, 0f3f000000;" : "+f"(d[2]));
        EXPECT(d[0] == d[0] && d[2] == d[2]);
    }
}

/* Thread 128 fills the stage behind A whenever barrier b + 8 has freed it; it completes on b. */
__device__ __forceinline__ void load_four_boxes(const fa_params &p, unsigned s, unsigned b, int t)
{
    if (t == 128)
        for (int i = 0; i < 4; i++) {
            WAIT(b + 8, (i + 1) % 2);
            FETCH_BOX(s + A_BYTES, &p.k_map, b, 8 * i);
        }
}

CASE(stage_of_a_product)
{
    float d[4] = {0, 0, 0, 0};
    make_barriers(b, t, 1, 4);
    fill(s_b, A_BYTES, t);
    load_four_boxes(p, s, b, t);
    if (t < 128)
        for (int i = 0; i < 4; i++) {
            WAIT(b, i % 2);
            MULTIPLY_AND_WAIT(d, s, s + A_BYTES);
            if (t % 32 == 0)
                ARRIVE(b + 8);
        }
}

/* A product is the warpgroup's: when one thread has waited for it, no warp reads its matrices any more. */
CASE(stage_freed_by_one_thread)
{
    float d[4] = {0, 0, 0, 0};
    make_barriers(b, t, 1);
    fill(s_b, A_BYTES, t);
    load_four_boxes(p, s, b, t);
    if (t < 128) {
        for (int i = 0; i < 4; i++) {
            WAIT(b, i % 2);
            MULTIPLY_AND_WAIT(d, s, s + A_BYTES);
            if (t == 32 * i)
                ARRIVE(b + 8);
        }
        float *d_s = reinterpret_cast<float *>(s_b + 16384);
        d_s[t] = d[0];
        asm volatile("bar.sync 1, 128;" ::: "memory");
        EXPECT(d_s[t % 4] == d[0] && d[0] != 0); /* every row of A is the same */
    }
}

/* Each warp comes to its products when the one before it may have ended its own. */
MATRICES_CASE(warps_come_apart)
{
    float d[4] = {0, 0, 0, 0}, e[4] = {0, 0, 0, 0};
    if (t < 128) {
        MULTIPLY(d, s, s + A_BYTES);
        if (t < 64)
            WG_WAIT(0);
        MULTIPLY(e, s, s + A_BYTES + B_BYTES);
        if (t >= 64)
            WG_WAIT(1);
        EXPECT(d[0] == 16.0f);
        WG_WAIT(0);
        if (t == 96)
            s_b[A_BYTES + 5] = 0;
        EXPECT(e[1] == 16.0f);
    }
}

CASE(many_accumulators_under_way)
{
    float d[20][4];
    for (int i = 0; i < 80; i++)
        d[i / 4][i % 4] = 1.0f;
    fill(s_b, A_BYTES + B_BYTES, t);
    if (t < 128) {
        WG_FENCE();
        for (int i = 0; i < 20; i++)
            PRODUCT(d[i], s, s + A_BYTES);
        WG_FINISH();
        for (int i = 0; i < 20; i++)
            EXPECT(d[i][1] == 17.0f);
    }
}

/* ptxas gives 256 threads 232 registers each at launch: the smaller of the two numbers. */
#define HANDED_CASE(name, most)   \
    CASE(name)                    \
    {                             \
        if (t < 128) {            \
            REGISTERS(dec, 40);   \
        } else {                  \
            REGISTERS(inc, most); \
        }                         \
    }

HANDED_CASE(registers_of_a_smaller_launch, 232)
HANDED_CASE(registers_change_hands, 256)

HOPPER_KERNEL
