/* Conformance of wgmma: layouts of A and B in shared memory and registers, both majors, every swizzle, FP16, BF16 and
 * FP8, FP16 accumulators, scale and signs. Elements are small whole numbers, so that every sum is exact. E4M3 has drawn
 * ones of any size, too, whose sums are truncated. */
#include "hopper.cuh"

enum { NONE = 0, S128 = 1, S64 = 2, S32 = 3 };

/* Byte offset of element (row, k) of a 16-deep operand of `rows` rows: k-major, or row-major ("transposed"). */
__device__ __forceinline__ int place(int layout, bool transposed, int rows, int row, int k)
{
    const int span = layout == S128 ? 128 : layout == S64 ? 64 : 32;
    int at;
    if (layout == NONE)
        at = transposed ? row / 8 * 256 + k / 8 * 128 + k % 8 * 16 + row % 8 * 2
                        : row / 8 * 128 + k / 8 * rows * 16 + row % 8 * 16 + k % 8 * 2;
    else if (transposed)
        at = row / (span / 2) * 16 * span + k * span + row % (span / 2) * 2;
    else
        at = row * span + k * 2;
    const int mask = layout == S128 ? 7 : layout == S64 ? 3 : layout == S32 ? 1 : 0;
    return at ^ (at >> 7 & mask) << 4;
}

__device__ __forceinline__ u64 describe(int layout, bool transposed, int rows, unsigned address_s)
{
    const int span = layout == S128 ? 128 : layout == S64 ? 64 : 32;
    int leading = 0, stride = 8 * span;
    if (layout == NONE)
        leading = transposed ? 128 : rows * 16, stride = transposed ? 256 : 128;
    else if (transposed)
        leading = 16 * span;
    return (u64)layout << 62 | (u64)(stride >> 4) << 32 | (u64)(leading >> 4) << 16 | (address_s & 0x3ffff) >> 4;
}

__device__ __forceinline__ int value_a(int row, int k) { return small(row * 16 + k); }
__device__ __forceinline__ int value_b(int column, int k) { return small(column * 19 + k * 5 + 3); }
__device__ __forceinline__ int product(int row, int column)
{
    int sum = 0;
    for (int k = 0; k < 16; k++)
        sum += value_a(row, k) * value_b(column, k);
    return sum;
}

__device__ __forceinline__ unsigned short bits_of(int value, bool bf16)
{
    return bf16 ? (unsigned short)(__float_as_uint((float)value) >> 16) : __half_as_ushort(__int2half_rn(value));
}

template <bool BF16>
__device__ void fill_operand(unsigned char *to_s, int layout, bool transposed, int rows, bool is_a, int t)
{
    for (int i = t; i < rows * 16; i += THREADS) {
        const int row = i / 16, k = i % 16;
        *reinterpret_cast<unsigned short *>(to_s + place(layout, transposed, rows, row, k)) =
            bits_of(is_a ? value_a(row, k) : value_b(row, k), BF16);
    }
}

#define SS(types, d, a, b, scale, sa, sb, ta, tb)                                                                 \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %10, 0; wgmma.mma_async.sync.aligned.m64n16k16." types " "        \
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, %11, %12, %13, %14;}"                              \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) \
                 : "l"(a), "l"(b), "r"(scale), "n"(sa), "n"(sb), "n"(ta), "n"(tb))
#define RS(types, d, r, b, scale, tb)                                                                             \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %13, 0; wgmma.mma_async.sync.aligned.m64n16k16." types " "        \
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, %12, p, 1, 1, " #tb ";}"                  \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) \
                 : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(b), "r"(scale))

__device__ __forceinline__ void check(const fa_params &p, const float (&d)[8], int t, int factor, int more, int at)
{
    for (int i = 0; i < 8; i++) {
        const int row = t / 32 * 16 + t % 32 / 4 + 8 * (i / 2 % 2), column = 8 * (i / 4) + 2 * (t % 4) + i % 2;
        EXPECT(d[i] == (float)(factor * product(row, column) + more));
        put(p, at * 1024 + t * 8 + i, __float_as_uint(d[i]));
    }
}

/* Both operands in shared memory, A at s, B at s + 8192. */
template <int LAYOUT, int TA, int TB, bool BF16>
__device__ void shared_operands(const fa_params &p, unsigned char *s_b, unsigned s, int t)
{
    float d[8];
    for (int i = 0; i < 8; i++)
        d[i] = 3.0f;
    fill_operand<BF16>(s_b, LAYOUT, TA, 64, true, t);
    fill_operand<BF16>(s_b + 8192, LAYOUT == S128 && TB ? S32 : LAYOUT, TB, 16, false, t);
    FENCE_ASYNC();
    __syncthreads();
    if (t < 128) {
        const u64 a = describe(LAYOUT, TA, 64, s), b = describe(LAYOUT == S128 && TB ? S32 : LAYOUT, TB, 16, s + 8192);
        WG_FENCE();
        if constexpr (BF16)
            SS("f32.bf16.bf16", d, a, b, 1, 1, 1, TA, TB);
        else
            SS("f32.f16.f16", d, a, b, 1, 1, 1, TA, TB);
        WG_FINISH();
        check(p, d, t, 1, 3, 0);
    }
    __syncthreads();
}

/* A in registers; scale 0, signs, chains, FP16 accumulators. B as shared_operands left it: 128-byte swizzled. */
__device__ void registers_and_signs(const fa_params &p, unsigned s, int t)
{
    unsigned r[4], h[4] = {0, 0, 0, 0};
    float d[8], e[8];
    for (int i = 0; i < 8; i++)
        d[i] = e[i] = 7.0f;
    for (int i = 0; i < 4; i++) {
        const int row = t / 32 * 16 + t % 32 / 4 + 8 * (i % 2), k = i / 2 * 8 + 2 * (t % 4);
        r[i] = bits_of(value_a(row, k), false) | (unsigned)bits_of(value_a(row, k + 1), false) << 16;
    }
    const u64 a = describe(S128, false, 64, s), b = describe(S128, false, 16, s + 8192);
    WG_FENCE();
    RS("f32.f16.f16", d, r, b, 0, 0);
    RS("f32.f16.f16", d, r, b, 1, 0);
    WG_COMMIT();
    SS("f32.f16.f16", e, a, b, 1, -1, 1, 0, 0);
    SS("f32.f16.f16", e, a, b, 1, -1, -1, 0, 0);
    SS("f32.f16.f16", e, a, b, 1, 1, -1, 0, 0);
    asm volatile("{.reg .pred p; setp.ne.b32 p, %6, 0; wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 "
                 "{%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;}"
                 : "+r"(h[0]), "+r"(h[1]), "+r"(h[2]), "+r"(h[3])
                 : "l"(a), "l"(b), "r"(1));
    WG_COMMIT();
    WG_WAIT(1);
    check(p, d, t, 2, 0, 1);
    WG_WAIT(0);
    check(p, e, t, -1, 7, 2);
    for (int i = 0; i < 4; i++) {
        const int row = t / 32 * 16 + t % 32 / 4 + 8 * (i % 2), column = 8 * (i / 2) + 2 * (t % 4);
        const unsigned low = bits_of(product(row, column), false), high = bits_of(product(row, column + 1), false);
        EXPECT(h[i] == (low | high << 16));
    }
}

/* FP8: 32 deep, A in shared memory and in registers. Whole numbers below 8 have one form in both types. */
__device__ __forceinline__ unsigned byte_of(int value, bool e5m2)
{
    const unsigned half = __half_as_ushort(__int2half_rn(value)), rest = half & 0x7fff;
    return half >> 8 & 0x80 | (rest == 0 ? 0 : e5m2 ? rest >> 8 : (rest >> 7) - (8 << 3));
}

template <bool DRAWN>
__device__ __forceinline__ double byte_product(int row, int column, int k)
{
    if (DRAWN)
        return e4m3_value(drawn_byte(row * 32 + k)) * e4m3_value(drawn_byte((64 + column) * 32 + k));
    return value_a(row, k) * value_b(column, k);
}

#define BYTES(types, a_text, b_at, d, ...)                                                                        \
    asm volatile("{.reg .pred p; setp.eq.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n16k32." types              \
                 " {%0, %1, %2, %3, %4, %5, %6, %7}, " a_text ", " b_at ", p, 1, 1;}"                             \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) \
                 : __VA_ARGS__)

template <int LAYOUT, bool DRAWN>
__device__ void bytes(const fa_params &p, unsigned char *s_b, unsigned s, int t)
{
    for (int i = t; i < 80 * 32; i += THREADS) {
        const bool is_a = i < 64 * 32;
        const int row = is_a ? i / 32 : i / 32 - 64, k = i % 32;
        (is_a ? s_b : s_b + 8192)[place(LAYOUT, false, is_a ? 64 : 16, row, k / 2) + k % 2] =
            (unsigned char)(DRAWN ? drawn_byte(i) : byte_of(is_a ? value_a(row, k) : value_b(row, k), !is_a));
    }
    FENCE_ASYNC();
    __syncthreads();
    if (t < 128) {
        float d[8], e[8];
        unsigned r[4] = {0, 0, 0, 0};
        for (int i = 0; i < 8; i++)
            d[i] = e[i] = 3.0f;
        for (int i = 0; i < 16; i++) {
            const int row = t / 32 * 16 + t % 32 / 4 + 8 * (i / 4 % 2), k = i / 8 * 16 + 4 * (t % 4) + i % 4;
            r[i / 4] |= (DRAWN ? drawn_byte(row * 32 + k) : byte_of(value_a(row, k), true)) << 8 * (i % 4);
        }
        const u64 a = describe(LAYOUT, false, 64, s), b = describe(LAYOUT, false, 16, s + 8192);
        WG_FENCE();
        if constexpr (DRAWN) {
            BYTES("f32.e4m3.e4m3", "%8", "%9", d, "l"(a), "l"(b));
            BYTES("f32.e4m3.e4m3", "%8", "%9", d, "l"(a), "l"(b));
            BYTES("f32.e4m3.e4m3", "{%8, %9, %10, %11}", "%12", e, "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(b));
        } else {
            BYTES("f32.e4m3.e5m2", "%8", "%9", d, "l"(a), "l"(b));
            BYTES("f32.e4m3.e5m2", "%8", "%9", d, "l"(a), "l"(b));
            BYTES("f32.e5m2.e5m2", "{%8, %9, %10, %11}", "%12", e, "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(b));
        }
        WG_FINISH();
        for (int i = 0; i < 16; i++) { /* first e, one product, then d, two in a chain */
            const int row = t / 32 * 16 + t % 32 / 4 + 8 * (i / 4 % 2), column = 8 * (i / 8) + 2 * (t % 4) + i / 2 % 2;
            const float got = i % 2 == 0 ? e[i / 2] : d[i / 2];
            truncated_sum sum = {3.0, 3.0, 1};
            for (int k = 0; k < 32 * (1 + i % 2); k++)
                sum.add(byte_product<DRAWN>(row, column, k % 32));
            EXPECT(DRAWN ? sum.allows(got) : got == sum.exact);
            put(p, (DRAWN ? 5 : 3) * 1024 + t * 16 + i, __float_as_uint(got));
        }
    }
    __syncthreads();
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED_ALIGNED(unsigned char, s_b, 1024);
    const unsigned s = (unsigned)__cvta_generic_to_shared(s_b);
    const int t = threadIdx.x;
    shared_operands<NONE, 0, 0, false>(p, s_b, s, t);
    shared_operands<S32, 0, 0, false>(p, s_b, s, t);
    shared_operands<S64, 0, 0, false>(p, s_b, s, t);
    shared_operands<NONE, 1, 1, false>(p, s_b, s, t);
    shared_operands<S32, 1, 1, false>(p, s_b, s, t);
    shared_operands<S64, 1, 0, false>(p, s_b, s, t);
    shared_operands<S128, 1, 1, false>(p, s_b, s, t);
    shared_operands<S32, 0, 1, false>(p, s_b, s, t);
    shared_operands<S128, 0, 0, true>(p, s_b, s, t);
    shared_operands<S32, 1, 1, true>(p, s_b, s, t);
    shared_operands<S128, 0, 0, false>(p, s_b, s, t);
    if (t < 128)
        registers_and_signs(p, s, t);
    __syncthreads();
    bytes<NONE, false>(p, s_b, s, t);
    bytes<S32, false>(p, s_b, s, t);
    bytes<S128, false>(p, s_b, s, t);
    bytes<S128, true>(p, s_b, s, t);
}
