/* A conformance kernel checks a primitive against plain arithmetic in the kernel itself, and writes what it saw: the
 * same words must come from the emulator and from a GPU. o: word 0 counts failures, 1 has the line of one, 16.. the
 * words. q: FA_TEST_HALVES halves, q[i] = (i * 37 % 101 - 50) / 8, to the byte. */
#pragma once

#include "../instructions.cuh"

constexpr int FA_TEST_HALVES = 2048;

__device__ __forceinline__ void expect(const fa_params &p, bool ok, int line)
{
    unsigned *o_g = static_cast<unsigned *>(p.o);
    if (!ok && atomicAdd(&o_g[0], 1u) == 0)
        o_g[1] = line;
}
#define EXPECT(condition) expect(p, (condition), __LINE__)

__device__ __forceinline__ void put(const fa_params &p, int i, unsigned word)
{
    if (blockIdx.x == 0) /* all blocks see the same */
        static_cast<unsigned *>(p.o)[16 + i] = word;
}

/* Small whole numbers: products and sums of them are exact in any order. */
__device__ __forceinline__ int small(int i) { return i * 37 % 13 - 6; }

/* A drawn byte that is a number as E4M3 and as E5M2, of any size; what it is as E4M3. */
__device__ __forceinline__ unsigned drawn_byte(int i)
{
    const unsigned bits = (i + 1) * 2654435761u >> 11 & 0xff;
    return (bits & 0x7c) == 0x7c ? 0 : bits;
}
__device__ __forceinline__ double e4m3_value(unsigned bits)
{
    return 256.0 * __half2float(__ushort_as_half((bits & 0x80) << 8 | (bits & 0x7f) << 7));
}

/* A sum as tensor cores make it of FP8: each addend loses less than 2^-13 of the largest, or of a sum so far. */
struct truncated_sum {
    double exact, largest;
    int addends;
    __device__ __forceinline__ void add(double x)
    {
        exact += x, largest = fmax(largest, fmax(fabs(x), fabs(exact))), ++addends;
    }
    __device__ __forceinline__ bool allows(double sum) const { return fabs(sum - exact) <= addends * largest / 8192; }
};

/* Several cases to a file: a line that begins with CASE(name begins one, and run_case<CASES>() after the last runs the
 * one of a number, between the statements `first` and `last`; the first case has 0. CASES: how many stand above, from
 * the overload with the highest rank (NVRTC has no __COUNTER__). */
template <int n>
struct rank : rank<n - 1> {
};
template <>
struct rank<0> {
};
template <int n>
using counted = char (&)[n + 1];
__device__ counted<0> cases(rank<0>);
#define CASES (int(sizeof(cases(rank<100>()))) - 1)
template <int number>
struct numbered_case;
#define NUMBERED_CASE(name, parameters, first, last, ...) \
    __device__ __noinline__ void name parameters;         \
    template <>                                           \
    struct numbered_case<CASES> {                         \
        static __device__ void run parameters             \
        {                                                 \
            first;                                        \
            name(__VA_ARGS__);                            \
            last;                                         \
        }                                                 \
    };                                                    \
    __device__ counted<CASES + 1> cases(rank<CASES + 1>); \
    __device__ __noinline__ void name parameters
template <int count, typename... T>
__device__ __forceinline__ void run_case(int number, T &...arguments)
{
    if constexpr (count > 0) {
        if (number == count - 1)
            numbered_case<count - 1>::run(arguments...);
        else
            run_case<count - 1>(number, arguments...);
    }
}

/* One of several kernels of a file, with n threads and so many bytes of dynamic shared memory; t: the thread.
 * CONTROL_KERNEL, after the last, runs the one that the macro CONTROL_NAME names. */
#define CONTROL(name, n, bytes)                                             \
    constexpr int control_threads_##name = n, control_bytes_##name = bytes; \
    static __device__ __noinline__ void control_##name(const fa_params &p, int t)
#define CONTROL_PART(prefix, name) prefix##name
#define CONTROL_OF(prefix, name) CONTROL_PART(prefix, name)
#define CONTROL_KERNEL                                                              \
    FA_KERNEL_INFO(.threads = CONTROL_OF(control_threads_, CONTROL_NAME),           \
                   .smem_dynamic_bytes = CONTROL_OF(control_bytes_, CONTROL_NAME)); \
    extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)       \
    {                                                                               \
        CONTROL_OF(control_, CONTROL_NAME)(p, threadIdx.x);                         \
    }

__device__ __forceinline__ unsigned half_bits(__half h) { return __half_as_ushort(h); }
