/* Rounding of conversions and arithmetic on halves; integer intrinsics. Words only: the GPU is the judge. */
#include "conform.cuh"

FA_KERNEL_INFO(.threads = 256, .smem_dynamic_bytes = 0);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    if (blockIdx.x > 0)
        return;
    for (int i = threadIdx.x; i < 1024; i += 256) {
        const unsigned r = (i + 1) * 2654435761u;
        /* exponents around the half range, subnormals and overflow included */
        const float f = __uint_as_float((r & 0x807fffffu) | (100 + i % 45) << 23);
        const __half x = __ushort_as_half(r >> 16 & 0xbfff), y = __ushort_as_half(r & 0xbfff),
                     z = __float2half_rn(f * 0.001f);
        put(p, i, half_bits(__float2half_rn(f)) | half_bits(__float2half_rz(f)) << 16);
        put(p, 1024 + i, half_bits(__float2half_rd(f)) | half_bits(__float2half_ru(f)) << 16);
        put(p, 2048 + i, half_bits(__hadd(x, y)) | half_bits(__hmul(x, y)) << 16);
        put(p, 3072 + i, half_bits(__hfma(x, y, z)) | half_bits(__hsub(x, z)) << 16);
        put(p, 4096 + i, __float_as_uint(__half2float(x) + fmaf(f, 1.5f, -__half2float(y))));
        put(p, 5120 + i, __popc(r) | __clz(static_cast<int>(r >> i % 32)) << 8 | __ffs(static_cast<int>(r)) << 16);
        put(p, 6144 + i, __brev(r) ^ __byte_perm(r, ~r, 0x3170 + i % 8) ^ __umulhi(r, r * 3));
        const __half2 a = __halves2half2(x, z), b = __halves2half2(z, y);
        const __half2 m = __hmax2(__hmul2(a, b), __hfma2(a, b, b));
        EXPECT(half_bits(__low2half(m)) == half_bits(__hmax(__hmul(x, z), __hfma(x, z, z))));
        EXPECT(__hgt(x, y) == (__half2float(x) > __half2float(y)));
        EXPECT(pack_half2(f, -f) == (half_bits(__float2half_rn(f)) | half_bits(__float2half_rn(-f)) << 16));
    }
    EXPECT(exp2_approx(3.0f) == 8.0f && exp2_approx(-INF) == 0.0f);
    EXPECT(fabsf(__expf(1.0f) - 2.7182818f) < 1e-5f && fabsf(rsqrtf(4.0f) - 0.5f) < 1e-6f);
    EXPECT(fmaxf(__int_as_float(0x7fffffff), 1.0f) == 1.0f);
    EXPECT(min(3, 5) == 3 && max(3u, 5u) == 5u && max(-1.5f, 2.0f) == 2.0f);
    EXPECT(__float2int_rn(2.5f) == 2 && __float2int_rz(-2.7f) == -2);
}
