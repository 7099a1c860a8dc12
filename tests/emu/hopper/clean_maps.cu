/* Kernels that are right, each near one of bad_maps.cu: nothing may be reported, in any schedule. */
#include "maps.cuh"

/* As CUDA's programming guide has it. */
CASE(map_from_shared_memory)
{
    if (t == 0)
        REPLACE_ADDRESS(shared::cta, MAP, static_cast<const char *>(p.q) + 128);
    copy_map_for_all(s_b, s, t);
    if (t == 64)
        acquire_and_load(p, s, b, g);
    WAIT(b, 0);
    EXPECT(box_half(s_b, 0, 5) == half_of_q(p, 9, 5));
}

CASE(map_from_zeros)
{
    if (t < 32)
        reinterpret_cast<unsigned *>(s_b + MAP_PLACE)[t] = 0;
    __syncwarp();
    if (t == 0)
        MAP_OF_Q(MAP);
    copy_map_for_all(s_b, s, t);
    if (t == 64) {
        ACQUIRE(sys, g);
        EXPECT_BYTES(b, BOX_BYTES);
        LOAD_2D(s, g, b, 0, 16);
    }
    WAIT(b, 0);
    EXPECT(box_half(s_b, 7, 63) == half_of_q(p, 23, 63));
}

CASE(map_changed_in_global_memory)
{
    if (t == 0) {
        *g = p.k_map;
        REPLACE_ADDRESS(global, g, static_cast<const char *>(p.q) + 256);
        RELEASE(cta);
        ACQUIRE(cta, g);
        load_box(p, s, b, g);
    }
    WAIT(b, 0);
    EXPECT(box_half(s_b, 1, 1) == half_of_q(p, 11, 1));
}

CASE(released_by_one_for_the_warp)
{
    if (t < 32)
        reinterpret_cast<unsigned *>(g)[t] = reinterpret_cast<unsigned *>(s_b + MAP_PLACE)[t];
    __syncwarp();
    if (t == 7)
        RELEASE(cta);
    __syncthreads();
    if (t == 64) {
        ACQUIRE(cta, g);
        load_box(p, s, b, g);
    }
    WAIT(b, 0);
}

COPIED_CASE(acquired_for_the_block)
{
    for (int i = 0; i < 3; i++) {
        if (t >= 32 && t < 64)
            ACQUIRE(cluster, g);
        __syncthreads();
        if (t == 64)
            load_box(p, s, b, g);
        WAIT(b, i % 2);
        USE(AT(t));
    }
}

CASE(changed_for_every_tile)
{
    for (int i = 0; i < 4; i++) {
        if (t == 0)
            REPLACE_ADDRESS(shared::cta, MAP, static_cast<const char *>(p.q) + 128 * i);
        copy_map(s_b, s, t);
        if (t == 0)
            acquire_and_load(p, s, b, g);
        WAIT(b, i % 2);
        EXPECT(box_half(s_b, 0, t % 64) == half_of_q(p, 8 + i, t % 64));
        __syncthreads();
    }
}

CASE(stores_with_a_changing_map)
{
    char *o_g = static_cast<char *>(p.o) + 4096;
    fill(s_b, BOX_BYTES, t);
    for (int i = 0; i < 2; i++) {
        if (t == 0) {
            WAIT_READ(0);
            REPLACE_ADDRESS(shared::cta, MAP, o_g + 2048 * i);
            REPLACE_OF(box_dim, shared::cta, MAP, 1, 2);
        }
        copy_map(s_b, s, t);
        if (t == 0) {
            ACQUIRE(gpu, g);
            STORE(g, s, 4 * blockIdx.x);
            COMMIT();
        }
    }
    if (t == 0)
        WAIT_GROUP(0);
    EXPECT(t > 0 || reinterpret_cast<unsigned short *>(o_g)[1024 + 256 * blockIdx.x + 127] == 0x3c00);
}

/* More releases and acquires than the race detector remembers. */
CASE(many_changes_of_another_map)
{
    fa_tensor_map *next_g = &maps_g[4 + blockIdx.x].map;
    copy_map(s_b, s, t);
    if (t == 0)
        ACQUIRE(gpu, g);
    for (int i = 0; i < 300 && t < 32; i++) {
        COPY_MAP(next_g, MAP, cta);
        ACQUIRE(cta, next_g);
    }
    if (t == 0)
        load_box(p, s, b, g);
    WAIT(b, 0);
}

CASE(handed_to_another_block)
{
    if (blockIdx.x == 0) {
        copy_map(s_b, s, t);
        if (t == 0)
            atomicExch(&flag_g, 1);
    }
    if (blockIdx.x == 1 && t == 0) {
        while (atomicAdd(&flag_g, 0) == 0)
            ;
        acquire_and_load(p, s, b, &maps_g[0].map);
        WAIT(b, 0);
        EXPECT(box_half(s_b, 0, 3) == half_of_q(p, 8, 3));
    }
}

HOPPER_KERNEL
