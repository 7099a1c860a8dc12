/* FlashAttention 3, forward, as its flash_attn_func runs it with num_splits = 0: its own rules for splits of the keys
 * and for packed heads.
 *     make -C examples/library fa3 FA3_DIR=.../flash-attention [CUTLASS_DIR=.../cutlass] */
#include <cstdio>

#include "flash_fwd_combine_launch_template.h"
#include "flash_fwd_launch_template.h"
#include "heuristics.h"

#include "dims.cuh"
#include "fa_library.h"

enum { SEMAPHORE_BYTES = 256, MAX_SPLITS = 128 };

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
    of.arch = 90, of.num_sm = p.sm_count;
    of.tile_count_semaphore = (int *)p.workspace;
    of.softmax_lse_ptr = (char *)p.workspace + SEMAPHORE_BYTES;
    return of;
}

/* Where packed heads are what splits the keys: tiles of rows x keys, all query heads of a K/V head in the rows. */
static int splits_of(const fa_params &p)
{
    const auto tile = tile_size_fwd_sm90(p.dim, p.dim, p.causal != 0, false);
    const int rows = std::get<0>(tile), keys = std::get<1>(tile), group = p.heads / p.kv_heads;
    const int tiles_m = (p.seq_q * group + rows - 1) / rows, tiles_n = (p.seq_kv + keys - 1) / keys;
    const int head_bytes = p.seq_kv * 2 * p.dim * 2;
    return num_splits_heuristic(p.batch * p.kv_heads * tiles_m, p.sm_count, tiles_n, tiles_m, head_bytes, p.causal != 0,
                                MAX_SPLITS);
}

static fa_i64 rows_of(const fa_params &p) { return (fa_i64)p.batch * p.heads * p.seq_q; }

/* The parts' outputs and log-sum-exps, FP32, [split][batch][head][row][dim], behind the log-sum-exp of the whole. */
static void keep_parts(Flash_fwd_params &of, const fa_params &p)
{
    float *parts = (float *)of.softmax_lse_ptr + rows_of(p);
    of.oaccum_ptr = parts;
    of.oaccum_row_stride = p.dim, of.oaccum_head_stride = (fa_i64)p.seq_q * p.dim;
    of.oaccum_batch_stride = p.heads * of.oaccum_head_stride, of.oaccum_split_stride = rows_of(p) * p.dim;
    of.softmax_lseaccum_ptr = parts + of.num_splits * of.oaccum_split_stride;
    of.lseaccum_head_stride = p.seq_q, of.lseaccum_batch_stride = (fa_i64)p.heads * p.seq_q;
    of.lseaccum_split_stride = rows_of(p);
}

template <class Element, int DIM>
static void run(const fa_params &p, cudaStream_t stream)
{
    Flash_fwd_params of = params_of(p);
    const int rows = std::get<0>(tile_size_fwd_sm90(DIM, DIM, of.is_causal, false));
    of.num_splits = splits_of(p);
    of.pack_gqa =
        of.num_splits > 1 || (p.heads != p.kv_heads && should_pack_gqa(false, p.seq_q, p.heads / p.kv_heads, rows));
    if (of.num_splits > 1) {
        keep_parts(of, p);
        run_mha_fwd_<90, Element, DIM, DIM, true, false, false, true>(of, stream);
        run_mha_fwd_combine_<Element, float, DIM <= 64 ? 64 : 128>(of, stream, true);
    } else if (of.pack_gqa) {
        run_mha_fwd_<90, Element, DIM, DIM, false, false, false, true>(of, stream);
    } else {
        run_mha_fwd_<90, Element, DIM, DIM, false, false, false, false>(of, stream);
    }
}

void fa_library_info(const fa_library_question *question, fa_library_answer *answer)
{
    const fa_params *p = question->problem;
    answer->abi = FA_LIBRARY_ABI;
    answer->serves_bf16 = 1;
    const int splits = p->sm_count > 0 ? splits_of(*p) : 1;
    answer->workspace_bytes = SEMAPHORE_BYTES + 4 * rows_of(*p) * (splits > 1 ? 1 + splits * (p->dim + 1) : 1);
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
