/* mma.sync of every dense shape, against sums of products by plain arithmetic: small integers, exact in any order. */
#include "ptx.cuh"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 0);

enum { F16, BF16, TF32, S8, U8, E4M3, E5M2, DRAWN };

/* a[row][k], b[k][col], c[row][col] */
__device__ int a_at(int row, int k) { return small(row * 32 + k); }
__device__ int b_at(int k, int col) { return small(700 + k * 8 + col) % 4; }
__device__ int c_at(int row, int col) { return small(1500 + row * 8 + col) * 3; }

/* An element of that type, its bits. */
__device__ unsigned bits_of(int kind, int value)
{
    const float f = static_cast<float>(value);
    if (kind == F16)
        return half_bits(__float2half_rn(f));
    if (kind == BF16)
        return __float_as_uint(f) >> 16;
    if (kind == TF32)
        return __float_as_uint(f);
    if (kind == S8 || kind == U8)
        return static_cast<unsigned>(value) & 0xff;
    if (kind == DRAWN)
        return drawn_byte(value + 16);
    const unsigned h = half_bits(__float2half_rn(f)); /* five bits of exponent, as E5M2 */
    if (kind == E5M2)
        return h >> 8;
    return value == 0 ? 0 : (h >> 8 & 0x80) | (((h >> 10 & 31) - 8) << 3 & 0x78) | (h >> 7 & 7);
}

__device__ unsigned width_of(int kind) { return kind == TF32 ? 32 : kind == F16 || kind == BF16 ? 16 : 8; }
__device__ int value_of(int kind, int x) { return kind == U8 ? x & 7 : x; }

/* Register r of this lane's part of A (rows x depth) or B. */
__device__ unsigned a_part(int kind, int rows, int lane, int r)
{
    const int width = width_of(kind), e = 32 / width;
    const int row = lane / 4 + (rows == 16 ? r % 2 * 8 : 0), from = (rows == 16 ? r / 2 : r) * 4 * e + lane % 4 * e;
    unsigned bits = 0;
    for (int h = 0; h < e; h++)
        bits |= bits_of(kind, value_of(kind, a_at(row, from + h))) << h * width;
    return bits;
}
__device__ unsigned b_part(int kind, int lane, int r)
{
    const int width = width_of(kind), e = 32 / width;
    unsigned bits = 0;
    for (int h = 0; h < e; h++)
        bits |= bits_of(kind, value_of(kind, b_at(r * 4 * e + lane % 4 * e + h, lane / 4))) << h * width;
    return bits;
}
__device__ int wanted(int kind, int depth, int row, int col)
{
    int sum = c_at(row, col);
    for (int k = 0; k < depth; k++)
        sum += value_of(kind, a_at(row, k)) * value_of(kind, b_at(k, col));
    return sum;
}

/* DRAWN: E4M3 of any size. Ada truncates addends, as the emulator does; Hopper has more bits, and is near alone. */
__device__ bool is_right(int kind, int depth, int row, int col, double sum)
{
    truncated_sum drawn = {1.0 * c_at(row, col), fabs(1.0 * c_at(row, col)), 1};
    for (int k = 0; k < depth; k++)
        drawn.add(e4m3_value(bits_of(DRAWN, a_at(row, k))) * e4m3_value(bits_of(DRAWN, b_at(k, col))));
    return kind == DRAWN ? drawn.allows(sum) : sum == wanted(kind, depth, row, col);
}

#define C_ROW(lane, i) (lane / 4 + i / 2 * 8)
#define C_COL(lane, i) (lane % 4 * 2 + i % 2)

#define D_OUT(letter) letter(d[0]), letter(d[1]), letter(d[2]), letter(d[3])
#define C_IN(letter) letter(c[0]), letter(c[1]), letter(c[2]), letter(c[3])
#define A_2(kind) "r"(a_part(kind, 16, lane, 0)), "r"(a_part(kind, 16, lane, 1))
#define A_4(kind) A_2(kind), "r"(a_part(kind, 16, lane, 2)), "r"(a_part(kind, 16, lane, 3))
#define B_2(kind) "r"(b_part(kind, lane, 0)), "r"(b_part(kind, lane, 1))
#define CHECK_D(kind, depth)    \
    for (int i = 0; i < 4; i++) \
        EXPECT(is_right(kind, depth, C_ROW(lane, i), C_COL(lane, i), d[i]));

/* Products with 4 or 2 registers of A, and 2 or 1 of B; out, in: constraints of the accumulators */
#define MMA_4_2(out, in, text, kind, depth)                                                                      \
    asm volatile("mma.sync.aligned." text " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" \
                 : D_OUT(out)                                                                                    \
                 : A_4(kind), B_2(kind), C_IN(in));                                                              \
    CHECK_D(kind, depth)
#define MMA_2_1(out, in, text, kind, depth)                                                       \
    asm volatile("mma.sync.aligned." text " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" \
                 : D_OUT(out)                                                                     \
                 : A_2(kind), "r"(b_part(kind, lane, 0)), C_IN(in));                              \
    CHECK_D(kind, depth)
#define FLOATS(mma, text, kind, depth, name) \
    mma("=f", "f", text, kind, depth) put(p, 32 * name + lane, __float_as_uint(d[lane % 4]));

__device__ void floats(const fa_params &p, int lane)
{
    float c[4], d[4];
    for (int i = 0; i < 4; i++)
        c[i] = c_at(C_ROW(lane, i), C_COL(lane, i));
    FLOATS(MMA_4_2, "m16n8k16.row.col.f32.f16.f16.f32", F16, 16, 0)
    FLOATS(MMA_2_1, "m16n8k8.row.col.f32.f16.f16.f32", F16, 8, 1)
    FLOATS(MMA_4_2, "m16n8k16.row.col.f32.bf16.bf16.f32", BF16, 16, 2)
    FLOATS(MMA_2_1, "m16n8k8.row.col.f32.bf16.bf16.f32", BF16, 8, 3)
    FLOATS(MMA_4_2, "m16n8k8.row.col.f32.tf32.tf32.f32", TF32, 8, 4)
    FLOATS(MMA_2_1, "m16n8k4.row.col.f32.tf32.tf32.f32", TF32, 4, 5)
#if __CUDA_ARCH__ >= 890
    FLOATS(MMA_4_2, "m16n8k32.row.col.f32.e4m3.e4m3.f32", E4M3, 32, 6)
    FLOATS(MMA_4_2, "m16n8k32.row.col.f32.e5m2.e5m2.f32", E5M2, 32, 7)
    MMA_4_2("=f", "f", "m16n8k32.row.col.f32.e4m3.e4m3.f32", DRAWN, 32)
#endif
}

__device__ void halves(const fa_params &p, int lane)
{
    unsigned c[2], d[2];
    for (int r = 0; r < 2; r++)
        c[r] = bits_of(F16, c_at(C_ROW(lane, 2 * r), C_COL(lane, 0))) |
               bits_of(F16, c_at(C_ROW(lane, 2 * r), C_COL(lane, 1))) << 16;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %9};"
                 : "=r"(d[0]), "=r"(d[1])
                 : A_4(F16), B_2(F16), "r"(c[0]), "r"(c[1]));
    for (int i = 0; i < 4; i++)
        EXPECT((d[i / 2] >> 16 * (i % 2) & 0xffff) == bits_of(F16, wanted(F16, 16, C_ROW(lane, i), C_COL(lane, i))));
    put(p, 256 + lane, d[lane % 2]);
}

__device__ void bytes(const fa_params &p, int lane)
{
    int c[4], d[4];
    for (int i = 0; i < 4; i++)
        c[i] = c_at(C_ROW(lane, i), C_COL(lane, i));
    MMA_4_2("=r", "r", "m16n8k32.row.col.s32.s8.s8.s32", S8, 32)
    put(p, 288 + lane, d[lane % 4]);
    MMA_4_2("=r", "r", "m16n8k32.row.col.satfinite.s32.u8.u8.s32", U8, 32)
    put(p, 320 + lane, d[lane % 4]);
    MMA_2_1("=r", "r", "m16n8k16.row.col.s32.s8.s8.s32", S8, 16)
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%4, %5};"
                 : "=r"(d[0]), "=r"(d[1])
                 : "r"(a_part(S8, 8, lane, 0)), "r"(b_part(S8, lane, 0)), "r"(c[0]), "r"(c[1]));
    for (int i = 0; i < 2; i++)
        EXPECT(d[i] == wanted(S8, 16, lane / 4, C_COL(lane, i)));
}

__device__ void doubles(const fa_params &p, int lane)
{
    double d[2], c[2];
    for (int i = 0; i < 2; i++)
        c[i] = c_at(lane / 4, C_COL(lane, i));
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%4, %5};"
                 : "=d"(d[0]), "=d"(d[1])
                 : "d"(static_cast<double>(a_at(lane / 4, lane % 4))),
                   "d"(static_cast<double>(b_at(lane % 4, lane / 4))), "d"(c[0]), "d"(c[1]));
    for (int i = 0; i < 2; i++)
        EXPECT(d[i] == wanted(F16, 4, lane / 4, C_COL(lane, i)));
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    const int lane = threadIdx.x;
    floats(p, lane);
    halves(p, lane);
    bytes(p, lane);
    doubles(p, lane);
}
