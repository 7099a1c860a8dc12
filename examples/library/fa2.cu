/* FlashAttention 2, forward, as its flash_attn_func runs it without splits. Its templates ask PyTorch only for two
 * macros, which stand in fa2/c10/cuda/CUDAException.h.
 *     make -C examples/library fa2 FA2_DIR=.../flash-attention [CUTLASS_DIR=.../cutlass] */
#include <cstdio>

#include "flash_fwd_launch_template.h"

#include "dims.cuh"
#include "fa_library.h"

static flash::Flash_fwd_params params_of(const fa_params &p)
{
    flash::Flash_fwd_params of = {};
    of.q_ptr = (void *)p.q, of.k_ptr = (void *)p.k, of.v_ptr = (void *)p.v, of.o_ptr = p.o;
    of.q_batch_stride = p.q_stride_b, of.q_head_stride = p.q_stride_h, of.q_row_stride = p.q_stride_s;
    of.k_batch_stride = p.k_stride_b, of.k_head_stride = p.k_stride_h, of.k_row_stride = p.k_stride_s;
    of.v_batch_stride = p.v_stride_b, of.v_head_stride = p.v_stride_h, of.v_row_stride = p.v_stride_s;
    of.o_batch_stride = p.o_stride_b, of.o_head_stride = p.o_stride_h, of.o_row_stride = p.o_stride_s;
    of.b = p.batch, of.h = p.heads, of.h_k = p.kv_heads, of.h_h_k_ratio = p.heads / p.kv_heads;
    of.seqlen_q = p.seq_q, of.seqlen_k = p.seq_kv;
    of.seqlen_q_rounded = (p.seq_q + 127) / 128 * 128, of.seqlen_k_rounded = (p.seq_kv + 127) / 128 * 128;
    of.d = of.d_rounded = p.dim;
    of.scale_softmax = p.scale, of.scale_softmax_log2 = p.scale * 1.4426950408889634f;
    of.p_dropout = of.rp_dropout = 1, of.p_dropout_in_uint8_t = 255;
    of.scale_softmax_rp_dropout = p.scale;
    of.is_bf16 = p.dtype == FA_DTYPE_BF16, of.is_causal = p.causal != 0;
    of.window_size_left = -1, of.window_size_right = p.causal ? 0 : -1;
    of.is_seqlens_k_cumulative = true;
    of.num_splits = 1;
    of.softmax_lse_ptr = p.workspace;
    return of;
}

template <class Element, int DIM, bool CAUSAL>
static void run(flash::Flash_fwd_params &of, cudaStream_t stream)
{
    using namespace flash;
    if constexpr (DIM == 32)
        run_mha_fwd_hdim32<Element, CAUSAL>(of, stream);
    else if constexpr (DIM == 64)
        run_mha_fwd_hdim64<Element, CAUSAL>(of, stream);
    else if constexpr (DIM == 96)
        run_mha_fwd_hdim96<Element, CAUSAL>(of, stream);
    else if constexpr (DIM == 128)
        run_mha_fwd_hdim128<Element, CAUSAL>(of, stream);
    else if constexpr (DIM == 192)
        run_mha_fwd_hdim192<Element, CAUSAL>(of, stream);
    else
        run_mha_fwd_hdim256<Element, CAUSAL>(of, stream);
}

template <class Element, int DIM>
static void choose(const fa_params &p, cudaStream_t stream)
{
    flash::Flash_fwd_params of = params_of(p);
    if (p.causal && p.seq_q > 1) /* one row sees every key */
        run<Element, DIM, true>(of, stream);
    else
        run<Element, DIM, false>(of, stream);
}

void fa_library_info(const fa_library_question *question, fa_library_answer *answer)
{
    const fa_params *p = question->problem;
    answer->abi = FA_LIBRARY_ABI;
    answer->serves_bf16 = 1;
    answer->workspace_bytes = (fa_i64)4 * p->batch * p->heads * p->seq_q;
    snprintf(answer->name, sizeof answer->name, "FlashAttention 2");
    snprintf(answer->version, sizeof answer->version, "%s", FA2_VERSION);
    if (question->arch < 80)
        snprintf(answer->refusal, sizeof answer->refusal, "needs sm_80 or later");
    else if (!is_built_for(p->dim))
        snprintf(answer->refusal, sizeof answer->refusal, "not built for head dimension %d (DIMS)", p->dim);
    else if (question->alignment_bytes < 16)
        snprintf(answer->refusal, sizeof answer->refusal, "needs tensors aligned to 16 bytes");
    else if (p->heads > 65535 || p->batch > 65535)
        snprintf(answer->refusal, sizeof answer->refusal, "more than 65535 heads or batches");
}

const char *fa_forward(const fa_params *params, void *stream)
{
    return by_type_and_dim(*params, [&]<class Element, int DIM>() -> const char * {
        choose<Element, DIM>(*params, (cudaStream_t)stream);
        const cudaError_t code = cudaGetLastError();
        return code == cudaSuccess ? nullptr : cudaGetErrorString(code);
    });
}
