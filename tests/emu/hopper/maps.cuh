/* Tensor maps that a kernel changes. Each block has a map in global memory, g, and one in shared memory, at byte
 * MAP_PLACE (its address: MAP), which begins as a copy of k_map. */
#define SET_UP(s_b, b, t)                                                                                   \
    make_barriers(b, t, 1);                                                                                 \
    if (t < 32)                                                                                             \
        reinterpret_cast<unsigned *>(s_b + MAP_PLACE)[t] = reinterpret_cast<const unsigned *>(&p.k_map)[t]; \
    __syncthreads();
#include "hopper.cuh"

constexpr int MAP_PLACE = 16384;
#define MAP (s + MAP_PLACE)
struct alignas(128) device_map {
    fa_tensor_map map;
};
__device__ device_map maps_g[8];
__device__ int flag_g;
#define g (&maps_g[blockIdx.x].map)

/* Changes the map at an address of the space: shared::cta or global */
#define REPLACE(field, space, map, value)                                                                         \
    asm volatile("tensormap.replace.tile." #field "." #space ".b1024.b32 [%0], %1;" ::"l"((u64)(map)), "r"(value) \
                 : "memory")
#define REPLACE_NUMBER(field, space, map, value)                                                                  \
    asm volatile("tensormap.replace.tile." #field "." #space ".b1024.b32 [%0], %1;" ::"l"((u64)(map)), "n"(value) \
                 : "memory")
#define REPLACE_OF(field, space, map, which, value)                                                                    \
    asm volatile("tensormap.replace.tile." #field "." #space ".b1024.b32 [%0], %1, %2;" ::"l"((u64)(map)), "n"(which), \
                 "r"(value)                                                                                            \
                 : "memory")
#define REPLACE_ADDRESS(space, map, to)                                                                            \
    asm volatile("tensormap.replace.tile.global_address." #space ".b1024.b64 [%0], %1;" ::"l"((u64)(map)), "l"(to) \
                 : "memory")
#define REPLACE_STRIDE(space, map, which, bytes)                                                              \
    asm volatile("tensormap.replace.tile.global_stride." #space ".b1024.b64 [%0], %1, %2;" ::"l"((u64)(map)), \
                 "n"(which), "l"((u64)(bytes))                                                                \
                 : "memory")
#define COPY_MAP(to_g, from, scope)                                                              \
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release." #scope \
                 ".sync.aligned [%0], [%1], 128;" ::"l"(to_g),                                   \
                 "r"(from)                                                                       \
                 : "memory")
#define RELEASE(scope) asm volatile("fence.proxy.tensormap::generic.release." #scope ";" ::: "memory")
#define ACQUIRE(scope, map_g) \
    asm volatile("fence.proxy.tensormap::generic.acquire." #scope " [%0], 128;" ::"l"(map_g) : "memory")

/* Zeros at a shared address become the map of q: 32 rows of 64 halves, boxes of 8 rows, 128-byte swizzle. */
#define MAP_OF_Q(map)                                           \
    do {                                                        \
        REPLACE_ADDRESS(shared::cta, map, p.q);                 \
        REPLACE(rank, shared::cta, map, 1);                     \
        REPLACE_OF(box_dim, shared::cta, map, 0, 64);           \
        REPLACE_OF(box_dim, shared::cta, map, 1, BOX_ROWS);     \
        REPLACE_OF(global_dim, shared::cta, map, 0, 64);        \
        REPLACE_OF(global_dim, shared::cta, map, 1, 32);        \
        REPLACE_STRIDE(shared::cta, map, 0, 128);               \
        REPLACE_OF(element_stride, shared::cta, map, 0, 1);     \
        REPLACE_OF(element_stride, shared::cta, map, 1, 1);     \
        REPLACE_NUMBER(elemtype, shared::cta, map, 6);          \
        REPLACE_NUMBER(interleave_layout, shared::cta, map, 0); \
        REPLACE_NUMBER(swizzle_mode, shared::cta, map, 3);      \
        REPLACE_NUMBER(fill_mode, shared::cta, map, 0);         \
    } while (0)

/* Half (row, column) of the tensor of k_map */
__device__ __forceinline__ int half_of_q(const fa_params &p, int row, int column)
{
    return static_cast<const unsigned short *>(p.q)[row * 64 + column];
}

/* The warp of thread 0 copies the map in shared memory to g and releases it. */
__device__ __forceinline__ void copy_map(unsigned char *s_b, unsigned s, int t)
{
    __syncwarp();
    if (t < 32)
        COPY_MAP(g, MAP, gpu);
}

__device__ __forceinline__ void copy_map_for_all(unsigned char *s_b, unsigned s, int t)
{
    copy_map(s_b, s, t);
    __syncthreads();
}
#define COPIED_CASE(name) CASE_BETWEEN(name, copy_map_for_all(s_b, s, t), (void)0)
#define COPIED_ALONE_CASE(name) CASE_BETWEEN(name, copy_map_for_all(s_b, s, t); if (t != 0) return, (void)0)

/* Rows 8 and on of its tensor come to s, and complete on barrier b. A macro, so that a report names the case's line. */
#define load_box(p, s, b, map) FETCH_BOX(s, map, b, 8)
#define acquire_and_load(p, s, b, map) \
    do {                               \
        ACQUIRE(gpu, map);             \
        load_box(p, s, b, map);        \
    } while (0)

/* All that it takes to load with the map in shared memory. */
#define use_map(p, s_b, s, b, t)          \
    do {                                  \
        copy_map_for_all(s_b, s, t);      \
        if (t == 0) {                     \
            acquire_and_load(p, s, b, g); \
            WAIT(b, 0);                   \
        }                                 \
    } while (0)

/* Thread 0 changes the map in shared memory, and loads with it. */
#define USED_CASE(name, changes)  \
    CASE(name)                    \
    {                             \
        if (t == 0) {             \
            changes;              \
        }                         \
        use_map(p, s_b, s, b, t); \
    }
