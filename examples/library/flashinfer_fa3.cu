/* FlashInfer's backend "fa3", which it takes by itself for prefill on sm_90: persistent blocks over a ragged batch,
 * tiles dealt out by its planner, keys not split.
 *     make -C examples/library flashinfer_fa3 FLASHINFER_DIR=.../flashinfer/data */
#include "flashinfer.cuh"

#include <flashinfer/attention/hopper/default_params.cuh>
#include <flashinfer/attention/hopper/prefill_sm90.cuh>
#include <flashinfer/attention/hopper/variants.cuh>
#include <flashinfer/attention/scheduler.cuh>

using namespace flashinfer;
using ragged_params = BatchPrefillRaggedParams<cutlass::half_t, cutlass::half_t, cutlass::half_t, int>;
using plan = ragged_plan<PrefillPlanSM90Info>;

static ragged_params params_of(const fa_params &p, const plan &by)
{
    using element = cutlass::half_t;
    const PrefillPlanSM90Info &info = by.info;
    const auto list = [&](int64_t offset) { return GetPtrFromBaseOffset<int>(by.lists, offset); };
    ragged_params of = {};
    of.q_ptr = (element *)p.q, of.k_ptr = (element *)p.k, of.v_ptr = (element *)p.v, of.o_ptr = (element *)p.o;
    of.qo_tile_indices = list(info.qo_tile_indices_offset);
    of.qo_indptr = list(info.qo_indptr_offset), of.kv_indptr = list(info.kv_indptr_offset);
    of.qo_lens = list(info.qo_len_offset), of.kv_lens = list(info.kv_len_offset);
    of.head_indices = list(info.head_indices_offset), of.work_indptr = list(info.work_indptr_offset);
    of.batch_indices = list(info.batch_indices_offset);
    of.additional_params.sm_scale = p.scale;
    of.q_stride_n = row_stride(p.q_stride_b, p.q_stride_s, p.seq_q), of.q_stride_h = p.q_stride_h;
    of.k_stride_n = row_stride(p.k_stride_b, p.k_stride_s, p.seq_kv), of.k_stride_h = p.k_stride_h;
    of.v_stride_n = row_stride(p.v_stride_b, p.v_stride_s, p.seq_kv), of.v_stride_h = p.v_stride_h;
    of.o_stride_n = row_stride(p.o_stride_b, p.o_stride_s, p.seq_q), of.o_stride_h = p.o_stride_h;
    of.nnz_qo = (int64_t)p.batch * p.seq_q, of.nnz_kv = (int64_t)p.batch * p.seq_kv;
    of.num_qo_heads = p.heads, of.num_kv_heads = p.kv_heads, of.group_size = p.heads / p.kv_heads;
    of.window_left = -1, of.causal = p.causal != 0;
    return of;
}

template <int DIM, MaskMode MASK>
static cudaError_t run(const fa_params &p, const plan &by, cudaStream_t stream)
{
    ragged_params of = params_of(p, by);
    if (by.info.same_schedule_for_all_heads)
        return BatchPrefillWithRaggedKVCacheDispatched<DIM, DIM, MASK, false, true, StandardAttention>(of, true,
                                                                                                       stream);
    return BatchPrefillWithRaggedKVCacheDispatched<DIM, DIM, MASK, false, false, StandardAttention>(of, true, stream);
}

void fa_library_info(const fa_library_question *question, fa_library_answer *answer)
{
    say_ragged(question, answer, "FlashInfer fa3");
    if (question->arch != 90)
        snprintf(answer->refusal, sizeof answer->refusal, "needs sm_90");
}

const char *fa_forward(const fa_params *params, void *stream)
{
    const fa_params &p = *params;
    const cudaStream_t on = (cudaStream_t)stream;
    const auto make = [&](plan &made) {
        return PrefillSM90Plan<int>(made.parts, PARTS_BYTES, made.lists, made.lists_host, LISTS_BYTES, made.info,
                                    made.q_host.data(), made.kv_host.data(), made.keys_host.data(), p.batch * p.seq_q,
                                    p.batch, p.heads, p.kv_heads, p.dim, p.dim, 1, p.causal != 0, false, 2, on);
    };
    return forward_ragged<PrefillPlanSM90Info>(
        p, on, make, [&]<int DIM, MaskMode MASK>(plan &by) { return run<DIM, MASK>(p, by, on); });
}
