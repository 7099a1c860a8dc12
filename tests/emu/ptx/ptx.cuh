/* Conformance of inline PTX: kernels check instructions against plain arithmetic and write a GPU's words. */
#include "../conform/conform.cuh"

__device__ __forceinline__ unsigned shared_of(const void *p_s)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p_s));
}

/* A number per thread and step, of any size. */
__device__ __forceinline__ unsigned mixed(unsigned i) { return (i + 1) * 2654435761u ^ i << 7; }
