// WMMA: every shape of half, bfloat16 and 8-bit integers with 16 columns of A, and m16n16k8 of tf32.
#include "ordinary.cuh"

#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;

/* T: as a fragment names it; Held: in memory. A is M x K by rows, B K x N by columns. */
template <typename T, int M, int N, int K, typename Acc, typename Held>
static __device__ bool product(Held *a_s, Held *b_s, Acc *c_s)
{
    for (int i = threadIdx.x; i < M * K; i += THREADS)
        a_s[i] = Held(float((i * 7 + i / K) % 11));
    for (int i = threadIdx.x; i < K * N; i += THREADS)
        b_s[i] = Held(float((i * 5 + i / K) % 7));
    for (int i = threadIdx.x; i < M * N; i += THREADS)
        c_s[i] = Acc(float(i % 13));
    __syncthreads();
    if (threadIdx.x < 32) {
        wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> a;
        wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::col_major> b;
        wmma::fragment<wmma::accumulator, M, N, K, Acc> c, d;
        wmma::load_matrix_sync(a, a_s, K);
        wmma::load_matrix_sync(b, b_s, K);
        wmma::load_matrix_sync(c, c_s, M, wmma::mem_col_major);
        wmma::mma_sync(d, a, b, c);
        for (int i = 0; i < d.num_elements; i++)
            d.x[i] = d.x[i] + c.x[i];
        __syncwarp();
        wmma::store_matrix_sync(c_s, d, N, wmma::mem_row_major);
    }
    __syncthreads();
    bool good = true;
    for (int i = threadIdx.x; i < M * N; i += THREADS) {
        float sum = 2.0f * ((i % N * M + i / N) % 13);
        for (int k = 0; k < K; k++)
            sum += float(a_s[i / N * K + k]) * float(b_s[i % N * K + k]);
        good = good && float(c_s[i]) == float(Acc(sum));
    }
    __syncthreads();
    return good;
}

template <typename T, typename Acc, typename Held>
static __device__ bool shapes(Held *a_s, Held *b_s, Acc *c_s)
{
    return product<T, 16, 16, 16>(a_s, b_s, c_s) && product<T, 32, 8, 16>(a_s, b_s, c_s) &&
           product<T, 8, 32, 16>(a_s, b_s, c_s);
}

CHECKS()
{
    __shared__ alignas(32) float a[512], b[512], c[256];

    EXPECT(shapes<half>((half *)a, (half *)b, c));
    EXPECT(shapes<half>((half *)a, (half *)b, (half *)c));
    EXPECT(shapes<__nv_bfloat16>((__nv_bfloat16 *)a, (__nv_bfloat16 *)b, c));
    EXPECT(shapes<signed char>((signed char *)a, (signed char *)b, (int *)c));
    EXPECT(shapes<unsigned char>((unsigned char *)a, (unsigned char *)b, (int *)c));
    EXPECT((product<wmma::precision::tf32, 16, 16, 8>(a, b, c)));
    EXPECT(wmma::__float_to_tf32(1.0f + 0x1p-11f) == 1.0f + 0x1p-10f);
}
