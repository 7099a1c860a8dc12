// The usual way to wrap a kernel: its __global__ functions become device functions that ours calls. Its blocks are
// numbered otherwise: blockIdx is a macro while it is read.
#define SMEM_BYTES 1024
#pragma push_macro("__global__")
#undef __global__
#define __global__ __device__
#define blockIdx (uint3{0, ::blockIdx.x, 0})
#include "theirs.cuh"
#undef blockIdx
#pragma pop_macro("__global__")

#include "ordinary.cuh"

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    __shared__ float in[THREADS], out[THREADS];
    bool good = true;
    in[threadIdx.x] = (float)(threadIdx.x ^ 21);
    __syncthreads();
    their_kernel<THREADS>(in, out, blockIdx.x);
    __syncthreads();
    EXPECT(out[threadIdx.x ^ 1] == 63.0f);
    attend(p, good);
}
