/* Takes it that accumulator element i of lane l is row l/4 + 8*(i/2%2), column l%4*2 + i%2 + 8*(i/4), as on today's
 * GPUs. */
#include "control.cuh"

#include <mma.h>

using namespace nvcuda;

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 1024);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(float, s);
    const int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32)
        s[i] = i;
    __syncwarp();
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::load_matrix_sync(c, s, 16, wmma::mem_row_major);
    for (int i = 0; i < 8; i++)
        EXPECT(c.x[i] == (lane / 4 + i / 2 % 2 * 8) * 16 + lane % 4 * 2 + i % 2 + i / 4 * 8); /* HERE */
}
