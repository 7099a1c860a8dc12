/* What the two libraries of FlashInfer share: a problem as requests of a ragged batch, each of seq_q queries and seq_kv
 * keys, planned once per problem. A plan lies in memory of its own, since it depends on the shapes alone. FP16 only. */
#ifndef FA_EXAMPLE_FLASHINFER_CUH
#define FA_EXAMPLE_FLASHINFER_CUH

#include <cstdio>
#include <exception>
#include <map>
#include <tuple>
#include <vector>

#include <cuda_fp16.h>
#include <flashinfer/attention/mask.cuh>

#include "dims.cuh"
#include "fa_library.h"

/* Of a plan: FlashInfer's default for the parts of split keys, and room for its lists. */
enum { PARTS_BYTES = 384 << 20, LISTS_BYTES = 32 << 20 };

/* INFO: what the planner says. Offsets are in rows; q and kv lie on the GPU, the others are its buffers. */
template <class INFO>
struct ragged_plan {
    INFO info;
    std::vector<int> q_host, kv_host, keys_host;
    int *q, *kv;
    void *parts, *lists, *lists_host;
};

/* Rows in elements of a tensor whose rows lie at equal distances over all batches, as a ragged batch has them. */
static fa_i64 row_stride(fa_i64 stride_b, fa_i64 stride_s, int rows) { return rows == 1 ? stride_b : stride_s; }

static bool is_ragged(fa_i64 stride_b, fa_i64 stride_s, int rows, int batch)
{
    return batch == 1 || rows == 1 || stride_b == rows * stride_s;
}

static const char *ragged_refusal(const fa_library_question &question)
{
    const fa_params &p = *question.problem;
    const fa_i64 o_row = row_stride(p.o_stride_b, p.o_stride_s, p.seq_q);
    if (!is_built_for(p.dim))
        return "not built for this head dimension (DIMS)";
    if (question.alignment_bytes < 16)
        return "needs tensors aligned to 16 bytes";
    if (!is_ragged(p.q_stride_b, p.q_stride_s, p.seq_q, p.batch) ||
        !is_ragged(p.k_stride_b, p.k_stride_s, p.seq_kv, p.batch) ||
        !is_ragged(p.v_stride_b, p.v_stride_s, p.seq_kv, p.batch) ||
        !is_ragged(p.o_stride_b, p.o_stride_s, p.seq_q, p.batch))
        return "needs the rows of all batches at equal distances (--strides bshd)";
    if (p.o_stride_h != p.dim || o_row != (fa_i64)p.heads * p.dim)
        return "needs the heads of a row of O side by side (--strides bshd)";
    if (p.causal && p.seq_q > p.seq_kv)
        return "a causal mask with more queries than keys is not its own";
    return nullptr;
}

static void say_ragged(const fa_library_question *question, fa_library_answer *answer, const char *name)
{
    answer->abi = FA_LIBRARY_ABI;
    snprintf(answer->name, sizeof answer->name, "%s", name);
    snprintf(answer->version, sizeof answer->version, "%s", FLASHINFER_VERSION);
    const char *refusal = ragged_refusal(*question);
    if (refusal)
        snprintf(answer->refusal, sizeof answer->refusal, "%s", refusal);
}

/* The plan of a problem of these shapes; cudaError_t PLAN(ragged_plan &) makes a new one. NULL: it failed. */
template <class INFO, class PLAN>
static ragged_plan<INFO> *plan_of(const fa_params &p, cudaStream_t stream, const PLAN &make)
{
    static std::map<std::tuple<int, int, int, int, int, int, int>, ragged_plan<INFO>> plans;
    const auto key = std::make_tuple(p.batch, p.heads, p.kv_heads, p.seq_q, p.seq_kv, p.dim, p.causal);
    const auto known = plans.find(key);
    if (known != plans.end())
        return &known->second;
    ragged_plan<INFO> plan = {};
    for (int b = 0; b <= p.batch; b++) {
        plan.q_host.push_back(b * p.seq_q);
        plan.kv_host.push_back(b * p.seq_kv);
    }
    plan.keys_host.assign(p.batch, p.seq_kv);
    const auto planned = [&] {
        try {
            return make(plan) == cudaSuccess;
        } catch (const std::exception &) { /* a list or a part that finds no room */
            return false;
        }
    };
    const size_t bytes = (p.batch + 1) * sizeof(int);
    const bool made = cudaMalloc(&plan.q, bytes) == cudaSuccess && cudaMalloc(&plan.kv, bytes) == cudaSuccess &&
                      cudaMalloc(&plan.parts, PARTS_BYTES) == cudaSuccess &&
                      cudaMalloc(&plan.lists, LISTS_BYTES) == cudaSuccess &&
                      cudaMallocHost(&plan.lists_host, LISTS_BYTES) == cudaSuccess &&
                      cudaMemcpy(plan.q, plan.q_host.data(), bytes, cudaMemcpyHostToDevice) == cudaSuccess &&
                      cudaMemcpy(plan.kv, plan.kv_host.data(), bytes, cudaMemcpyHostToDevice) == cudaSuccess &&
                      planned() && cudaStreamSynchronize(stream) == cudaSuccess;
    return made ? &plans.emplace(key, plan).first->second : nullptr;
}

/* fa_forward of a ragged batch: plans with `make` where no plan is there (plan_of), and calls
 * run.operator()<DIM, MASK>(ragged_plan &), which gives a cudaError_t. */
template <class INFO, class PLAN, class RUN>
static const char *forward_ragged(const fa_params &p, cudaStream_t stream, const PLAN &make, const RUN &run)
{
    using flashinfer::MaskMode;
    ragged_plan<INFO> *plan = plan_of<INFO>(p, stream, make);
    if (!plan)
        return "the plan failed";
    return by_dim(p, [&]<int DIM>() -> const char * {
        const cudaError_t code = p.causal ? run.template operator()<DIM, MaskMode::kCausal>(*plan)
                                          : run.template operator()<DIM, MaskMode::kNone>(*plan);
        return code == cudaSuccess ? nullptr : cudaGetErrorString(code);
    });
}

#endif
