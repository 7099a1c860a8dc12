/* The driver's own GPU code, no attention kernel: what blocks a stream, the clock of every SM, what
 * empties the L2, and the kernel that does nothing. Launched by sample.c. */
#include "fa_params.h"

#ifndef FA_EMU

typedef unsigned long long u64;

static __device__ __forceinline__ u64 global_ns()
{
    u64 ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/* The floor of every measurement: a launch with the same parameters that does nothing. <<<1, 32>>> */
extern "C" __global__ void fa_util_empty(const __grid_constant__ fa_params p) {}

/* Holds the stream until the host has queued everything behind it and writes `ticket` to *released_h (mapped memory of
 * the host), or until the time is up: then *late_h says which ticket was not served in time. <<<1, 1>>> */
extern "C" __global__ void fa_util_block(const volatile int *released_h, volatile int *late_h, int ticket,
                                         u64 timeout_ns)
{
    const u64 start_ns = global_ns();
    while (*released_h - ticket < 0)
        if (global_ns() - start_ns > timeout_ns) {
            *late_h = ticket;
            return;
        }
}

/* clocks_h[smid] = {SM clock, nanoseconds}: an SM's mean clock between two snapshots is the quotient of the
 * differences. Several blocks may land on one SM: each writes its whole pair. <<<2 * SMs, 32>>> */
extern "C" __global__ void fa_util_clock(ulonglong2 *clocks_h, unsigned slots)
{
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0 && sm < slots)
        clocks_h[sm] = make_ulonglong2((u64)clock64(), global_ns());
}

/* Fills the L2 with dirty lines of a buffer that no kernel under test uses. */
extern "C" __global__ void fa_util_flush_write(uint4 *buffer_g, u64 count, unsigned value)
{
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x)
        buffer_g[i] = make_uint4(value, value, value, value);
}

/* Reads other lines, so that the dirty ones are written back before the timed launch and not during it. */
extern "C" __global__ void fa_util_flush_read(const uint4 *buffer_g, u64 count, unsigned *sink_g)
{
    unsigned sum = 0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const uint4 line = buffer_g[i];
        sum += line.x ^ line.y ^ line.z ^ line.w;
    }
    if (sum == 0x9e3779b9u) /* practically never: the loads must not be optimised away */
        *sink_g = sum;
}

#endif
