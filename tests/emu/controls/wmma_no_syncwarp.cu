/* What store_matrix_sync wrote is read without a __syncwarp. */
#include "control.cuh"

#include <mma.h>

using namespace nvcuda;

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 1024);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(float, s);
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 1.0f);
    wmma::store_matrix_sync(s, c, 16, wmma::mem_row_major);
    for (int i = 0; i < 8; i++)
        EXPECT(s[i * 32 + threadIdx.x] == 1.0f); /* HERE */
}
