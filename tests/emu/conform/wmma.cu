/* WMMA m16n16k16: loads of both layouts, products in both accumulators, stores of both layouts, elementwise access. */
#include "conform.cuh"

#include <mma.h>

using namespace nvcuda;

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 8192);

constexpr int LD = 24; /* padded rows */

template <typename L>
struct by_row {
    static constexpr bool value = false;
};
template <>
struct by_row<wmma::row_major> {
    static constexpr bool value = true;
};

template <typename LA, typename LB, typename ACC>
__device__ void product(const fa_params &p, __half *ab_s, ACC *c_s, int lane, int seed)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, LA> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, LB> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, ACC> c, d;
    __half *a_s = ab_s, *b_s = ab_s + 16 * LD;
    for (int i = lane; i < 16 * LD; i += 32) {
        a_s[i] = __float2half_rn(small(seed + i));
        b_s[i] = __float2half_rn(small(seed + 7 * i + 3));
        c_s[i] = static_cast<ACC>(static_cast<float>(small(i)));
    }
    __syncwarp();
    wmma::load_matrix_sync(a, a_s, LD);
    wmma::load_matrix_sync(b, b_s, LD);
    wmma::load_matrix_sync(c, c_s, LD, wmma::mem_col_major);
    wmma::fill_fragment(d, static_cast<ACC>(1.0f));
    for (int i = 0; i < c.num_elements; i++)
        c.x[i] = c.x[i] + d.x[i];
    wmma::mma_sync(d, a, b, c);
    __syncwarp();
    wmma::store_matrix_sync(c_s, d, LD, wmma::mem_row_major);
    __syncwarp();
    constexpr bool a_row = by_row<LA>::value, b_row = by_row<LB>::value;
    for (int i = lane; i < 256; i += 32) {
        const int row = i / 16, col = i % 16;
        int sum = small(col * LD + row) + 1;
        for (int k = 0; k < 16; k++)
            sum += small(seed + (a_row ? row * LD + k : k * LD + row)) *
                   small(seed + 7 * (b_row ? k * LD + col : col * LD + k) + 3);
        EXPECT(static_cast<float>(c_s[row * LD + col]) == sum);
        put(p, (seed - 1) * 256 + i, __float_as_uint(static_cast<float>(c_s[row * LD + col])));
    }
    __syncwarp();
    wmma::store_matrix_sync(c_s, d, LD, wmma::mem_col_major);
    __syncwarp();
    const float there = static_cast<float>(c_s[3 * LD + 5]);
    wmma::store_matrix_sync(c_s + 16 * LD, d, LD, wmma::mem_row_major);
    __syncwarp();
    EXPECT(static_cast<float>(c_s[16 * LD + 5 * LD + 3]) == there);
    __syncwarp();
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, s);
    const int lane = threadIdx.x;
    __half *ab_s = reinterpret_cast<__half *>(s);
    float *c_s = reinterpret_cast<float *>(s + 2 * 16 * LD * 2);
    __half *c16_s = reinterpret_cast<__half *>(c_s);
    product<wmma::row_major, wmma::col_major>(p, ab_s, c_s, lane, 1);
    product<wmma::row_major, wmma::row_major>(p, ab_s, c_s, lane, 2);
    product<wmma::col_major, wmma::row_major>(p, ab_s, c16_s, lane, 3);
    product<wmma::col_major, wmma::col_major>(p, ab_s, c16_s, lane, 4);
}
