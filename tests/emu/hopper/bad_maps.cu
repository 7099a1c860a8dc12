/* Kernels wrong in one way each: tensor maps that they change. The report must have a class that is marked HERE, with
 * the line of the mark, in every schedule, or in those of ONLY (a d r g: ascending, descending, random, greedy). */
#include "maps.cuh"

/* Handing over: PTX ISA, "tensormap.cp_fenceproxy", "membar/fence" */

CASE(changed_without_a_release)
{
    if (t < 32)
        reinterpret_cast<unsigned *>(g)[t] = reinterpret_cast<unsigned *>(s_b + MAP_PLACE)[t];
    __syncthreads();
    if (t == 64)
        acquire_and_load(p, s, b, g); /* HERE missing proxy fence */
}

/* Thread 64 loads with a map that another one has copied. */
#define LOADED_CASE(name, before) \
    COPIED_CASE(name)             \
    {                             \
        before;                   \
        if (t == 64)              \
            load_box(p, s, b, g); \
    }

LOADED_CASE(changed_without_an_acquire, )                                                 /* HERE missing proxy fence */
LOADED_CASE(another_map_acquired, if (t == 64) ACQUIRE(gpu, &maps_g[4 + blockIdx.x].map)) /* HERE missing proxy fence */
LOADED_CASE(acquired_by_a_thread_that_nobody_waits_for, if (t == 32) ACQUIRE(gpu, g))     /* HERE missing proxy fence */

/* One thread changes the map that it has used and uses it again. */
#define CHANGED_CASE(name, release)      \
    COPIED_ALONE_CASE(name)              \
    {                                    \
        acquire_and_load(p, s, b, g);    \
        WAIT(b, 0);                      \
        REPLACE_ADDRESS(global, g, p.q); \
        release;                         \
        load_box(p, s, b, g);            \
    }

CHANGED_CASE(changed_and_used_by_one_thread, )              /* HERE missing proxy fence */
CHANGED_CASE(released_and_used_by_one_thread, RELEASE(cta)) /* HERE missing proxy fence */

COPIED_ALONE_CASE(released_before_the_change)
{
    RELEASE(gpu);
    REPLACE_ADDRESS(global, g, p.q); /* HERE missing proxy fence */
    acquire_and_load(p, s, b, g);
}

CASE(acquired_before_the_change)
{
    if (t == 64)
        ACQUIRE(gpu, g);
    __syncthreads();
    copy_map_for_all(s_b, s, t);
    if (t == 64)
        load_box(p, s, b, g); /* HERE missing proxy fence */
}

CASE(fence_of_the_async_proxy_instead)
{
    if (t < 32)
        reinterpret_cast<unsigned *>(g)[t] = reinterpret_cast<unsigned *>(s_b + MAP_PLACE)[t];
    FENCE_GLOBAL();
    __syncthreads();
    if (t == 64)
        load_box(p, s, b, g); /* HERE missing proxy fence */
}

CASE(store_with_a_map_not_acquired)
{
    copy_map(s_b, s, t);
    fill(s_b, BOX_BYTES, t);
    if (t == 64)
        STORE_AND_WAIT(g, s, 0); /* HERE missing proxy fence */
}

CASE(released_in_the_block_for_another)
{
    if (blockIdx.x == 0) {
        if (t < 32)
            COPY_MAP(&maps_g[0].map, MAP, cta);
        __syncthreads();
        if (t == 0) {
            __threadfence();
            atomicExch(&flag_g, 1);
        }
    }
    if (blockIdx.x == 1 && t == 0) {
        while (atomicAdd(&flag_g, 0) == 0)
            ;
        __threadfence();
        acquire_and_load(p, s, b, &maps_g[0].map); /* HERE missing proxy fence */
    }
}

CASE(no_barrier_after_the_release)
{
    copy_map(s_b, s, t);
    if (t == 64)
        acquire_and_load(p, s, b, g); /* HERE data race; HERE bad tensor map */
}

CASE(copied_before_the_lanes_have_met)
{
    if (t == 5)
        REPLACE_ADDRESS(shared::cta, MAP, p.q); /* HERE data race */
    if (t < 32)
        COPY_MAP(g, MAP, gpu); /* HERE data race */
}

COPIED_CASE(changed_while_a_load_reads_it)
{
    if (t == 64)
        acquire_and_load(p, s, b, g);
    __syncthreads();
    if (t == 0)
        REPLACE_ADDRESS(global, g, p.q); /* HERE data race */
}

CASE(changed_while_a_store_reads_it)
{
    copy_map(s_b, s, t);
    fill(s_b, BOX_BYTES, t);
    if (t == 0) {
        ACQUIRE(gpu, g);
        STORE(g, s, 0);
        COMMIT();
        REPLACE_ADDRESS(global, g, p.q); /* HERE data race */
        WAIT_GROUP(0);
    }
}

/* Where maps lie: PTX ISA, "Tensor-map", "tensormap.replace" */

ONE_CASE(map_in_shared_memory, load_box(p, s, b, s_b + MAP_PLACE))                          /* HERE bad tensor map */
ONE_CASE(map_not_aligned, load_box(p, s, b, reinterpret_cast<const char *>(&p.k_map) + 32)) /* HERE misaligned */
ONE_CASE(replaced_map_not_aligned, REPLACE_ADDRESS(shared::cta, MAP + 64, p.q))             /* HERE misaligned */
WARP_CASE(copied_map_not_aligned, COPY_MAP(g, MAP + 64, gpu))                               /* HERE misaligned */
ONE_CASE(acquired_map_not_aligned, ACQUIRE(gpu, reinterpret_cast<const char *>(g) + 64))    /* HERE misaligned */
ONE_CASE(acquired_in_shared_memory, ACQUIRE(gpu, s_b + MAP_PLACE))                          /* HERE bad tensor map */

/* What makes its address a multiple of 128 bytes is added. */
#define PARAMETER (reinterpret_cast<const char *>(&p.k_map) + (reinterpret_cast<u64>(&p.k_map) & 64))

ONE_CASE(acquired_among_the_parameters, ACQUIRE(gpu, PARAMETER))                 /* HERE bad tensor map */
ONE_CASE(replaced_among_the_parameters, REPLACE_ADDRESS(global, PARAMETER, p.q)) /* HERE bad tensor map */
ONE_CASE(shared_map_named_global, REPLACE_ADDRESS(global, s_b + MAP_PLACE, p.q)) /* HERE bad tensor map */
WARP_CASE(copied_to_shared_memory, COPY_MAP(s_b + MAP_PLACE + 128, MAP, gpu))    /* HERE bad tensor map */

HALF_WARP_CASE(copied_by_half_a_warp, COPY_MAP(g, MAP, gpu)) /* HERE partial warp */

ONE_CASE(replaced_where_no_map_is, REPLACE_ADDRESS(shared::cta, MAP + 128, p.q)) /* HERE bad tensor map */

#define ACQUIRE_64() asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 64;" ::"l"(g))
ONE_CASE(size_of_an_acquire, ACQUIRE_64()) /* HERE bad tensor map */

CASE(size_of_a_copy)
{
    if (t < 32)
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic" /* HERE bad tensor map */
                     ".release.gpu.sync.aligned [%0], [%1], 256;" ::"l"(g),
                     "r"(MAP));
}

/* Of the map in shared memory */
#define FIELD(field, value) REPLACE_NUMBER(field, shared::cta, MAP, value)

/* Values of fields: PTX ISA, "tensormap.replace"; cuTensorMapEncodeTiled */

ONE_CASE(address_off_16_bytes, REPLACE_ADDRESS(shared::cta, MAP, u64(p.q) + 8))   /* HERE bad tensor map */
ONE_CASE(rank_6, REPLACE(rank, shared::cta, MAP, 5))                              /* HERE bad tensor map */
ONE_CASE(box_of_257, REPLACE_OF(box_dim, shared::cta, MAP, 1, 257))               /* HERE bad tensor map */
ONE_CASE(tensor_of_nothing, REPLACE_OF(global_dim, shared::cta, MAP, 1, 0))       /* HERE bad tensor map */
ONE_CASE(sixth_dimension, REPLACE_OF(global_dim, shared::cta, MAP, 5, 1))         /* HERE bad tensor map */
ONE_CASE(stride_of_24_bytes, REPLACE_STRIDE(shared::cta, MAP, 0, 24))             /* HERE bad tensor map */
ONE_CASE(fifth_stride, REPLACE_STRIDE(shared::cta, MAP, 4, 64))                   /* HERE bad tensor map */
ONE_CASE(element_stride_of_9, REPLACE_OF(element_stride, shared::cta, MAP, 1, 9)) /* HERE bad tensor map */
ONE_CASE(type_13, FIELD(elemtype, 13))                                            /* HERE bad tensor map */
ONE_CASE(swizzle_of_96_bytes, FIELD(swizzle_mode, 4))                             /* HERE bad tensor map */
ONE_CASE(interleave_3, FIELD(interleave_layout, 3))                               /* HERE bad tensor map */
ONE_CASE(fill_2, FIELD(fill_mode, 2))                                             /* HERE bad tensor map */

/* Fields that are right alone, but not together. */

USED_CASE(row_longer_than_the_swizzle, FIELD(swizzle_mode, 2))            /* HERE bad tensor map */
USED_CASE(row_off_16_bytes, REPLACE_OF(box_dim, shared::cta, MAP, 0, 12)) /* HERE bad tensor map */
USED_CASE(rank_of_the_map_changed, REPLACE(rank, shared::cta, MAP, 1))    /* HERE bad tensor map */

USED_CASE(integers_filled_with_nan, FIELD(elemtype, 1); FIELD(fill_mode, 1)) /* HERE bad tensor map */

CASE(fields_not_set)
{
    if (t < 32)
        reinterpret_cast<unsigned *>(s_b + MAP_PLACE)[t] = 0;
    __syncthreads();
    if (t == 0) {
        REPLACE_ADDRESS(shared::cta, MAP, p.q);
        REPLACE(rank, shared::cta, MAP, 3);
        FIELD(elemtype, 6);
    }
    use_map(p, s_b, s, b, t); /* HERE bad tensor map */
}

CASE(reduction_of_bytes)
{
    if (t == 0)
        FIELD(elemtype, 1);
    __syncthreads();
    copy_map(s_b, s, t);
    fill(s_b, BOX_BYTES, t);
    if (t == 0) {
        ACQUIRE(gpu, g);
        ADD_BOX(g, s, 0); /* HERE bad tensor map */
        COMMIT_AND_WAIT();
    }
}

HOPPER_KERNEL
