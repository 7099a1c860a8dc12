/* Floating point: roundings, halves and bfloats, minimum and maximum, comparisons, approximate functions. */
#include "ptx.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 0);

#define TWO(name, text) FUNCTION(float, "=f", name, text " %0, %1, %2;", (float a, float b), "f"(a), "f"(b))
#define ONE(name, text) FUNCTION(float, "=f", name, text " %0, %1;", (float a), "f"(a))
#define PAIRS(name, text) \
    FUNCTION(unsigned, "=r", name, text, (unsigned a, unsigned b, unsigned c), "r"(a), "r"(b), "r"(c))
TWO(add_rn, "add.f32")
TWO(add_rz, "add.rz.f32")
TWO(add_rm, "add.rm.f32")
TWO(mul_rp, "mul.rp.f32")
TWO(sub_ftz, "sub.ftz.f32")
TWO(div_rn, "div.rn.f32")
TWO(min_f, "min.f32")
TWO(max_nan, "max.NaN.f32")
ONE(sqrt_rn, "sqrt.rn.f32")
ONE(rcp_rn, "rcp.rn.f32")
ONE(neg_f, "neg.f32")
ONE(abs_f, "abs.f32")
ONE(ex2_f, "ex2.approx.ftz.f32")
ONE(lg2_f, "lg2.approx.f32")
ONE(rsqrt_f, "rsqrt.approx.f32")
ONE(sin_f, "sin.approx.f32")
ONE(tanh_f, "tanh.approx.f32")
PAIRS(half_add, "add.f16x2 %0, %1, %2;")
PAIRS(half_fma, "fma.rn.f16x2 %0, %1, %2, %3;")
PAIRS(half_max, "max.f16x2 %0, %1, %2;")
PAIRS(half_mul, "mul.rn.f16x2 %0, %1, %2;")
PAIRS(bfloat_fma, "fma.rn.bf16x2 %0, %1, %2, %3;")
PAIRS(bfloat_relu, "fma.rn.relu.bf16x2 %0, %1, %2, %3;")
PAIRS(half_set, "set.gt.f16x2.f16x2 %0, %1, %2;")

__device__ double twice(double a, double b)
{
    double d;
    asm("{ .reg .f64 t; mul.rn.f64 t, %1, %2; fma.rz.f64 %0, t, 0.5, %1; }" : "=d"(d) : "d"(a), "d"(b));
    return d;
}

__device__ unsigned compared(float a, float b)
{
    unsigned d;
    asm("{\n\t.reg .pred p, q, r;\n\t"
        "setp.lt.f32 p, %1, %2;\n\tsetp.geu.and.f32 q|r, %1, %2, p;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t@q add.u32 %0, %0, 2;\n\t@r add.u32 %0, %0, 4;\n\t"
        "testp.normal.f32 p, %1;\n\t@p add.u32 %0, %0, 8;\n\t}"
        : "=r"(d)
        : "f"(a), "f"(b));
    return d;
}

/* a float whose exponent is near that of 1, or with `far` any */
__device__ float float_of(unsigned r, bool far)
{
    return __uint_as_float(far ? r : (r & 0x807fffff) | (120 + (r >> 23 & 7)) << 23);
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    if (blockIdx.x > 0)
        return;
    for (unsigned i = threadIdx.x; i < 256; i += 64) {
        const unsigned x = mixed(3 * i), y = mixed(3 * i + 1), z = mixed(3 * i + 2);
        const float a = float_of(x, false), b = float_of(y, false);
        EXPECT(add_rn(a, b) == a + b && neg_f(a) == -a && abs_f(a) == fabsf(a) && min_f(a, b) == fminf(a, b));
        put(p, i, __float_as_uint(add_rz(a, b)) ^ __float_as_uint(add_rm(a, b)) << 1);
        put(p, 256 + i, __float_as_uint(mul_rp(a, b)) ^ __float_as_uint(div_rn(a, b)) << 1);
        put(p, 512 + i, __float_as_uint(sqrt_rn(fabsf(a))) ^ __float_as_uint(rcp_rn(b)) << 1);
        const float tiny = __uint_as_float((x & 0x807fffff) | (1 + i % 2) << 23),
                    other = __uint_as_float((y & 0x807fffff) | 1 << 23);
        put(p, 768 + i, __float_as_uint(sub_ftz(tiny, other)));
        EXPECT(max_nan(a, __uint_as_float(0x7fc00000)) != 0.0f && !(max_nan(a, __uint_as_float(0x7fc00000)) == a));
        put(p, 1024 + i, compared(a, i % 5 == 0 ? __uint_as_float(0x7fc00000) : b));
        /* halves and bfloats of moderate size */
        const unsigned h = (x & 0x83ff83ff) | 0x38003c00 | (x & 0x04000400), k = (y & 0x83ff83ff) | 0x34003800,
                       m = (z & 0x83ff83ff) | 0x3c003400;
        put(p, 1280 + i, half_add(h, k, 0) ^ half_mul(h, k, 0) * 3 ^ half_max(h, k, 0) * 5);
        put(p, 1536 + i, half_fma(h, k, m) ^ half_set(h, k, 0));
        const unsigned u = (x & 0x807f807f) | 0x3f003f80, v = (y & 0x807f807f) | 0x3f803f00,
                       w = (z & 0x807f807f) | 0x3f003f00;
        put(p, 1792 + i, bfloat_fma(u, v, w) ^ bfloat_relu(v, w, u) * 3);
        const unsigned long long bits = __double_as_longlong(twice(a, b));
        put(p, 2048 + i, static_cast<unsigned>(bits) ^ static_cast<unsigned>(bits >> 32));
        EXPECT(fabsf(ex2_f(a) - exp2f(a)) <= 1e-5f * exp2f(a) && fabsf(lg2_f(fabsf(a)) - log2f(fabsf(a))) < 1e-5f);
        EXPECT(fabsf(rsqrt_f(fabsf(a)) * sqrtf(fabsf(a)) - 1) < 1e-5f && fabsf(sin_f(a) - sinf(a)) < 1e-5f);
        EXPECT(fabsf(tanh_f(a) - tanhf(a)) < 2e-3f);
    }
}
