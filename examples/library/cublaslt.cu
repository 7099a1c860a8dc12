/* Unfused attention on cuBLASLt: S = Q K^T in FP32 in the workspace, a softmax kernel that puts P over it, O = P V.
 *     make -C examples/library cublaslt && ./fa_bench --library examples/library/build/cublaslt.so */
#include <cublasLt.h>
#include <cuda_fp16.h>
#include <stdio.h>

#include "fa_library.h"

enum { WARPS = 8 };
#define GEMM_WORKSPACE ((size_t)32 << 20)

/* A warp per row of S, in place: a row of P begins where the row of S does. */
static __global__ void softmax(float *scores, long long rows, long long ld, const fa_params problem)
{
    const long long at = blockIdx.x * (long long)WARPS + threadIdx.x / 32;
    if (at >= rows)
        return;
    float *s = scores + at * ld;
    half *p = (half *)s;
    const int lane = threadIdx.x % 32, row = at % problem.seq_q, last = row + problem.seq_kv - problem.seq_q;
    const int keys = problem.causal ? min(problem.seq_kv, last + 1) : problem.seq_kv;
    float most = -1e30f, sum = 0;
    for (int key = lane; key < keys; key += 32)
        most = fmaxf(most, s[key] * problem.scale);
    for (int step = 16; step > 0; step /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, step));
    for (int key = lane; key < keys; key += 32)
        sum += expf(s[key] * problem.scale - most);
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, step);
    for (int first = 0; first < problem.seq_kv; first += 32) { /* P overwrites only scores that have been read */
        const int key = first + lane;
        const float value = key < keys ? expf(s[key] * problem.scale - most) / sum : 0.0f;
        __syncwarp();
        if (key < problem.seq_kv)
            p[key] = __float2half(value);
        __syncwarp();
    }
}

/* A column-major matrix per head. */
struct matrix {
    const void *at;
    cudaDataType_t type;
    int rows, cols;
    long long ld, stride;
};

static cublasLtMatrixLayout_t layout_of(const matrix &m, int batches)
{
    cublasLtMatrixLayout_t made = NULL;
    if (cublasLtMatrixLayoutCreate(&made, m.type, m.rows, m.cols, m.ld) != CUBLAS_STATUS_SUCCESS)
        return NULL;
    cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches);
    cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m.stride, sizeof m.stride);
    return made;
}

/* C = A B, or A^T B. cuBLASLt's heuristics choose the kernel at every call. */
static cublasStatus_t multiply(const matrix &a, cublasOperation_t op_a, const matrix &b, const matrix &c, int batches,
                               void *workspace, cudaStream_t stream)
{
    static cublasLtHandle_t handle;
    cublasLtMatmulDesc_t what = NULL;
    const float one = 1, zero = 0;
    cublasStatus_t status = handle != NULL ? CUBLAS_STATUS_SUCCESS : cublasLtCreate(&handle);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulDescCreate(&what, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    cublasLtMatmulDescSetAttribute(what, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a);
    const cublasLtMatrixLayout_t la = layout_of(a, batches), lb = layout_of(b, batches), lc = layout_of(c, batches);
    status = cublasLtMatmul(handle, what, &one, a.at, la, b.at, lb, &zero, c.at, lc, (void *)c.at, lc, NULL, workspace,
                            GEMM_WORKSPACE, stream);
    cublasLtMatrixLayoutDestroy(la), cublasLtMatrixLayoutDestroy(lb), cublasLtMatrixLayoutDestroy(lc);
    cublasLtMatmulDescDestroy(what);
    return status;
}

static long long row_floats(const fa_params *p) { return (p->seq_kv + 7) / 8 * 8; }

void fa_library_info(const fa_library_question *question, fa_library_answer *answer)
{
    const fa_params *p = question->problem;
    const long long rows = (long long)p->batch * p->heads * p->seq_q, group = p->heads / p->kv_heads;
    answer->abi = FA_LIBRARY_ABI;
    snprintf(answer->name, sizeof answer->name, "cuBLASLt");
    snprintf(answer->version, sizeof answer->version, "%zu", cublasLtGetVersion());
    answer->workspace_bytes = (long long)GEMM_WORKSPACE + rows * row_floats(p) * 4;
    if (rows > 0x7fffffff || (group > 1 && p->q_stride_h != p->seq_q * p->q_stride_s) ||
        p->q_stride_b != p->heads * p->q_stride_h || p->k_stride_b != p->kv_heads * p->k_stride_h)
        snprintf(answer->refusal, sizeof answer->refusal, "needs packed [batch, heads, seq, dim] tensors");
    if (question->alignment_bytes < 16)
        snprintf(answer->refusal, sizeof answer->refusal, "needs tensors aligned to 16 bytes");
}

/* Row-major X is column-major X^T: S^T = K Q^T, O^T = V^T P^T. Heads that share a K/V head are one tall matrix. */
const char *fa_forward(const fa_params *p, void *stream)
{
    const int group = p->heads / p->kv_heads, batches = p->batch * p->kv_heads, rows = group * p->seq_q;
    const long long ld = row_floats(p);
    float *s = (float *)((char *)p->workspace + GEMM_WORKSPACE);
    const cudaStream_t on = (cudaStream_t)stream;
    const matrix q = {p->q, CUDA_R_16F, p->dim, rows, p->q_stride_s, group * p->q_stride_h};
    const matrix k = {p->k, CUDA_R_16F, p->dim, p->seq_kv, p->k_stride_s, p->k_stride_h};
    const matrix v = {p->v, CUDA_R_16F, p->dim, p->seq_kv, p->v_stride_s, p->v_stride_h};
    const matrix o = {p->o, CUDA_R_16F, p->dim, rows, p->o_stride_s, group * p->o_stride_h};
    const matrix scores = {s, CUDA_R_32F, p->seq_kv, rows, ld, rows * ld};
    const matrix weights = {s, CUDA_R_16F, p->seq_kv, rows, 2 * ld, 2 * rows * ld};
    cublasStatus_t status = multiply(k, CUBLAS_OP_T, q, scores, batches, p->workspace, on);
    if (status != CUBLAS_STATUS_SUCCESS)
        return cublasLtGetStatusString(status);
    const long long all = (long long)batches * rows;
    softmax<<<(unsigned)((all + WARPS - 1) / WARPS), 32 * WARPS, 0, on>>>(s, all, ld, *p);
    status = multiply(v, CUBLAS_OP_N, weights, o, batches, p->workspace, on);
    return status == CUBLAS_STATUS_SUCCESS ? NULL : cublasLtGetStatusString(status);
}
