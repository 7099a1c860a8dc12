/* FlashInfer's backend "fa2": batched attention over a ragged batch, keys split by its planner, the query heads of a
 * K/V head packed into the rows of a tile. It serves decode too: what its decode wrapper runs with use_tensor_cores.
 *     make -C examples/library flashinfer_fa2 FLASHINFER_DIR=.../flashinfer/data */
#include "flashinfer.cuh"

#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>

using namespace flashinfer;
using ragged_params = BatchPrefillRaggedParams<half, half, half, int>;
using plan = ragged_plan<PrefillPlanInfo>;

static ragged_params params_of(const fa_params &p, plan &by)
{
    const PrefillPlanInfo &info = by.info;
    ragged_params of((half *)p.q, (half *)p.k, (half *)p.v, nullptr, by.q, by.kv, nullptr, nullptr, nullptr,
                     (half *)p.o, nullptr, nullptr, p.heads, p.kv_heads,
                     row_stride(p.q_stride_b, p.q_stride_s, p.seq_q), p.q_stride_h,
                     row_stride(p.k_stride_b, p.k_stride_s, p.seq_kv), p.k_stride_h, -1, 0, p.scale, 1, 1);
    of.v_stride_n = row_stride(p.v_stride_b, p.v_stride_s, p.seq_kv), of.v_stride_h = p.v_stride_h;
    of.request_indices = GetPtrFromBaseOffset<int>(by.lists, info.request_indices_offset);
    of.qo_tile_indices = GetPtrFromBaseOffset<int>(by.lists, info.qo_tile_indices_offset);
    of.kv_tile_indices = GetPtrFromBaseOffset<int>(by.lists, info.kv_tile_indices_offset);
    of.o_indptr = GetPtrFromBaseOffset<int>(by.lists, info.o_indptr_offset);
    of.kv_chunk_size_ptr = GetPtrFromBaseOffset<int>(by.lists, info.kv_chunk_size_ptr_offset);
    if (info.split_kv)
        of.merge_indptr = GetPtrFromBaseOffset<int>(by.lists, info.merge_indptr_offset);
    of.padded_batch_size = info.padded_batch_size, of.max_total_num_rows = info.total_num_rows;
    return of;
}

template <int DIM, MaskMode MASK>
static cudaError_t run(const fa_params &p, plan &by, cudaStream_t stream)
{
    using variant = DefaultAttention<false, false, false, false>;
    const PrefillPlanInfo &info = by.info;
    const ragged_params of = params_of(p, by);
    half *parts = info.split_kv ? GetPtrFromBaseOffset<half>(by.parts, info.v_offset) : nullptr;
    float *sums = info.split_kv ? GetPtrFromBaseOffset<float>(by.parts, info.s_offset) : nullptr;
    cudaError_t code = cudaErrorInvalidValue;
    DISPATCH_CTA_TILE_Q(info.cta_tile_q, ROWS, {
        code = BatchPrefillWithRaggedKVCacheDispatched<ROWS, DIM, DIM, PosEncodingMode::kNone, false, MASK, variant>(
            of, parts, sums, true, stream);
    });
    return code;
}

void fa_library_info(const fa_library_question *question, fa_library_answer *answer)
{
    say_ragged(question, answer, "FlashInfer fa2");
    if (question->arch < 80)
        snprintf(answer->refusal, sizeof answer->refusal, "needs sm_80 or later");
}

const char *fa_forward(const fa_params *params, void *stream)
{
    const fa_params &p = *params;
    const cudaStream_t on = (cudaStream_t)stream;
    const auto make = [&](plan &made) {
        return PrefillPlan<int>(made.parts, PARTS_BYTES, made.lists, made.lists_host, LISTS_BYTES, made.info,
                                made.q_host.data(), made.kv_host.data(), p.batch * p.seq_q, p.batch, p.heads,
                                p.kv_heads, p.dim, p.dim, 1, false, 2, -1, -1, false, 0, 0, on);
    };
    return forward_ragged<PrefillPlanInfo>(p, on, make,
                                           [&]<int DIM, MaskMode MASK>(plan &by) { return run<DIM, MASK>(p, by, on); });
}
