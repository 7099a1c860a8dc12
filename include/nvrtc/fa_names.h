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
#endif

#endif
