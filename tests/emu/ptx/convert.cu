/* cvt: every rounding, saturation, packed types; needs sm_89. */
#include "ptx.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 0);

#define FROM_FLOAT(name, text) FUNCTION(unsigned, "=r", name, text, (float a, float b), "f"(a), "f"(b))
FROM_FLOAT(s32_rni, "cvt.rni.s32.f32 %0, %1;")
FROM_FLOAT(s32_rzi, "cvt.rzi.s32.f32 %0, %1;")
FROM_FLOAT(u32_rmi, "cvt.rmi.u32.f32 %0, %1;")
FROM_FLOAT(u32_rpi, "cvt.rpi.u32.f32 %0, %1;")
FROM_FLOAT(half2_rn, "cvt.rn.f16x2.f32 %0, %1, %2;")
FROM_FLOAT(half2_rz, "cvt.rz.f16x2.f32 %0, %1, %2;")
FROM_FLOAT(bfloat2_rn, "cvt.rn.bf16x2.f32 %0, %1, %2;")
FROM_FLOAT(bfloat2_relu, "cvt.rz.relu.bf16x2.f32 %0, %1, %2;")
FROM_FLOAT(tf32, "cvt.rna.tf32.f32 %0, %1;")
FROM_FLOAT(e4m3, "{ .reg .b16 t; cvt.rn.satfinite.e4m3x2.f32 t, %1, %2; cvt.u32.u16 %0, t; }")
FROM_FLOAT(e5m2, "{ .reg .b16 t; cvt.rn.satfinite.e5m2x2.f32 t, %1, %2; cvt.u32.u16 %0, t; }")
FROM_FLOAT(back_e4m3, "{ .reg .b16 t; cvt.rn.satfinite.e4m3x2.f32 t, %1, %2; cvt.rn.f16x2.e4m3x2 %0, t; }")
FROM_FLOAT(back_e5m2, "{ .reg .b16 t; cvt.rn.satfinite.e5m2x2.f32 t, %1, %2; cvt.rn.f16x2.e5m2x2 %0, t; }")

__device__ unsigned one_half(float a)
{
    unsigned short n, z, b;
    asm("cvt.rn.f16.f32 %0, %3;\n\tcvt.rz.f16.f32 %1, %3;\n\tcvt.rn.bf16.f32 %2, %3;"
        : "=h"(n), "=h"(z), "=h"(b)
        : "f"(a));
    return n ^ z << 3 ^ b << 16;
}

__device__ float from_half(unsigned short h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}

__device__ unsigned integers(unsigned a)
{
    unsigned u8, s8, sat;
    float up, down;
    asm("cvt.u32.u8 %0, %5;\n\tcvt.s32.s8 %1, %5;\n\tcvt.sat.u8.s32 %2, %5;\n\tcvt.rp.f32.u32 %3, "
        "%5;\n\tcvt.rm.f32.s32 %4, %5;"
        : "=r"(u8), "=r"(s8), "=r"(sat), "=f"(up), "=f"(down)
        : "r"(a));
    return u8 ^ s8 << 3 ^ sat << 5 ^ __float_as_uint(up) ^ __float_as_uint(down) << 1;
}

__device__ unsigned through_double(float a, long long n)
{
    double d;
    float whole, clipped;
    double back_d;
    asm("cvt.f64.f32 %0, %4;\n\tcvt.rzi.f32.f32 %1, %4;\n\tcvt.sat.f32.f32 %2, %4;\n\tcvt.rn.f64.s64 %3, %5;"
        : "=d"(d), "=f"(whole), "=f"(clipped), "=d"(back_d)
        : "f"(a), "l"(n));
    const unsigned long long back = __double_as_longlong(back_d);
    return static_cast<unsigned>(__double_as_longlong(d) >> 20) ^ __float_as_uint(whole) ^ __float_as_uint(clipped) ^
           static_cast<unsigned>(back) ^ static_cast<unsigned>(back >> 32);
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    if (blockIdx.x > 0)
        return;
    for (unsigned i = threadIdx.x; i < 512; i += 64) {
        const unsigned x = mixed(2 * i), y = mixed(2 * i + 1);
        /* sizes from 2^-20 to 2^18, halves' and small floats' limits among them */
        const float a = __uint_as_float((x & 0x807fffff) | (107 + i % 39) << 23),
                    b = __uint_as_float((y & 0x807fffff) | (117 + i % 20) << 23);
        EXPECT(from_half(half_bits(__float2half_rn(b))) == __half2float(__float2half_rn(b)));
        EXPECT(half2_rn(a, b) == (half_bits(__float2half_rn(a)) << 16 | half_bits(__float2half_rn(b))));
        put(p, i, s32_rni(a, b) ^ s32_rzi(a, b) << 8 ^ u32_rmi(a, b) << 3 ^ u32_rpi(a, b) << 5);
        put(p, 512 + i, half2_rn(a, b) ^ half2_rz(b, a) * 3);
        put(p, 1024 + i, bfloat2_rn(a, b) ^ bfloat2_relu(b, a) * 3);
        put(p, 1536 + i, tf32(a, b));
        put(p, 2048 + i, e4m3(a, b) | e5m2(a, b) << 16);
        put(p, 2560 + i, back_e4m3(a, b) ^ back_e5m2(b, a) * 3);
        put(p, 3072 + i, one_half(a));
        put(p, 3584 + i, integers(x));
        put(p, 4096 + i, through_double(b, static_cast<long long>(x) << 32 | y));
    }
    EXPECT(s32_rzi(__uint_as_float(0x7fc00000), 0) == 0 && s32_rzi(3e9f, 0) == 0x7fffffff && u32_rpi(-5.0f, 0) == 0);
}
