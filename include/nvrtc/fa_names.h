/* Names that nvcc knows without an include, for a user's file under NVRTC: included before it. */
#ifndef FA_NVRTC_NAMES_H
#define FA_NVRTC_NAMES_H

#include <cuda/std/cstdint>
#if __has_include(<cuda_device_runtime_api.h>)
#include <cuda_device_runtime_api.h> // cudaGridDependencySynchronize and its like
#endif

/* From the C library's <sys/types.h>. */
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef long ssize_t;

/* "using namespace std" of a file names this namespace instead; fa_std.h adds to it. */
namespace fa_std_names
{
}

#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define NAN __builtin_bit_cast(float, 0x7fffffff)
#define HUGE_VALF __builtin_bit_cast(float, 0x7f800000)
#endif
#ifndef INT_MAX
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#endif
#ifndef M_PI
#define M_PI 3.14159265358979323846
#define M_SQRT2 1.41421356237309504880
#define M_LOG2E 1.44269504088896340736
#define M_LN2 0.69314718055994530942
#define M_E 2.71828182845904523536
#define M_LOG10E 0.43429448190325182765
#define M_LN10 2.30258509299404568402
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT1_2 0.70710678118654752440
#endif

#endif
