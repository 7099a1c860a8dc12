/* FlashAttention 3, forward, as its flash_attn_func runs it: one split, its own rule for packed heads.
 *     make -C examples/library fa3 FA3_DIR=.../flash-attention [CUTLASS_DIR=.../cutlass] */
#include <cstdio>

#include "flash_fwd_launch_template.h"
#include "heuristics.h"

#include "dims.cuh"
#include "fa_library.h"

enum { SEMAPHORE_BYTES = 256 };

static Flash_fwd_params params_of(const fa_params &p)
{
    Flash_fwd_params of = {};
    of.q_ptr = (void *)p.q, of.k_ptr = (void *)p.k, of.v_ptr = (void *)p.v, of.o_ptr = p.o;
    of.q_batch_stride = p.q_stride_b, of.q_head_stride = p.q_stride_h, of.q_row_stride = p.q_stride_s;
    of.k_batch_stride = p.k_stride_b, of.k_head_stride = p.k_stride_h, of.k_row_stride = p.k_stride_s;
    of.v_batch_stride = p.v_stride_b, of.v_head_stride = p.v_stride_h, of.v_row_stride = p.v_stride_s;
    of.o_batch_stride = p.o_stride_b, of.o_head_stride = p.o_stride_h, of.o_row_stride = p.o_stride_s;
    of.v_dim_stride = 1;
    of.b = of.b_k = p.batch, of.h = p.heads, of.h_k = p.kv_heads;
    of.seqlen_q = p.seq_q, of.seqlen_k = p.seq_kv;
    of.d = of.dv = of.d_rounded = of.dv_rounded = p.dim;
    of.scale_softmax = p.scale;
    of.p_dropout = of.rp_dropout = 1, of.p_dropout_in_uint8_t = 255;
    of.is_bf16 = p.dtype == FA_DTYPE_BF16;
    of.is_causal = p.causal != 0;
    of.window_size_left = p.seq_kv - 1, of.window_size_right = p.causal ? 0 : p.seq_q - 1;
    of.num_splits = 1;
    of.arch = 90, of.num_sm = p.sm_count;
    of.tile_count_semaphore = (int *)p.workspace;
    of.softmax_lse_ptr = (char *)p.workspace + SEMAPHORE_BYTES;
    return of;
}

template <class Element, int DIM>
static void run(const fa_params &p, cudaStream_t stream)
{
    Flash_fwd_params of = params_of(p);
    const int rows = std::get<0>(tile_size_fwd_sm90(DIM, DIM, of.is_causal, false));
    of.pack_gqa = p.heads != p.kv_heads && should_pack_gqa(false, p.seq_q, p.heads / p.kv_heads, rows);
    if (of.pack_gqa)
        run_mha_fwd_<90, Element, DIM, DIM, false, false, false, true>(of, stream);
    else
        run_mha_fwd_<90, Element, DIM, DIM, false, false, false, false>(of, stream);
}

void fa_library_info(const fa_library_question *question, fa_library_answer *answer)
{
    const fa_params *p = question->problem;
    answer->abi = FA_LIBRARY_ABI;
    answer->serves_bf16 = 1;
    answer->workspace_bytes = SEMAPHORE_BYTES + (fa_i64)4 * p->batch * p->heads * p->seq_q;
    snprintf(answer->name, sizeof answer->name, "FlashAttention 3");
    snprintf(answer->version, sizeof answer->version, "%s", FA3_VERSION);
    if (question->arch != 90)
        snprintf(answer->refusal, sizeof answer->refusal, "needs sm_90");
    else if (!is_built_for(p->dim))
        snprintf(answer->refusal, sizeof answer->refusal, "not built for head dimension %d (DIMS)", p->dim);
    else if (question->alignment_bytes < 16)
        snprintf(answer->refusal, sizeof answer->refusal, "needs tensors aligned to 16 bytes");
}

const char *fa_forward(const fa_params *params, void *stream)
{
    return by_type_and_dim(*params, [&]<class Element, int DIM>() -> const char * {
        cudaError_t code = cudaMemsetAsync(params->workspace, 0, SEMAPHORE_BYTES, (cudaStream_t)stream);
        run<Element, DIM>(*params, (cudaStream_t)stream);
        code = code == cudaSuccess ? cudaGetLastError() : code;
        return code == cudaSuccess ? nullptr : cudaGetErrorString(code);
    });
}
