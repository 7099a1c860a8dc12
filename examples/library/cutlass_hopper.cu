/* CUTLASS's own attention for Hopper, example 88_hopper_fmha (ping-pong kernels):
 *     make -C examples/library cutlass_hopper CUTLASS_DIR=.../cutlass */
#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/kernel_hardware_info.h>
#include <cutlass/version.h>

#include <cmath>
#include <cstdio>

#include "collective/fmha_fusion.hpp"
#include "device/device_universal.hpp"
#include "kernel/fmha_kernel_builder.hpp"

#include "dims.cuh"
#include "fa_library.h"

using namespace cutlass::fmha;
using cute::_1;
using stride_qkvo = cute::tuple<int, _1, cute::tuple<int, int>>; /* row, dim, (batch, head) */

template <class Element, int DIM, class Fusion>
static const char *run(const fa_params &p, cudaStream_t stream)
{
    using tile = cute::Shape<cute::_128, cute::Int<DIM == 64 ? 64 : 128>, cute::Int<DIM>>;
    using kernel = typename kernel::FmhaBuilder<Element, float, float, tile, stride_qkvo, stride_qkvo, stride_qkvo,
                                                Fusion, cutlass::gemm::KernelTmaWarpSpecializedPingpong>::Kernel;
    using operation = cutlass::device::Universal<kernel>;
    const auto stride = [](fa_i64 b, fa_i64 h, fa_i64 s) {
        return cute::make_stride((int)s, _1{}, cute::make_stride((int)b, (int)h));
    };
    const auto of = [](const void *tensor) { return (Element *)tensor; };
    cutlass::KernelHardwareInfo hardware;
    hardware.sm_count = p.sm_count;
    typename operation::Arguments arguments{
        cute::make_tuple(p.batch, p.heads, p.seq_q, p.seq_kv, p.dim),
        {of(p.q), stride(p.q_stride_b, p.q_stride_h, p.q_stride_s), of(p.k),
         stride(p.k_stride_b, p.k_stride_h, p.k_stride_s), of(p.v), stride(p.v_stride_b, p.v_stride_h, p.v_stride_s)},
        {of(p.o), stride(p.o_stride_b, p.o_stride_h, p.o_stride_s), (float *)p.workspace,
         cute::make_stride(_1{}, cute::make_stride(p.heads * p.seq_q, p.seq_q))},
        hardware};
    operation op;
    cutlass::Status status = operation::can_implement(arguments);
    if (status == cutlass::Status::kSuccess)
        status = op.run(arguments, nullptr, stream);
    return status == cutlass::Status::kSuccess ? nullptr : cutlass::cutlassGetStatusString(status);
}

template <class Element, int DIM>
static const char *choose(const fa_params &p, cudaStream_t stream)
{
    if (p.causal)
        return run<Element, DIM, collective::CausalFusion>(p, stream);
    if (p.seq_kv % (DIM == 64 ? 64 : 128) != 0)
        return run<Element, DIM, collective::ResidualFusion>(p, stream);
    return run<Element, DIM, collective::DefaultFusion>(p, stream);
}

void fa_library_info(const fa_library_question *question, fa_library_answer *answer)
{
    const fa_params *p = question->problem;
    const auto refuse = [&](const char *words) { snprintf(answer->refusal, sizeof answer->refusal, "%s", words); };
    answer->abi = FA_LIBRARY_ABI;
    answer->serves_bf16 = 1;
    answer->workspace_bytes = (fa_i64)4 * p->batch * p->heads * p->seq_q; /* the log-sum-exp */
    snprintf(answer->name, sizeof answer->name, "CUTLASS Hopper FMHA");
    snprintf(answer->version, sizeof answer->version, "%d.%d.%d", CUTLASS_MAJOR, CUTLASS_MINOR, CUTLASS_PATCH);
    if (question->arch != 90)
        refuse("needs sm_90");
    else if (!is_built_for(p->dim))
        refuse("the head dimension is not one that the library was built for (DIMS)");
    else if (p->kv_heads != p->heads)
        refuse("no grouped heads");
    else if (p->causal && p->seq_q != p->seq_kv)
        refuse("its causal mask is top-left: needs as many keys as rows");
    else if (p->seq_q % 8 != 0 || question->alignment_bytes < 16)
        refuse("rows a multiple of 8, tensors aligned to 16 bytes");
    else if (fabs(p->scale * sqrt((double)p->dim) - 1) > 1e-6)
        refuse("its scale is 1/sqrt(dim)");
}

const char *fa_forward(const fa_params *params, void *stream)
{
    return by_type_and_dim(
        *params, [&]<class Element, int DIM>() { return choose<Element, DIM>(*params, (cudaStream_t)stream); });
}
