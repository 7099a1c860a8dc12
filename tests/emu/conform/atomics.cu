/* Atomics within and between blocks, vector accesses, dynamic and static shared memory. */
#include "conform.cuh"

FA_KERNEL_INFO(.threads = 96, .smem_dynamic_bytes = 64);

/* sums_g: 8 words of the block's own, zero before. */
__device__ void vector_sums(const fa_params &p, float *sums_g, int t)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    const float x = static_cast<float>(t % 3);
    atomicAdd(reinterpret_cast<float4 *>(sums_g), make_float4(1.0f, x, -x, 0.25f));
    const float2 before = atomicAdd(reinterpret_cast<float2 *>(sums_g + 4), make_float2(1.0f, -2.0f));
    EXPECT(before.x >= 0.0f && before.x < 96.0f && before.y <= 0.0f);
    atomicAdd(reinterpret_cast<__half2 *>(sums_g + 6), __floats2half2_rn(1.0f, -0.5f));
    __syncthreads();
    EXPECT(sums_g[0] == 96.0f && sums_g[1] == 96.0f && sums_g[2] == -96.0f && sums_g[3] == 24.0f);
    EXPECT(sums_g[4] == 96.0f && sums_g[5] == -192.0f && __float_as_uint(sums_g[6]) == 0xd2005600);
    if (t < 7)
        put(p, 1024 + t, __float_as_uint(sums_g[t]));
#endif
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(int, s);
    __shared__ int own_s[96];
    unsigned *o_g = static_cast<unsigned *>(p.o);
    const int t = threadIdx.x;
    if (t < 8)
        s[t] = t == 4 ? -1 : 0;
    own_s[95 - t] = t;
    __syncthreads();
    EXPECT(own_s[t] == 95 - t);
    atomicAdd(&s[0], t);
    atomicMax(&s[1], t * 7 % 96);
    atomicOr(&s[2], 1 << t % 32);
    atomicXor(&s[3], t);
    atomicAnd(&s[4], ~(1 << t % 32));
    atomicAdd(reinterpret_cast<float *>(&s[5]), 0.5f);
    EXPECT(atomicCAS(&s[6], -5, 1) == 0);
    atomicExch(&s[7], 77);
    __syncthreads();
    EXPECT(s[0] == 96 * 95 / 2 && s[1] == 95 && s[2] == -1 && s[3] == 0 && s[4] == 0 && s[6] == 0 && s[7] == 77);
    EXPECT(__int_as_float(s[5]) == 48.0f);

    vector_sums(p, reinterpret_cast<float *>(o_g + 512 + blockIdx.x * 16), t);

    /* between blocks: the last to finish sums what the others left */
    if (t == 0) {
        o_g[16 + blockIdx.x] = 1000 + blockIdx.x;
        __threadfence();
        if (atomicAdd(&o_g[15], 1u) == gridDim.x - 1) {
            __threadfence();
            unsigned sum = 0;
            for (unsigned i = 0; i < gridDim.x; i++)
                sum += reinterpret_cast<volatile unsigned *>(o_g)[16 + i];
            EXPECT(sum == 1000 * gridDim.x + gridDim.x * (gridDim.x - 1) / 2);
            o_g[15] = 0;
        }
    }
    if (t < 4) {
        const uint4 four = ld_global_nc_16(static_cast<const uint4 *>(p.q) + t);
        uint4 *to_g = reinterpret_cast<uint4 *>(o_g + 64 + blockIdx.x * 16) + t;
        st_global_16(to_g, four);
        EXPECT((four.x & 0xffff) == half_bits(static_cast<const __half *>(p.q)[t * 8]));
        EXPECT(four.w >> 16 == half_bits(static_cast<const __half *>(p.q)[t * 8 + 7]));
    }
}
