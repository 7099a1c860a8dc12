/* CUTLASS's own attention for Ampere and Ada, example 41_fused_multi_head_attention (what xFormers calls "cutlass"):
 *     make -C examples/library cutlass_ampere CUTLASS_DIR=.../cutlass */
#include <cutlass/cutlass.h>
#include <cutlass/version.h>

#include <cstdio>

#include "kernel_forward.h"

#include "fa_library.h"

/* Tiles as the example chooses them; only the last keeps its sums in memory. */
template <class Element>
using up_to_64 = AttentionKernel<Element, cutlass::arch::Sm80, true, 64, 64, 64, false, false>;
template <class Element>
using up_to_128 = AttentionKernel<Element, cutlass::arch::Sm80, true, 32, 128, 128, false, false>;
template <class Element>
using larger = AttentionKernel<Element, cutlass::arch::Sm80, true, 32, 128, 65536, false, false>;

/* The kernel wants [batch, row, head, dim] for its output: here each head is a batch of one head, rows are packed. */
template <class Kernel>
static const char *run(const fa_params &p, cudaStream_t stream)
{
    typename Kernel::Params of;
    using element = typename Kernel::scalar_t;
    of.query_ptr = (element *)p.q;
    of.key_ptr = (element *)p.k;
    of.value_ptr = (element *)p.v;
    of.output_ptr = (element *)p.o;
    of.output_accum_ptr = Kernel::kNeedsOutputAccumulatorBuffer ? (float *)p.workspace : nullptr;
    of.scale = p.scale;
    of.head_dim = of.head_dim_value = p.dim;
    of.num_queries = p.seq_q;
    of.num_keys = p.seq_kv;
    of.num_heads = 1;
    of.num_batches = p.batch * p.heads;
    of.custom_mask_type = p.causal ? Kernel::CausalFromBottomRight : Kernel::NoCustomMask;
    of.q_strideM = (int32_t)p.q_stride_s;
    of.k_strideM = (int32_t)p.k_stride_s;
    of.v_strideM = (int32_t)p.v_stride_s;
    of.o_strideM = (int32_t)p.o_stride_s;
    of.q_strideB = p.q_stride_h;
    of.k_strideB = p.k_stride_h;
    of.v_strideB = p.v_stride_h;
    if (!Kernel::check_supported(of))
        return "the kernel does not support these tensors";
    const size_t smem = sizeof(typename Kernel::SharedStorage);
    const auto kernel = attention_kernel_batched_impl<Kernel>;
    cudaError_t code = cudaSuccess;
    if (smem > (48 << 10))
        code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)smem);
    if (code == cudaSuccess) {
        kernel<<<of.getBlocksGrid(), of.getThreadsGrid(), smem, stream>>>(of);
        code = cudaGetLastError();
    }
    return code == cudaSuccess ? nullptr : cudaGetErrorString(code);
}

void fa_library_info(const fa_library_question *question, fa_library_answer *answer)
{
    const fa_params *p = question->problem;
    const auto refuse = [&](const char *words) { snprintf(answer->refusal, sizeof answer->refusal, "%s", words); };
    answer->abi = FA_LIBRARY_ABI;
    answer->serves_bf16 = 1;
    answer->workspace_bytes = p->dim > 128 ? (fa_i64)4 * p->batch * p->heads * p->seq_q * p->dim : 0;
    snprintf(answer->name, sizeof answer->name, "CUTLASS Ampere FMHA");
    snprintf(answer->version, sizeof answer->version, "%d.%d.%d", CUTLASS_MAJOR, CUTLASS_MINOR, CUTLASS_PATCH);
    if (question->arch < 80)
        refuse("needs sm_80 or later");
    else if (p->kv_heads != p->heads)
        refuse("no grouped heads");
    else if ((fa_i64)p->batch * p->heads > 65535)
        refuse("more than 65535 heads over all batches");
    else if (p->causal && p->seq_q > p->seq_kv)
        refuse("a causal mask needs as many keys as rows, or more");
    else if (p->o_stride_s != p->dim || p->o_stride_h != p->seq_q * p->dim ||
             p->q_stride_b != p->heads * p->q_stride_h || p->k_stride_b != p->heads * p->k_stride_h ||
             p->v_stride_b != p->heads * p->v_stride_h)
        refuse("needs packed [batch, heads, seq, dim] tensors");
    else if (question->alignment_bytes < 16)
        refuse("needs tensors aligned to 16 bytes");
}

template <class Element>
static const char *choose(const fa_params &p, cudaStream_t stream)
{
    if (p.dim <= 64)
        return run<up_to_64<Element>>(p, stream);
    return p.dim <= 128 ? run<up_to_128<Element>>(p, stream) : run<larger<Element>>(p, stream);
}

const char *fa_forward(const fa_params *params, void *stream)
{
    const cudaStream_t on = (cudaStream_t)stream;
    return params->dtype == FA_DTYPE_BF16 ? choose<cutlass::bfloat16_t>(*params, on)
                                          : choose<cutlass::half_t>(*params, on);
}
