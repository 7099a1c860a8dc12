/* Wrong in one way each: stores, proxies, products of warpgroups, registers, named barriers. Marks as in bad.cu. */
#define SET_UP set_up
#include "hopper.cuh"

/* Barriers of one arrival each; a product's matrices of 1.0, and as much again of B, visible to the async proxy. */
__device__ void set_up(unsigned char *s_b, unsigned b, int t)
{
    make_barriers(b, t, 1);
    fill(s_b, A_BYTES + 2 * B_BYTES, t);
}

#define COPY_OUT_BY_0() \
    if (t == 0)         \
    COPY_OUT_AND_WAIT(static_cast<unsigned *>(p.o) + 64, s, 1024)

/* Stores: PTX ISA, "cp.async.bulk.commit_group", "wait_group" */

ONE_CASE(store_left, STORE(&p.v_map, s, 0); COMMIT())               /* HERE bulk copy left */
ONE_CASE(store_not_committed, STORE(&p.v_map, s, 0); WAIT_GROUP(0)) /* HERE bulk copy left */

CASE(store_waited_for_by_another)
{
    if (t == 0) {
        STORE(&p.v_map, s, 0); /* HERE bulk copy left */
        COMMIT();
    }
    if (t == 1)
        WAIT_GROUP(0);
}

SINGLE_CASE(one_group_too_few)
{
    STORE(&p.v_map, s, 0);
    COMMIT();
    STORE(&p.v_map, s + 1024, 8); /* HERE bulk copy left */
    COMMIT();
    WAIT_GROUP(1);
}

SINGLE_CASE(tile_reused)
{
    STORE(&p.v_map, s, 0);
    COMMIT();
    s_b[5] = 1; /* HERE data race */
    WAIT_GROUP(0);
}

CASE(tile_reused_by_another)
{
    if (t == 0 && blockIdx.x == 0) {
        STORE(&p.v_map, s, 0);
        COMMIT();
        WAIT_READ(0);
    }
    s_b[t] = 1; /* HERE data race */
}

SINGLE_CASE(read_back_before_it_is_written)
{
    COPY_OUT(static_cast<unsigned *>(p.o) + 64, s, 1024);
    COMMIT();
    WAIT_READ(0);
    USE(static_cast<unsigned *>(p.o)[70]); /* HERE data race */
}

CASE(two_blocks_store_to_one_place) { COPY_OUT_BY_0(); /* HERE data race */ }

/* Proxies: PTX ISA, "Memory Consistency Model: Proxies" */

/* Every thread writes a byte, with lines before and behind, and thread 0 copies it out. */
#define BYTES_CASE(name, before, behind) \
    CASE(name)                           \
    {                                    \
        before;                          \
        s_b[t] = 1;                      \
        behind;                          \
        __syncthreads();                 \
        COPY_OUT_BY_0();                 \
    }

BYTES_CASE(store_without_a_fence, , )                         /* HERE missing proxy fence */
BYTES_CASE(fence_before_the_store, FENCE_ASYNC(), )           /* HERE missing proxy fence */
BYTES_CASE(memory_fence_for_a_proxy_fence, , __threadfence()) /* HERE missing proxy fence */
BYTES_CASE(fence_of_another_space, , FENCE_GLOBAL())          /* HERE missing proxy fence */

CASE(fence_by_the_wrong_thread)
{
    s_b[t] = 1; /* HERE missing proxy fence */
    __syncthreads();
    if (t == 0) {
        FENCE_ASYNC();
        COPY_OUT_AND_WAIT(static_cast<unsigned *>(p.o) + 64, s, 1024); /* HERE missing proxy fence */
    }
}

/* Every thread writes a part of a product's B. */
#define MATRIX_CASE(name, written)                \
    CASE(name)                                    \
    {                                             \
        float d[4] = {0, 0, 0, 0};                \
        written;                                  \
        __syncthreads();                          \
        if (t < 128)                              \
            MULTIPLY_AND_WAIT(d, s, s + A_BYTES); \
    }
#define ASYNC_4(to, from_g) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;" ::"r"(to), "l"(from_g) : "memory")

MATRIX_CASE(product_of_memory_without_a_fence, s_b[A_BYTES + t] = 0)              /* HERE missing proxy fence */
MATRIX_CASE(copied_by_threads_without_a_fence, ASYNC_4(s + A_BYTES + 4 * t, p.q)) /* HERE missing proxy fence */

/* Products: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions" */

/* Of the first warpgroup, which waits for all its products at the end. */
#define PRODUCT_CASE(name)                                                                                           \
    __device__ __forceinline__ void name##_body(const fa_params &p, unsigned s, unsigned char *s_b, int t, float *d, \
                                                unsigned *a);                                                        \
    CASE(name)                                                                                                       \
    {                                                                                                                \
        float d[4] = {0, 0, 0, 0};                                                                                   \
        unsigned a[4] = {0, 0, 0, 0};                                                                                \
        if (t < 128) {                                                                                               \
            name##_body(p, s, s_b, t, d, a);                                                                         \
            WG_FINISH();                                                                                             \
        }                                                                                                            \
        (void)b;                                                                                                     \
    }                                                                                                                \
    __device__ __forceinline__ void name##_body(const fa_params &p, unsigned s, unsigned char *s_b, int t, float *d, \
                                                unsigned *a)

PRODUCT_CASE(no_fence_at_all) { PRODUCT(d, s, s + A_BYTES); /* HERE missing wgmma.fence */ }

/* Statements between the last fence and a product */
#define UNFENCED_CASE(name, statements) \
    PRODUCT_CASE(name)                  \
    {                                   \
        statements;                     \
        PRODUCT(d, s, s + A_BYTES);     \
    }
/* A register of a product in a statement of its own */
#define HALVE(x) asm volatile("mul.f32 %0, %0, 0f3f000000;" : "+f"(x))
#define SET_ONE(x) asm volatile("mov.f32 %0, 0f3f800000;" : "=f"(x))
#define MOVE(to, from) asm volatile("mov.b32 %0, %1;" : "=r"(to) : "r"(from))

UNFENCED_CASE(written_after_the_fence, WG_FENCE(); d[1] = t)                      /* HERE missing wgmma.fence */
UNFENCED_CASE(scaled_between, MULTIPLY_AND_WAIT(d, s, s + A_BYTES); d[2] *= 0.5f) /* HERE missing wgmma.fence */
UNFENCED_CASE(scaled_by_asm, WG_FENCE(); HALVE(d[2]))                             /* HERE missing wgmma.fence */

PRODUCT_CASE(a_packed_after_the_fence)
{
    WG_FENCE();
    a[3] = t;                      /* HERE missing wgmma.fence */
    PRODUCT_RS(d, a, s + A_BYTES); /* HERE missing wgmma.fence */
}

/* A statement of every thread while a product runs */
#define RUNNING_CASE(name, statement) \
    PRODUCT_CASE(name)                \
    {                                 \
        MULTIPLY(d, s, s + A_BYTES);  \
        statement;                    \
    }

RUNNING_CASE(accumulator_read_before_the_wait, USE(d[0]))   /* HERE register of a product under way */
RUNNING_CASE(accumulator_written_before_the_wait, d[0] = 0) /* HERE register of a product under way */
RUNNING_CASE(accumulator_written_by_asm, SET_ONE(d[0]))     /* HERE register of a product under way */
RUNNING_CASE(wait_leaves_the_group, WG_WAIT(1); USE(d[0]))  /* HERE register of a product under way */

PRODUCT_CASE(wait_without_a_commit)
{
    WG_FENCE();
    PRODUCT(d, s, s + A_BYTES);
    WG_WAIT(0);
    USE(d[0]); /* HERE register of a product under way */
}

/* A statement that packs A while it is read */
#define PACKED_CASE(name, statement)   \
    PRODUCT_CASE(name)                 \
    {                                  \
        WG_FENCE();                    \
        PRODUCT_RS(d, a, s + A_BYTES); \
        WG_COMMIT();                   \
        statement;                     \
        WG_WAIT(0);                    \
        USE(a[2]);                     \
    }

PACKED_CASE(a_packed_before_the_wait, a[2] = t) /* HERE register of a product under way */
PACKED_CASE(a_packed_by_asm, MOVE(a[2], t))     /* HERE register of a product under way */

CASE(product_left)
{
    float d[4] = {0, 0, 0, 0};
    if (t < 128)
        MULTIPLY(d, s, s + A_BYTES); /* HERE wgmma left */
}

PRODUCT_CASE(matrix_written_before_the_wait)
{
    MULTIPLY(d, s, s + A_BYTES); /* HERE data race */
    if (t == 5)
        s_b[A_BYTES + 3] = 0; /* HERE data race */
}

PRODUCT_CASE(matrix_freed_with_a_group_under_way)
{
    float e[4] = {0, 0, 0, 0};
    MULTIPLY(d, s, s + A_BYTES);
    PRODUCT(e, s, s + A_BYTES);
    WG_COMMIT();
    WG_WAIT(1);
    s_b[A_BYTES + t] = 0; /* HERE data race */
    WG_WAIT(0);
}

PRODUCT_CASE(warps_differ)
{
    MULTIPLY_AND_WAIT(d, s, s + A_BYTES + (t == 64 || t / 32 == 2 ? 0 : 32)); /* HERE bad wgmma */
}

PRODUCT_CASE(lanes_differ) { MULTIPLY_AND_WAIT(d, s, s + A_BYTES + t % 2 * 32); /* HERE bad wgmma */ }

PRODUCT_CASE(half_a_warp)
{
    WG_FENCE();
    if (t % 32 < 16)
        PRODUCT(d, s, s + A_BYTES); /* HERE partial warp */
}

CASE(a_warp_is_missing)
{
    float d[4] = {0, 0, 0, 0};
    if (t < 96) {
        MULTIPLY(d, s, s + A_BYTES);
        WG_WAIT(0); /* HERE deadlock */
    }
}

PRODUCT_CASE(matrix_outside) { MULTIPLY_AND_WAIT(d, s, s + 32768); /* HERE illegal address */ }

PRODUCT_CASE(two_shapes_on_one_accumulator)
{
    float e[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    WG_FENCE();
    PRODUCT(e, s, s + A_BYTES);
    asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; " /* HERE bad wgmma */
                 "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, 1, 0, 0;}"
                 : "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3]), "+f"(e[4]), "+f"(e[5]), "+f"(e[6]), "+f"(e[7])
                 : "l"(descriptor(s)), "l"(descriptor(s)));
    WG_FINISH();
}

CASE(product_before_its_matrix_has_come)
{
    float d[4] = {0, 0, 0, 0};
    if (t == 128) {
        FETCH_BOX(s + A_BYTES, &p.k_map, b, 0); /* HERE data race */
        WAIT(b, 0);
    }
    if (t < 128)
        MULTIPLY_AND_WAIT(d, s, s + A_BYTES); /* HERE data race */
}

CASE(stage_freed_before_the_wait)
{
    float d[4] = {0, 0, 0, 0};
    if (t == 128) {
        FETCH_BOX(s + A_BYTES, &p.k_map, b, 0);
        WAIT(b + 8, 0);
        FETCH_BOX(s + A_BYTES, &p.k_map, b, 8); /* HERE data race */
        WAIT(b, 1);
    }
    if (t < 128) {
        WAIT(b, 0);
        MULTIPLY(d, s, s + A_BYTES); /* HERE data race */
        if (t == 0)
            ARRIVE(b + 8);
        WG_WAIT(0);
    }
}

PRODUCT_CASE(warps_commit_different_groups)
{
    WG_FENCE();
    PRODUCT(d, s, s + A_BYTES);
    if (t < 32 || t >= 64)
        WG_COMMIT();
    PRODUCT(d, s, s + A_BYTES);
    WG_COMMIT();
    WG_WAIT(0); /* HERE bad wgmma */
}

CASE(wait_for_a_warp_that_waits)
{
    float d[4] = {0, 0, 0, 0};
    if (t >= 96 && t < 128)
        WAIT(b, 0); /* HERE deadlock */
    if (t < 128) {
        MULTIPLY(d, s, s + A_BYTES);
        WG_WAIT(0); /* HERE deadlock */
        if (t == 0)
            ARRIVE(b);
    }
}

/* PTX ISA, "setmaxnreg", "barrier" */

EVERY_CASE(pool_cannot_serve, REGISTERS(inc, 256))                   /* HERE deadlock */
EVERY_CASE(odd_number_of_registers, REGISTERS(dec, 44))              /* HERE bad setmaxnreg */
EVERY_CASE(dec_that_is_more, REGISTERS(dec, 40); REGISTERS(dec, 48)) /* HERE bad setmaxnreg */

GROUP_CASE(inc_that_is_less, REGISTERS(inc, 240); REGISTERS(inc, 232)) /* HERE bad setmaxnreg */
WARP_CASE(one_warp_of_a_warpgroup, REGISTERS(dec, 40))                 /* NO LINE bad setmaxnreg */

EVERY_CASE(two_counts_of_a_named_barrier, NAMED_SYNC(1, t < 32 ? 64 : 256)) /* HERE bad barrier */

EVERY_CASE(one_lane_comes, if (t == 0 || t / 32 == 1) NAMED_SYNC(1, 64)) /* HERE deadlock; HERE divergent barrier */

HOPPER_KERNEL
