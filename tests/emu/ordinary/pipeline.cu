// cuda_pipeline.h.
#include <cuda_pipeline.h>

#include "ordinary.cuh"

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    __shared__ __align__(16) half rows[2][THREADS][8];
    bool good = true;
    const half *k = (const half *)p.k;
    const int at = threadIdx.x % 2 * 8; // 16 halves are there
    __pipeline_memcpy_async(rows[0][threadIdx.x], k + at, 16);
    __pipeline_commit();
    __pipeline_memcpy_async(rows[1][threadIdx.x], k + at, 16, 8); // the last 8 bytes are zeros
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    EXPECT(__half2float(rows[0][threadIdx.x ^ 1][3]) == __half2float(k[(at ^ 8) + 3]));
    __pipeline_wait_prior(0);
    __syncthreads();
    EXPECT(__half2float(rows[1][threadIdx.x ^ 1][3]) == __half2float(k[(at ^ 8) + 3]));
    EXPECT(__half2float(rows[1][threadIdx.x ^ 1][4]) == 0.0f);
    attend(p, good);
}
