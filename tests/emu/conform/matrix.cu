/* ldmatrix, stmatrix and mma.m16n8k16 against the lane maps of src/emu/core/fragments.h. */
#include "conform.cuh"
#include "../../../src/emu/core/fragments.h"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 4096);

__device__ unsigned pair_at(const __half *s, int row, int col, int row2, int col2)
{
    return half_bits(s[row * 8 + col]) | half_bits(s[row2 * 8 + col2]) << 16;
}

__device__ void loads(const fa_params &p, const __half *s, int lane)
{
    const int i = fa_ldmatrix_to_row(lane), j = fa_ldmatrix_to_col(lane, 0);
    unsigned r4[4], r2[2], r1[1];
    ldmatrix_x4(r4, s + lane * 8);
    for (int m = 0; m < 4; m++)
        EXPECT(r4[m] == pair_at(s + m * 64, i, j, i, j + 1));
    ldmatrix_x4_trans(r4, s + lane * 8);
    for (int m = 0; m < 4; m++)
        EXPECT(r4[m] == pair_at(s + m * 64, j, i, j + 1, i));
    ldmatrix_x2(r2, s + lane % 16 * 8);
    for (int m = 0; m < 2; m++)
        EXPECT(r2[m] == pair_at(s + m * 64, i, j, i, j + 1));
    ldmatrix_x2_trans(r2, s + lane % 16 * 8);
    for (int m = 0; m < 2; m++) {
        EXPECT(r2[m] == pair_at(s + m * 64, j, i, j + 1, i));
        put(p, lane * 2 + m, r2[m]);
    }
    ldmatrix_x1(r1, s + 64 + lane % 8 * 8);
    EXPECT(r1[0] == pair_at(s + 64, i, j, i, j + 1));
    put(p, 256 + lane, r1[0]);
    ldmatrix_x1_trans(r1, s + 192 + lane % 8 * 8);
    EXPECT(r1[0] == pair_at(s + 192, j, i, j + 1, i));
    put(p, 288 + lane, r1[0]);
    put(p, 320 + lane, r4[3]);
}

__device__ void multiply(const fa_params &p, int lane)
{
    unsigned a[4], b[2];
    float d[4];
    for (int r = 0; r < 4; r++) {
        const int row = fa_mma_a_row(lane, r), col = fa_mma_a_col(lane, r, 0);
        a[r] = pack_half2(small(row * 16 + col), small(row * 16 + col + 1));
    }
    for (int r = 0; r < 2; r++) {
        const int k = fa_mma_b_row(lane, r, 0), n = fa_mma_b_col(lane);
        b[r] = pack_half2(small(500 + k * 8 + n), small(500 + (k + 1) * 8 + n));
    }
    unsigned d16[2];
    for (int i = 0; i < 4; i++)
        d[i] = i + lane;
    for (int r = 0; r < 2; r++)
        d16[r] = pack_half2(2 * r + lane, 2 * r + 1 + lane);
    const float c[4] = {d[0], d[1], d[2], d[3]};
    float from[4];
    mma_m16n8k16(d, a, b);
    mma_m16n8k16_from(from, c, a, b);
    mma_m16n8k16_f16(d16, a, b);
    for (int i = 0; i < 4; i++) {
        const int row = fa_mma_c_row(lane, i), col = fa_mma_c_col(lane, i);
        int sum = i + lane;
        for (int k = 0; k < 16; k++)
            sum += small(row * 16 + k) * small(500 + k * 8 + col);
        EXPECT(d[i] == sum);
        EXPECT(from[i] == sum && c[i] == i + lane);
        EXPECT(__half2float(__ushort_as_half(d16[i / 2] >> i % 2 * 16 & 0xffff)) == sum);
        put(p, 64 + lane * 4 + i, __float_as_uint(d[i]));
        put(p, 384 + lane * 2 + i / 2, d16[i / 2]);
    }
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(__half, s);
    const int lane = threadIdx.x;
    for (int i = lane; i < 1024; i += 32)
        s[i] = __float2half_rn(i);
    __syncwarp();
    loads(p, s, lane);
    multiply(p, lane);
    __syncwarp();
#if __CUDA_ARCH__ >= 900
    unsigned r[4];
    for (int m = 0; m < 4; m++)
        r[m] = pack_half2(m * 64 + lane * 2, m * 64 + lane * 2 + 1);
    stmatrix_x4(s + lane * 8, r);
    __syncwarp();
    for (int i = lane; i < 256; i += 32)
        EXPECT(__half2float(s[i]) == i);
#endif
}
