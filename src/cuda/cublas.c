/* The `cublas` baseline: S = Q K^T by strided-batched GEMM, a softmax kernel of ours, O = P V by strided-batched GEMM.
 *
 * S is FP32: it is the raw accumulator, so that the baseline can serve as a reference and no score overflows FP16; P is
 * FP16 (with --dtype bf16, BF16) and lies over S, row by row, which keeps the workspace at 4 bytes per score. Both
 * GEMMs take the type of P and accumulate in FP32. The query heads that share a K/V head are consecutive, so their rows
 * are one tall matrix: grouped-query attention is a batch over K/V heads of (group * seq_q) x seq_kv. Work is cut into
 * chunks of at most FA_CUBLAS_SCORE_BYTES of scores: several K/V heads, or, where one alone is larger, some of its
 * rows. The causal mask is applied by the softmax; the GEMMs do all of S. */
#include "cuda/cublas.h"

#include <stdio.h>

#include "cuda/cublas_api.h"
#include "cuda/module.h"

#define FA_CUBLAS_SCORE_BYTES ((int64_t)1 << 30)
/* The size that cuBLAS's manual recommends for Hopper. With a workspace of ours, capture into a graph is legal. */
#define FA_CUBLAS_WORKSPACE_BYTES ((size_t)32 << 20)

enum { MAX_BATCH = 32768 };
/* As in softmax.cu: keys that a warp keeps in registers, warps to a row at most, rows in a block of one-warp rows. */
enum { SOFTMAX_KEYS = 512, SOFTMAX_TEAM = 8, SOFTMAX_ROWS = 8 };

typedef struct fa_cublas {
    fa_cublas_api api;
    void *handle;
    CUmodule module;
    CUfunction softmax;
    CUdeviceptr scores, workspace;
    CUstream stream;
    bool bound;                                 /* stream and workspace are set */
    int32_t ld;                                 /* floats between rows of S */
    int64_t unit_rows, chunk_rows, chunk_units; /* a unit is one K/V head with all the query rows that read it */
} fa_cublas;

/* Units [unit, unit + units) of rows [row, row + rows) each. */
typedef struct fa_cublas_chunk {
    int64_t unit, units, row, rows;
} fa_cublas_chunk;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t offset_of(int64_t batch, int64_t head, int64_t row, fa_i64 stride_b, fa_i64 stride_h, fa_i64 stride_s)
{
    return batch * stride_b + head * stride_h + row * stride_s;
}

static int gemm_type(const fa_params *p) { return p->dtype == FA_DTYPE_BF16 ? FA_CUBLAS_R_16BF : FA_CUBLAS_R_16F; }

/* Row-major X is column-major X^T: S^T = K Q^T, so K is the first operand; leading dimensions are row strides. */
static fa_status multiply_qk(fa_cublas *self, const fa_params *p, const fa_cublas_chunk *chunk, fa_reason *why)
{
    const int64_t group = p->heads / p->kv_heads, batch = chunk->unit / p->kv_heads, head = chunk->unit % p->kv_heads;
    const uint16_t *q = (const uint16_t *)p->q +
                        offset_of(batch, head * group, chunk->row, p->q_stride_b, p->q_stride_h, p->q_stride_s);
    const uint16_t *k = (const uint16_t *)p->k + offset_of(batch, head, 0, p->k_stride_b, p->k_stride_h, p->k_stride_s);
    const float one = 1.0f, zero = 0.0f;
    const int type = gemm_type(p);
    const int status = self->api.gemm_strided_batched(
        self->handle, FA_CUBLAS_OP_T, FA_CUBLAS_OP_N, p->seq_kv, (int)chunk->rows, p->dim, &one, k, type,
        (int)p->k_stride_s, p->k_stride_h, q, type, (int)p->q_stride_s, group * p->q_stride_h, &zero,
        (void *)self->scores, FA_CUBLAS_R_32F, self->ld, chunk->rows * self->ld, (int)chunk->units,
        FA_CUBLAS_COMPUTE_32F, FA_CUBLAS_GEMM_DEFAULT);
    return fa_cublas_check(&self->api, status, "cublasGemmStridedBatchedEx for Q K^T", why);
}

/* O^T = V^T P^T; a row of P is 2 * ld halves, the bytes of a row of S. */
static fa_status multiply_pv(fa_cublas *self, const fa_params *p, const fa_cublas_chunk *chunk, fa_reason *why)
{
    const int64_t group = p->heads / p->kv_heads, batch = chunk->unit / p->kv_heads, head = chunk->unit % p->kv_heads;
    const uint16_t *v = (const uint16_t *)p->v + offset_of(batch, head, 0, p->v_stride_b, p->v_stride_h, p->v_stride_s);
    uint16_t *o =
        (uint16_t *)p->o + offset_of(batch, head * group, chunk->row, p->o_stride_b, p->o_stride_h, p->o_stride_s);
    const float one = 1.0f, zero = 0.0f;
    const int type = gemm_type(p);
    const int status = self->api.gemm_strided_batched(
        self->handle, FA_CUBLAS_OP_N, FA_CUBLAS_OP_N, p->dim, (int)chunk->rows, p->seq_kv, &one, v, type,
        (int)p->v_stride_s, p->v_stride_h, (const void *)self->scores, type, 2 * self->ld, 2 * chunk->rows * self->ld,
        &zero, o, type, (int)p->o_stride_s, group * p->o_stride_h, (int)chunk->units, FA_CUBLAS_COMPUTE_32F,
        FA_CUBLAS_GEMM_DEFAULT);
    return fa_cublas_check(&self->api, status, "cublasGemmStridedBatchedEx for P V", why);
}

static fa_status launch_softmax(fa_kernel *kernel, const fa_params *p, const fa_cublas_chunk *chunk, fa_reason *why)
{
    fa_cublas *self = kernel->self;
    fa_i64 ld = self->ld, rows = chunk->units * chunk->rows, first_row = chunk->row;
    fa_i32 seq_q = p->seq_q, seq_kv = p->seq_kv, causal = p->causal;
    fa_f32 scale = p->scale;
    /* With a causal mask many rows are short, and most warps of a team would only wait at its barriers. A quarter of
     * the warps is 10 to 20 % faster then (whole attention, H200, seq 1024 to 4096). */
    const fa_i32 keys_per_warp = causal ? 4 * SOFTMAX_KEYS : SOFTMAX_KEYS;
    fa_i32 team = 1;
    while (team < SOFTMAX_TEAM && team * keys_per_warp < seq_kv)
        team *= 2;
    void *arguments[] = {&self->scores, &ld, &rows, &first_row, &seq_q, &seq_kv, &causal, &scale, &team};
    const int64_t rows_per_block = team == 1 ? SOFTMAX_ROWS : 1;
    const unsigned grid = (unsigned)((rows + rows_per_block - 1) / rows_per_block);
    const unsigned threads = (unsigned)(32 * team * rows_per_block);
    FA_CUDA_TRY(kernel->cuda, cuLaunchKernel,
                (self->softmax, grid, 1, 1, threads, 1, 1, 0, self->stream, arguments, NULL));
    return FA_PASS;
}

/* cublasSetStream selects the library's own workspace again, so ours is set after it. */
static fa_status bind_stream(fa_cublas *self, CUstream stream, fa_reason *why)
{
    if (self->bound && self->stream == stream)
        return FA_PASS;
    self->bound = false;
    FA_TRY(fa_cublas_check(&self->api, self->api.set_stream(self->handle, stream), "cublasSetStream", why));
    FA_TRY(fa_cublas_check(&self->api,
                           self->api.set_workspace(self->handle, (void *)self->workspace, FA_CUBLAS_WORKSPACE_BYTES),
                           "cublasSetWorkspace", why));
    self->stream = stream;
    self->bound = true;
    return FA_PASS;
}

static fa_status enqueue(fa_kernel *kernel, const fa_launch *launch, const fa_params *p, CUstream stream,
                         fa_reason *why)
{
    (void)launch;
    fa_cublas *self = kernel->self;
    FA_TRY(bind_stream(self, stream, why));
    const int64_t group = p->heads / p->kv_heads, units = (int64_t)p->batch * p->kv_heads;
    FA_ASSERT(group * p->seq_q == self->unit_rows, "launched with another problem than it was made for");
    if (group > 1 && (p->q_stride_h != p->seq_q * p->q_stride_s || p->o_stride_h != p->seq_q * p->o_stride_s))
        return fa_refuse(why, FA_INFEASIBLE, "grouped heads of Q and O must lie one after the other");
    const bool one_stride = p->q_stride_b == p->heads * p->q_stride_h && p->o_stride_b == p->heads * p->o_stride_h &&
                            p->k_stride_b == p->kv_heads * p->k_stride_h &&
                            p->v_stride_b == p->kv_heads * p->v_stride_h;
    for (int64_t unit = 0; unit < units;) {
        const int64_t run = one_stride ? units - unit : p->kv_heads - unit % p->kv_heads;
        fa_cublas_chunk chunk = {.unit = unit, .units = least(run, self->chunk_units)};
        for (chunk.row = 0; chunk.row < self->unit_rows; chunk.row += chunk.rows) {
            chunk.rows = least(self->chunk_rows, self->unit_rows - chunk.row);
            FA_TRY(multiply_qk(self, p, &chunk, why));
            FA_TRY(launch_softmax(kernel, p, &chunk, why));
            FA_TRY(multiply_pv(self, p, &chunk, why));
        }
        unit += chunk.units;
    }
    return FA_PASS;
}

static void destroy(fa_kernel *kernel)
{
    fa_cublas *self = kernel->self;
    const fa_cuda_api *cu = &kernel->cuda->api;
    if (self->handle)
        self->api.destroy(self->handle);
    if (self->module)
        cu->cuModuleUnload(self->module);
    if (self->scores)
        cu->cuMemFree(self->scores);
    if (self->workspace)
        cu->cuMemFree(self->workspace);
}

/* The softmax reads scores four at a time: up to three lie past the end of a row, where no GEMM writes. It ignores
 * them, but they are zeroed once, so that nothing unwritten is ever read. */
static fa_status clear_scores(fa_kernel *kernel, int64_t bytes, fa_reason *why)
{
    const fa_cublas *self = kernel->self;
    fa_cuda *cuda = kernel->cuda;
    FA_CUDA_TRY(cuda, cuMemsetD8Async, (self->scores, 0, (size_t)bytes, cuda->stream));
    FA_CUDA_TRY(cuda, cuCtxSynchronize, ());
    return FA_PASS;
}

/* Bytes of scores in one chunk: whole units while they fit, else some rows of one unit. */
static int64_t plan_chunks(fa_cublas *self, const fa_problem *problem)
{
    self->ld = (problem->seq_kv + 7) / 8 * 8;
    self->unit_rows = (int64_t)(problem->heads / problem->kv_heads) * problem->seq_q;
    const int64_t row_bytes = (int64_t)self->ld * 4, units = (int64_t)problem->batch * problem->kv_heads;
    self->chunk_rows = least(self->unit_rows, FA_CUBLAS_SCORE_BYTES / row_bytes);
    self->chunk_units = least(least(units, MAX_BATCH), FA_CUBLAS_SCORE_BYTES / (row_bytes * self->unit_rows));
    FA_ASSERT(self->chunk_rows >= 1, "one row of scores is larger than the limit");
    if (self->chunk_units < 1)
        self->chunk_units = 1;
    return self->chunk_units * self->chunk_rows * row_bytes;
}

static fa_status load_softmax(fa_kernel *kernel, fa_dtype dtype, fa_reason *why)
{
    fa_cublas *self = kernel->self;
    fa_cuda *cuda = kernel->cuda;
    FA_TRY(fa_cuda_load_own(cuda, "softmax", &self->module, why));
    const char *name = dtype == FA_DTYPE_BF16 ? "fa_softmax_bf16" : "fa_softmax";
    FA_CUDA_TRY(cuda, cuModuleGetFunction, (&self->softmax, self->module, name));
    return FA_PASS;
}

static fa_status make(fa_kernel *kernel, const fa_problem *problem, fa_reason *why)
{
    fa_cublas *self = kernel->self;
    FA_TRY(fa_cublas_api_open(&self->api, why));
    const int64_t score_bytes = plan_chunks(self, problem);
    FA_TRY(load_softmax(kernel, problem->dtype, why));
    FA_TRY(fa_cuda_reserve(kernel->cuda, "cublas", &self->scores, (size_t)score_bytes, why));
    FA_TRY(clear_scores(kernel, score_bytes, why));
    FA_TRY(fa_cuda_reserve(kernel->cuda, "cublas", &self->workspace, FA_CUBLAS_WORKSPACE_BYTES, why));
    FA_TRY(fa_cublas_check(&self->api, self->api.create(&self->handle), "cublasCreate", why));
    /* Inputs have 16 bits, so TF32 is never used; this mode keeps the sums of split-K in FP32 as well. */
    return fa_cublas_check(
        &self->api,
        self->api.set_math_mode(self->handle, FA_CUBLAS_DEFAULT_MATH | FA_CUBLAS_DISALLOW_REDUCED_PRECISION_REDUCTION),
        "cublasSetMathMode", why);
}

static fa_status create(fa_cuda *cuda, const fa_spec *spec, const fa_problem *problem, fa_kernel **kernel,
                        fa_reason *why)
{
    (void)spec;
    fa_kernel *made = fa_cuda_kernel_new(cuda, sizeof(fa_cublas), enqueue, destroy);
    return fa_cuda_kernel_made(made, make(made, problem, why), kernel);
}

static fa_status describe(const fa_spec *spec, const fa_library_question *question, fa_library_facts *facts,
                          fa_reason *why)
{
    (void)spec, (void)question;
    fa_cublas_api api;
    int parts[3] = {0};
    FA_TRY(fa_cublas_api_open(&api, why));
    for (int property = FA_CUBLAS_MAJOR; property <= FA_CUBLAS_PATCH; property++)
        FA_TRY(fa_cublas_check(&api, api.get_property(property, &parts[property]), "cublasGetProperty", why));
    *facts = (fa_library_facts){.name = "cuBLAS", .serves_bf16 = true};
    snprintf(facts->version, sizeof facts->version, "%d.%d.%d", parts[0], parts[1], parts[2]);
    return FA_PASS;
}

const fa_library fa_cublas_library = {.describe = describe, .create = create};
