/* Conformance of tensor maps that a kernel makes and changes, field by field. The words are those of a GPU. */
#include "maps.cuh"

/* One that no wrong count of bytes keeps for ever. */
#define WAIT_AT_MOST(bar, parity)                      \
    do {                                               \
        unsigned done_ = 0;                            \
        for (int i_ = 0; !done_ && i_ < 1 << 12; i_++) \
            TRY(done_, bar, parity);                   \
        EXPECT(done_);                                 \
    } while (0)

#define LOAD_OF_RANK(rank, to, map, bar, at, ...)                                                                 \
    asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0]," \
                 " [%1, {" at "}], [%2];" ::"r"(to),                                                              \
                 "l"(map), "r"(bar), __VA_ARGS__                                                                  \
                 : "memory")

/* The map in shared memory loads `bytes` of its box at (column, row, row, ...); written as words of load `number`. */
template <int RANK = 2>
__device__ __forceinline__ void load_words(const fa_params &p, unsigned char *s_b, unsigned s, unsigned b, int t,
                                           int column, int row, int bytes, int number)
{
    __syncthreads();
    for (int i = t; i < BOX_BYTES / 4; i += THREADS)
        reinterpret_cast<unsigned *>(s_b)[i] = 0xabababab;
    FENCE_ASYNC();
    copy_map_for_all(s_b, s, t);
    if (t == 0) {
        ACQUIRE(gpu, g);
        EXPECT_BYTES(b, bytes);
        if (RANK == 1)
            LOAD_OF_RANK(1, s, g, b, "%3", "r"(column));
        if (RANK == 2)
            LOAD_2D(s, g, b, column, row);
        if (RANK == 3)
            LOAD_OF_RANK(3, s, g, b, "%3, %4, %4", "r"(column), "r"(row));
        if (RANK == 5)
            LOAD_OF_RANK(5, s, g, b, "%3, %4, %4, %4, %4", "r"(column), "r"(row));
    }
    WAIT_AT_MOST(b, number % 2);
    for (int i = t; i < BOX_BYTES / 4; i += THREADS)
        put(p, 2048 + 256 * number + i, reinterpret_cast<const unsigned *>(s_b)[i]);
    __syncthreads();
}

/* The half at byte `place` of the box, where a swizzle of so many bytes has put it */
__device__ __forceinline__ int swizzled_half(const unsigned char *s_b, int place, int swizzle)
{
    const int moved = place ^ (place >> 7 & (swizzle / 16 - 1)) << 4;
    return *reinterpret_cast<const unsigned short *>(s_b + moved);
}

__device__ __forceinline__ bool is_nan(int half) { return (half & 0x7c00) == 0x7c00 && (half & 0x3ff) != 0; }

/* Dimension `which` of a tensor, and how much of it is in a box */
#define DIMENSION(which, size, box)                             \
    do {                                                        \
        REPLACE_OF(global_dim, shared::cta, MAP, which, size);  \
        REPLACE_OF(box_dim, shared::cta, MAP, which, box);      \
        REPLACE_OF(element_stride, shared::cta, MAP, which, 1); \
    } while (0)
/* And the stride behind it */
#define DIMENSION_BEFORE(which, size, box, stride)       \
    do {                                                 \
        DIMENSION(which, size, box);                     \
        REPLACE_STRIDE(shared::cta, MAP, which, stride); \
    } while (0)

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    THEIR_PLACES;
    const int r = t / 32, c = t % 32;
    make_barriers(b, t, 1);
    if (t < 32)
        reinterpret_cast<unsigned *>(s_b + MAP_PLACE)[t] = 0;
    __syncthreads();

    if (t == 0)
        MAP_OF_Q(MAP);
    load_words(p, s_b, s, b, t, 0, 4, BOX_BYTES, 0);
    EXPECT(swizzled_half(s_b, 128 * r + 2 * c, 128) == half_of_q(p, 4 + r, c));

    if (t == 0) /* rows shorter than the swizzle lie as far apart as whole ones */
        REPLACE_OF(box_dim, shared::cta, MAP, 0, 16);
    load_words(p, s_b, s, b, t, 0, 4, BOX_BYTES / 4, 1);
    EXPECT(c >= 16 || swizzled_half(s_b, 128 * r + 2 * c, 128) == half_of_q(p, 4 + r, c));

    if (t == 0) { /* 64-byte swizzle, from another row on */
        REPLACE_NUMBER(swizzle_mode, shared::cta, MAP, 2);
        REPLACE_OF(box_dim, shared::cta, MAP, 0, 32);
        REPLACE_ADDRESS(shared::cta, MAP, static_cast<const char *>(p.q) + 384);
    }
    load_words(p, s_b, s, b, t, 16, 0, BOX_BYTES / 2, 2);
    EXPECT(swizzled_half(s_b, 64 * r + 2 * c, 64) == half_of_q(p, 3 + r, 16 + c));

    if (t == 0) { /* 32-byte swizzle */
        REPLACE_NUMBER(swizzle_mode, shared::cta, MAP, 1);
        REPLACE_OF(box_dim, shared::cta, MAP, 0, 16);
    }
    load_words(p, s_b, s, b, t, 8, 1, BOX_BYTES / 4, 3);
    EXPECT(c >= 16 || swizzled_half(s_b, 32 * r + 2 * c, 32) == half_of_q(p, 4 + r, 8 + c));

    if (t == 0) { /* no swizzle, a smaller tensor, NaN out of bounds */
        REPLACE_NUMBER(swizzle_mode, shared::cta, MAP, 0);
        REPLACE_OF(box_dim, shared::cta, MAP, 0, 32);
        REPLACE_OF(global_dim, shared::cta, MAP, 0, 20);
        REPLACE_OF(global_dim, shared::cta, MAP, 1, 6);
        REPLACE_NUMBER(fill_mode, shared::cta, MAP, 1);
        REPLACE_ADDRESS(shared::cta, MAP, p.q);
    }
    load_words(p, s_b, s, b, t, 0, 2, BOX_BYTES / 2, 4);
    const int half = reinterpret_cast<const unsigned short *>(s_b)[32 * r + c];
    EXPECT(c < 20 && r < 4 ? half == half_of_q(p, 2 + r, c) : is_nan(half));

    if (t == 0) { /* rows twice as far apart */
        REPLACE_NUMBER(fill_mode, shared::cta, MAP, 0);
        REPLACE_OF(global_dim, shared::cta, MAP, 0, 64);
        REPLACE_OF(global_dim, shared::cta, MAP, 1, 16);
        REPLACE_STRIDE(shared::cta, MAP, 0, 256);
    }
    load_words(p, s_b, s, b, t, 32, 10, BOX_BYTES / 2, 5);
    EXPECT(reinterpret_cast<const unsigned short *>(s_b)[32 * r + c] ==
           (10 + r < 16 ? half_of_q(p, 2 * (10 + r), 32 + c) : 0));

    if (t == 0) { /* every second row of a box of 8 */
        REPLACE_STRIDE(shared::cta, MAP, 0, 128);
        REPLACE_OF(global_dim, shared::cta, MAP, 1, 32);
        REPLACE_OF(element_stride, shared::cta, MAP, 1, 2);
    }
    load_words(p, s_b, s, b, t, 0, 5, BOX_BYTES / 4, 6);
    EXPECT(r >= 4 || reinterpret_cast<const unsigned short *>(s_b)[32 * r + c] == half_of_q(p, 5 + 2 * r, c));

    if (t == 0) { /* elements of 4 bytes */
        REPLACE_OF(element_stride, shared::cta, MAP, 1, 1);
        REPLACE_NUMBER(elemtype, shared::cta, MAP, 2);
        REPLACE_OF(global_dim, shared::cta, MAP, 0, 32);
        REPLACE_OF(box_dim, shared::cta, MAP, 0, 8);
    }
    load_words(p, s_b, s, b, t, 4, 24, BOX_BYTES / 4, 7);
    EXPECT(c >= 16 || reinterpret_cast<const unsigned short *>(s_b)[16 * r + c] == half_of_q(p, 24 + r, 8 + c));

    if (t == 0) { /* one dimension */
        REPLACE(rank, shared::cta, MAP, 0);
        REPLACE_NUMBER(elemtype, shared::cta, MAP, 6);
        REPLACE_OF(global_dim, shared::cta, MAP, 0, 2048);
        REPLACE_OF(box_dim, shared::cta, MAP, 0, 256);
    }
    load_words<1>(p, s_b, s, b, t, 1864, 0, 512, 8);
    EXPECT(reinterpret_cast<const unsigned short *>(s_b)[t] == (1864 + t < 2048 ? half_of_q(p, 0, 1864 + t) : 0));

    if (t == 0) { /* three: 4 planes of 8 rows */
        REPLACE(rank, shared::cta, MAP, 2);
        DIMENSION_BEFORE(0, 64, 32, 128);
        DIMENSION_BEFORE(1, 8, 4, 1024);
        DIMENSION(2, 4, 2);
    }
    load_words<3>(p, s_b, s, b, t, 8, 3, 512, 9);
    EXPECT(reinterpret_cast<const unsigned short *>(s_b)[t] ==
           (r < 4 ? half_of_q(p, 24 + 3 + r % 4, 8 + c) : 0)); /* the second plane is the fifth */

    if (t == 0) { /* five, 4 of each but for 8 elements */
        REPLACE(rank, shared::cta, MAP, 4);
        DIMENSION_BEFORE(0, 8, 8, 16);
        DIMENSION_BEFORE(1, 4, 2, 64);
        DIMENSION_BEFORE(2, 4, 2, 256);
        DIMENSION_BEFORE(3, 4, 2, 1024);
        DIMENSION(4, 4, 2);
    }
    load_words<5>(p, s_b, s, b, t, 0, 2, 256, 10);
    const int row_5 = t / 8,
              at_5 = 8 * (2 + row_5 % 2) + 32 * (2 + row_5 / 2 % 2) + 128 * (2 + row_5 / 4 % 2) + 512 * (2 + row_5 / 8);
    EXPECT(t >= 128 || reinterpret_cast<const unsigned short *>(s_b)[t] == half_of_q(p, 0, at_5 + t % 8));

    if (t == 0)
        MAP_OF_Q(MAP);
    load_words(p, s_b, s, b, t, 0, 30, BOX_BYTES, 11);

    /* reductions of BF16, by a map that is changed where it lies */
    __syncthreads();
    for (int i = t; i < 4 * 32; i += THREADS)
        reinterpret_cast<unsigned *>(s_b)[i] = 0x3f803f80u;
    FENCE_ASYNC();
    __syncthreads();
    if (t == 0 && blockIdx.x == 0) {
        REPLACE_NUMBER(elemtype, global, g, 10);
        REPLACE_OF(box_dim, global, g, 1, 4);
        REPLACE_OF(box_dim, global, g, 0, 16);
        REPLACE_ADDRESS(global, g, static_cast<const char *>(p.o) + 4096);
        RELEASE(gpu);
        ACQUIRE(gpu, g);
        for (int i = 0; i < 2; i++) {
            asm volatile(
                "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2, %2}], [%1];" ::"l"(g),
                "r"(s), "r"(0)
                : "memory");
            COMMIT_AND_WAIT();
        }
        EXPECT(static_cast<const unsigned short *>(p.o)[2048 + 64 + 9] == 0x4000);
    }
}
