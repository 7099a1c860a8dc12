// __device__ and __constant__ variables, initialised and not; printf, assert.
#include <cassert>
#include <cstdio>

#include "ordinary.cuh"

__constant__ float table[4] = {1.0f, 2.0f, 4.0f, 8.0f};
__constant__ int limits[2]; // nobody writes them: zero
static __device__ const float scales[] = {0.5f, 0.25f};
__device__ int counter = 3;
constexpr int WIDTH = 4;

extern "C" __global__ void __launch_bounds__(THREADS, 1) fa_kernel(const __grid_constant__ fa_params p)
{
    bool good = true;
    float sum = 0;
    for (int i = 0; i < WIDTH; i++)
        sum += table[i];
    EXPECT(sum == 15.0f && limits[1] == 0 && scales[1] == 0.25f && atomicAdd(&counter, 0) == 3);
    assert(good && "the table");
    if (!good)
        printf("thread %d: %f\n", threadIdx.x, sum);
    attend(p, good);
}
