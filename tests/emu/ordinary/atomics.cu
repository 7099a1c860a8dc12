// Atomics on all types, with scopes; fences.
#include "ordinary.cuh"

template <typename T>
__device__ T summed(T *place, T value)
{
    if (threadIdx.x == 0)
        *place = T(0);
    __syncthreads();
    atomicAdd(place, value);
    __threadfence_block();
    __syncthreads();
    return *place;
}

CHECKS()
{
    __shared__ int i;
    __shared__ unsigned u;
    __shared__ unsigned long long w;
    __shared__ float f;
    __shared__ double d;
    __shared__ half2 h;
    EXPECT(summed(&i, 2) == 2 * THREADS && summed(&u, 3u) == 3u * THREADS && summed(&w, 5ull) == 5ull * THREADS);
    EXPECT(summed(&f, 0.5f) == 0.5f * THREADS && summed(&d, 0.25) == 0.25 * THREADS);
    if (threadIdx.x == 0) {
        h = __floats2half2_rn(0.0f, 0.0f);
        i = 100;
        u = 0;
        w = 7;
    }
    __syncthreads();
    atomicAdd(&h, __floats2half2_rn(1.0f, 0.5f));
    atomicMin(&i, (int)threadIdx.x);
    atomicMax_block(&u, threadIdx.x);
    atomicAdd_system(&w, 1ull);
    __threadfence();
    __threadfence_system();
    __syncthreads();
    EXPECT(__low2float(h) == THREADS && __high2float(h) == THREADS / 2 && i == 0 && u == THREADS - 1);
    EXPECT(w == 7 + THREADS);
    __syncthreads();
    if (threadIdx.x == 0) {
        EXPECT(atomicCAS(&i, 0, 9) == 0 && atomicExch(&i, 4) == 9 && atomicOr(&u, 64u) == 63u &&
               atomicInc(&u, 200u) == 127u);
        EXPECT(atomicCAS_block(&u, 128u, 5u) == 128u && atomicAnd(&u, 4u) == 5u && atomicXor(&u, 1u) == 4u);
    }
}
