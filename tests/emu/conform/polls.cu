/* Lane 0 of a warp polls memory in one of several ways, and the other lanes wait for it; the last warp answers. */
#include "conform.cuh"

#include <cuda/atomic>

FA_KERNEL_INFO(.threads = 128, .smem_dynamic_bytes = 512);

constexpr int POLLS = 9;

__device__ void poll(int how, int *flag)
{
    unsigned seen = 0;
    switch (how) {
    case 0:
        while (atomicAdd(flag, 0) == 0)
            __nanosleep(20);
        break;
    case 1:
        while (atomicAdd(flag, 0) == 0) {
        }
        break;
    case 2:
        while (atomicCAS(flag, 1, 1) == 0) {
        }
        break;
    case 3:
        while (*(volatile int *)flag == 0) {
        }
        break;
    case 4:
        while (cuda::atomic_ref<int, cuda::thread_scope_block>(*flag).load(cuda::memory_order_acquire) == 0) {
        }
        break;
    case 5:
        cuda::atomic_ref<int, cuda::thread_scope_block>(*flag).wait(0);
        break;
    case 6:
        while (seen == 0)
            asm volatile("ld.acquire.cta.shared.b32 %0, [%1];" : "=r"(seen) : "r"(smem_address(flag)) : "memory");
        break;
    case 7:
        while (seen == 0)
            asm volatile("atom.shared.cta.or.b32 %0, [%1], 0;" : "=r"(seen) : "r"(smem_address(flag)) : "memory");
        break;
    default:
        asm volatile("{ .reg .pred p; .reg .b32 x; AGAIN: ld.volatile.shared.b32 x, [%0]; setp.eq.u32 p, x, 0;\n"
                     "@p bra AGAIN; }" ::"r"(smem_address(flag))
                     : "memory");
    }
    __threadfence_block();
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(int, s);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int how = 0; how < POLLS; how++) {
        int *flag = s + how * 4;
        if (threadIdx.x < 4)
            flag[threadIdx.x] = 0;
        __syncthreads();
        if (warp == 3)
            atomicExch(&flag[2], 1);
        else if (lane == 0)
            poll(how, &flag[warp]);
        const int got = __shfl_sync(~0u, how, 0); /* the other lanes wait in a shuffle, then in __syncwarp */
        if (warp != 3 && warp > 0 && lane == 31)
            atomicExch(&flag[warp - 1], 1); /* warp 3 wakes 2, which wakes 1, which wakes 0 */
        __syncwarp();
        EXPECT(got == how);
        __syncthreads();
        put(p, how * 128 + threadIdx.x, flag[0] + 2 * flag[1] + 4 * flag[2]);
        EXPECT(flag[0] && flag[1] && flag[2]);
    }
}
