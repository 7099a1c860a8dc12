/* The library of examples/library/plain.cu, and what FA_BAD names that a library must not do; tests/library_gpu.sh. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "fa_library.h"

#define fa_forward plain_forward
#include "../../examples/library/plain.cu"
#undef fa_forward

static __global__ void spin(volatile int *flag)
{
    while (*flag == 0)
        continue;
}

static __global__ void touch(int *address) { *address = 1; }

static bool is(const char *what)
{
    const char *bad = getenv("FA_BAD");
    return bad != NULL && strcmp(bad, what) == 0;
}

const char *fa_forward(const fa_params *params, void *stream)
{
    static cudaStream_t own;
    static int *flag;
    fa_params changed = *params;
    if (is("wrong"))
        changed.scale *= 1.02f;
    if (is("crash"))
        raise(SIGSEGV);
    if (is("fault"))
        touch<<<1, 1, 0, (cudaStream_t)stream>>>((int *)64);
    if (is("hang")) {
        if (flag == NULL && (cudaMalloc(&flag, 4) != cudaSuccess || cudaMemset(flag, 0, 4) != cudaSuccess))
            return "no memory";
        spin<<<1, 1, 0, (cudaStream_t)stream>>>(flag);
    }
    if (is("other_stream")) {
        if (own == NULL && cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) != cudaSuccess)
            return "no stream";
        stream = own;
    }
    if (is("allocates")) {
        void *memory = NULL;
        const cudaError_t code = cudaMalloc(&memory, 1 << 20);
        if (code != cudaSuccess)
            return cudaGetErrorString(code);
        cudaFree(memory);
    }
    return plain_forward(&changed, stream);
}
