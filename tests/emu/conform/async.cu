/* cp.async of every size, zero fill, groups waited for one by one. */
#include "conform.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 8192);

__device__ __half q_at(int i) { return __float2half_rn((i * 37 % 101 - 50) / 8.0f); }

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, s);
    __half *h_s = reinterpret_cast<__half *>(s);
    const __half *q_g = static_cast<const __half *>(p.q);
    const int t = threadIdx.x;

    /* 16 bytes, of which 16, 14, ... 0 come from memory */
    const int bytes = 2 * (t % 9);
    cp_async_16(s + t * 16, q_g + t * 8, bytes);
    cp_async_commit();
    cp_async_wait<0>();
    for (int i = 0; i < 8; i++)
        EXPECT(half_bits(h_s[t * 8 + i]) == (i * 2 < bytes ? half_bits(q_at(t * 8 + i)) : 0u));
    __syncthreads();

    /* three groups, the oldest complete first; an empty group counts */
    cp_async_8(s + 1024 + t * 8, q_g + t * 4, 8);
    cp_async_commit();
    cp_async_4(s + 1536 + t * 4, q_g + 512 + t * 2, 4);
    cp_async_commit();
    cp_async_commit();
    cp_async_wait<2>();
    EXPECT(half_bits(h_s[512 + t * 4 + 3]) == half_bits(q_at(t * 4 + 3)));
    cp_async_wait<1>();
    EXPECT(half_bits(h_s[768 + t * 2 + 1]) == half_bits(q_at(512 + t * 2 + 1)));
    cp_async_wait<0>();
    __syncthreads();
    put(p, blockIdx.x * 64 + t, half_bits(h_s[512 + (t ^ 33) * 4]));

    /* double buffer over the rest of q */
    for (int step = 0; step < 4; step++) {
        if (step == 0)
            cp_async_16(s + 4096 + t * 16, q_g + t * 8, 16);
        cp_async_commit();
        if (step < 3)
            cp_async_16(s + 4096 + (step + 1) % 2 * 1024 + t * 16, q_g + (step + 1) * 512 + t * 8, 16);
        cp_async_commit();
        cp_async_wait<1>();
        __syncthreads();
        EXPECT(half_bits(h_s[2048 + step % 2 * 512 + (t ^ 32) * 8]) == half_bits(q_at(step * 512 + (t ^ 32) * 8)));
        __syncthreads();
    }
    cp_async_wait<0>();

    /* a thread may end before its copies are complete */
    cp_async_16(s + 4096 + t * 16, q_g + t * 8, 16);
    cp_async_commit();
    cp_async_16(s + 5120 + t * 16, q_g + t * 8, 16);
}
