/* Structs that calls take and return by value, and copies of a constant size: g++ makes no access of its own of them.
 * Each form writes a place and reads a neighbour's; MEET() stands between. FORM keeps both on one line. */
#include "race.cuh"
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#define FORM(name, write, read)        \
    CASE(name)                         \
    {                                  \
        write;                         \
        MEET();                        \
        EXPECT((int)(read) != 0x4242); \
        MEET();                        \
    }
#define OF(T) (reinterpret_cast<T *>(s))
#define BITS(T) (*reinterpret_cast<const unsigned short *>(OF(T) + (t ^ 64)))

struct pair {
    float a, b;
};
struct many {
    float a[5];
};
__device__ __noinline__ pair pair_of(float x) { return {x, x}; }
__device__ __noinline__ float sum_of(pair x) { return x.a + x.b; }
__device__ __attribute__((noinline)) many many_of(float x) { return {{x, x, x, x, x}}; }
__device__ __attribute__((noinline)) float last_of(many x) { return x.a[4]; }
__device__ float last_copied(const many *from)
{
    many copy;
    memcpy(&copy, from, sizeof copy);
    return copy.a[4];
}
__device__ pair pair_below(int n, float x)
{
    if (n == 0)
        return {x, x};
    const pair p = pair_below(n - 1, x);
    return {p.a + 1, p.b};
}
__device__ float sum_below(int n, pair x) { return n == 0 ? x.a : sum_below(n - 1, {x.a, x.b + 1}) + x.b; }

FORM(half_of_a_float, OF(half)[t] = __float2half(1.0f), BITS(half))
FORM(half_converted, OF(half)[t] = (half)1.0f, BITS(half))
FORM(half2_of_floats, OF(half2)[t] = __floats2half2_rn(1.0f, 1.0f), BITS(half2))
FORM(half2_of_a_float2, OF(half2)[t] = __float22half2_rn(make_float2(1.0f, 1.0f)), BITS(half2))
FORM(half_sum, OF(half)[t] = __hadd(half(1.0f), half(p.scale)), BITS(half))
FORM(half_of_a_shuffle, OF(half)[t] = __shfl_xor_sync(~0u, half(t), 1), BITS(half))
FORM(bf16_of_a_float, OF(__nv_bfloat16)[t] = __float2bfloat16(1.0f), BITS(__nv_bfloat16))
FORM(bf162_of_floats, OF(__nv_bfloat162)[t] = __floats2bfloat162_rn(1.0f, 1.0f), BITS(__nv_bfloat162))
FORM(fp8_of_a_float, OF(__nv_fp8x2_e4m3)[t] = __nv_fp8x2_e4m3(make_float2(1.0f, 1.0f)), BITS(__nv_fp8x2_e4m3))
FORM(half_as_an_argument, OF(short)[t] = 0, __half2float(OF(half)[t ^ 64]))
FORM(halves_as_arguments, OF(short)[t] = 0, (float)__hadd(OF(half)[t ^ 64], OF(half)[t ^ 64]))
FORM(bf16_as_an_argument, OF(short)[t] = 0, __bfloat162float(OF(__nv_bfloat16)[t ^ 64]))
FORM(pair_of_a_function, OF(pair)[t] = pair_of(p.scale), s[2 * (t ^ 64)])
FORM(pair_as_an_argument, (s[2 * t] = s[2 * t + 1] = 0), sum_of(OF(pair)[t ^ 64]))
FORM(large_result, OF(many)[t] = many_of(p.scale), s[5 * (t ^ 64) + 2])
FORM(large_argument, OF(many)[t].a[4] = 0, last_of(OF(many)[t ^ 64]))
FORM(pair_of_a_recursion, OF(pair)[t] = pair_below(blockDim.x / 32, 1.0f), s[2 * (t ^ 64)])
FORM(pair_into_a_recursion, (s[2 * t] = s[2 * t + 1] = 0), sum_below(blockDim.x / 32, OF(pair)[t ^ 64]))
FORM(
    pair_of_a_lambda, OF(pair)[t] = [=](float x) { return pair_of(p.scale + x); }(1.0f), s[2 * (t ^ 64)])
FORM(set_to_a_constant_size, memset(OF(many) + t, 0, sizeof(many)), s[5 * (t ^ 64) + 2])
FORM(copied_in_a_constant_size, memcpy(OF(many) + t, p.q, sizeof(many)), s[5 * (t ^ 64) + 2])
FORM(copied_from_a_constant_size, s[5 * t + 4] = 0, last_copied(OF(many) + (t ^ 64)))
FORM(half_changed_in_place, OF(half)[t] += half(p.scale), BITS(half))

/* Calls that stay calls: through a table of functions, a virtual function; in place, too. */
#define FORM_OF_A_CALL FORM
__device__ pair (*const volatile makers[])(float) = {pair_of, [](float x) { return pair{x, 0}; }};
__device__ float (*const volatile users[])(pair) = {sum_of, [](pair x) { return x.b; }};
struct maker {
    __device__ virtual pair make(float x) const { return {x, x}; }
    __device__ virtual float use(pair x) const { return x.a; }
};
struct other_maker : maker {
    __device__ pair make(float x) const override { return {x, -x}; }
    __device__ float use(pair x) const override { return x.b; }
};
__device__ __noinline__ const maker &some_maker(int blocks)
{
    static const maker one;
    static const other_maker other;
    return blocks > 1 ? one : other;
}
FORM_OF_A_CALL(pair_of_a_table, OF(pair)[t] = makers[t % 2](p.scale), s[2 * (t ^ 64)])
FORM_OF_A_CALL(pair_into_a_table, (s[2 * t] = s[2 * t + 1] = 0), users[t % 2](OF(pair)[t ^ 64]))
FORM_OF_A_CALL(pair_in_place, const pair old = OF(pair)[t]; OF(pair)[t] = makers[t % 2](old.a), s[2 * (t ^ 64)])
FORM_OF_A_CALL(pair_of_a_virtual, OF(pair)[t] = some_maker(gridDim.x).make(p.scale), s[2 * (t ^ 64)])
FORM_OF_A_CALL(pair_into_a_virtual, (s[2 * t] = s[2 * t + 1] = 0), some_maker(gridDim.x).use(OF(pair)[t ^ 64]))

RACE_KERNEL
