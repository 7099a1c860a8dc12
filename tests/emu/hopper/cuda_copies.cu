// Bulk copies by the functions of libcu++, completing on a cuda::barrier.
#include <cuda/barrier>

#include "../ordinary/ordinary.cuh"

namespace cde = cuda::device::experimental;
using barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    bool good = true;
    const int t = threadIdx.x;
    const unsigned short *q_g = static_cast<const unsigned short *>(p.q);
    __shared__ alignas(128) unsigned short q[2][256];
    __shared__ barrier full[2];

    if (t == 0) {
        init(&full[0], THREADS);
        init(&full[1], 1);
        cde::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        barrier::arrival_token token;
        if (t == 0) {
            cde::cp_async_bulk_global_to_shared(q[0], q_g + 8 * i, sizeof q[0], full[0]);
            token = cuda::device::barrier_arrive_tx(full[0], 1, sizeof q[0]);
            cuda::device::memcpy_async_tx(q[1], q_g, cuda::aligned_size_t<16>(sizeof q[1]), full[1]);
            (void)cuda::device::barrier_arrive_tx(full[1], 1, sizeof q[1]);
        } else {
            token = full[0].arrive();
        }
        full[0].wait(std::move(token));
        full[1].wait_parity(i % 2);
        EXPECT(q[0][t] == q_g[8 * i + t] && q[1][255 - t] == q_g[255 - t]);
        __syncthreads(); /* the buffers are free */
    }
    attend(p, good);
}
