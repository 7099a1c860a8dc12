/* Conformance of inline PTX: kernels check instructions against plain arithmetic and write a GPU's words. */
#include "../conform/conform.cuh"

__device__ __forceinline__ unsigned shared_of(const void *p_s)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p_s));
}

/* T name parameters: what `text` makes of the inputs that follow; letter: the constraint of its output. */
#define FUNCTION(T, letter, name, text, parameters, ...) \
    __device__ T name parameters                         \
    {                                                    \
        T d;                                             \
        asm(text : letter(d) : __VA_ARGS__);             \
        return d;                                        \
    }

/* A number per thread and step, of any size. */
__device__ __forceinline__ unsigned mixed(unsigned i) { return (i + 1) * 2654435761u ^ i << 7; }
