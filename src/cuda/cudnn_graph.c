/* Attention as an operation graph: matmul, scale, mask, softmax from reductions and pointwise steps, matmul. This is
 * the pattern that cuDNN's fused engines match (NVIDIA, cuDNN Developer Guide, "Fused Attention fprop"): only Q, K, V
 * and O have memory. */
#include "cuda/cudnn_graph.h"

void *fa_cudnn_descriptor(fa_cudnn_graph *graph, int type)
{
    if (graph->status != FA_PASS)
        return NULL;
    FA_ASSERT(graph->owned_count < (int)(sizeof graph->owned / sizeof *graph->owned), "too many descriptors");
    void *descriptor = NULL;
    graph->status = fa_cudnn_check(graph->api, graph->api->create_descriptor(type, &descriptor), FA_NOT_RUN,
                                   "cudnnBackendCreateDescriptor", graph->why);
    if (graph->status == FA_PASS)
        graph->owned[graph->owned_count++] = descriptor;
    return descriptor;
}

void fa_cudnn_set(fa_cudnn_graph *graph, void *descriptor, int name, int type, int64_t count, const void *elements)
{
    if (graph->status == FA_PASS)
        graph->status = fa_cudnn_check(graph->api, graph->api->set_attribute(descriptor, name, type, count, elements),
                                       FA_NOT_RUN, "cudnnBackendSetAttribute", graph->why);
}

void fa_cudnn_finalize(fa_cudnn_graph *graph, void *descriptor, const char *what)
{
    if (graph->status == FA_PASS)
        graph->status = fa_cudnn_check(graph->api, graph->api->finalize(descriptor), FA_NOT_RUN, what, graph->why);
}

void fa_cudnn_graph_free(fa_cudnn_graph *graph)
{
    while (graph->owned_count > 0)
        graph->api->destroy_descriptor(graph->owned[--graph->owned_count]);
}

static void set_int(fa_cudnn_graph *graph, void *descriptor, int name, int type, int value)
{
    fa_cudnn_set(graph, descriptor, name, type, 1, &value);
}

static void set_descriptor(fa_cudnn_graph *graph, void *descriptor, int name, void *value)
{
    fa_cudnn_set(graph, descriptor, name, FA_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

typedef enum { IN_MEMORY, VIRTUAL, BY_VALUE } residence;

static void *tensor(fa_cudnn_graph *graph, int64_t uid, int type, residence where, const int64_t dims[4],
                    const int64_t strides[4])
{
    const int64_t alignment = 16;
    void *made = fa_cudnn_descriptor(graph, FA_CUDNN_TENSOR);
    set_int(graph, made, FA_CUDNN_TENSOR_DATA_TYPE, FA_CUDNN_TYPE_DATA_TYPE, type);
    fa_cudnn_set(graph, made, FA_CUDNN_TENSOR_DIMENSIONS, FA_CUDNN_TYPE_INT64, 4, dims);
    fa_cudnn_set(graph, made, FA_CUDNN_TENSOR_STRIDES, FA_CUDNN_TYPE_INT64, 4, strides);
    fa_cudnn_set(graph, made, FA_CUDNN_TENSOR_UNIQUE_ID, FA_CUDNN_TYPE_INT64, 1, &uid);
    fa_cudnn_set(graph, made, FA_CUDNN_TENSOR_BYTE_ALIGNMENT, FA_CUDNN_TYPE_INT64, 1, &alignment);
    const bool is_virtual = where == VIRTUAL, by_value = where == BY_VALUE;
    fa_cudnn_set(graph, made, FA_CUDNN_TENSOR_IS_VIRTUAL, FA_CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    fa_cudnn_set(graph, made, FA_CUDNN_TENSOR_IS_BY_VALUE, FA_CUDNN_TYPE_BOOLEAN, 1, &by_value);
    fa_cudnn_finalize(graph, made, "cudnnBackendFinalize of a tensor");
    return made;
}

/* [batch, heads, rows, cols], row-major; K^T: cols and rows exchanged, in unchanged memory. */
static void *packed(fa_cudnn_graph *graph, int64_t uid, int type, residence where, const int64_t dims[4])
{
    const int64_t strides[4] = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
    return tensor(graph, uid, type, where, dims, strides);
}

static void *value(fa_cudnn_graph *graph, int64_t uid, int type)
{
    return packed(graph, uid, type, BY_VALUE, (const int64_t[4]){1, 1, 1, 1});
}

static void *intermediate(fa_cudnn_graph *graph, int type, const int64_t dims[4])
{
    return packed(graph, graph->next_uid++, type, VIRTUAL, dims);
}

static void add_operation(fa_cudnn_graph *graph, void *operation, const char *what)
{
    fa_cudnn_finalize(graph, operation, what);
    FA_ASSERT(graph->operation_count < (int)(sizeof graph->operations / sizeof *graph->operations),
              "too many operations");
    graph->operations[graph->operation_count++] = operation;
}

static void matmul(fa_cudnn_graph *graph, void *a, void *b, void *c)
{
    void *kind = fa_cudnn_descriptor(graph, FA_CUDNN_MATMUL);
    set_int(graph, kind, FA_CUDNN_MATMUL_COMP_TYPE, FA_CUDNN_TYPE_DATA_TYPE, FA_CUDNN_FLOAT);
    fa_cudnn_finalize(graph, kind, "cudnnBackendFinalize of a matmul");
    void *operation = fa_cudnn_descriptor(graph, FA_CUDNN_OPERATION_MATMUL);
    set_descriptor(graph, operation, FA_CUDNN_OPERATION_MATMUL_ADESC, a);
    set_descriptor(graph, operation, FA_CUDNN_OPERATION_MATMUL_BDESC, b);
    set_descriptor(graph, operation, FA_CUDNN_OPERATION_MATMUL_CDESC, c);
    set_descriptor(graph, operation, FA_CUDNN_OPERATION_MATMUL_DESC, kind);
    add_operation(graph, operation, "cudnnBackendFinalize of a matmul operation");
}

static void reduce(fa_cudnn_graph *graph, int mode, void *x, void *y)
{
    void *kind = fa_cudnn_descriptor(graph, FA_CUDNN_REDUCTION);
    set_int(graph, kind, FA_CUDNN_REDUCTION_OPERATOR, FA_CUDNN_TYPE_REDUCTION_OPERATOR, mode);
    set_int(graph, kind, FA_CUDNN_REDUCTION_COMP_TYPE, FA_CUDNN_TYPE_DATA_TYPE, FA_CUDNN_FLOAT);
    fa_cudnn_finalize(graph, kind, "cudnnBackendFinalize of a reduction");
    void *operation = fa_cudnn_descriptor(graph, FA_CUDNN_OPERATION_REDUCTION);
    set_descriptor(graph, operation, FA_CUDNN_OPERATION_REDUCTION_XDESC, x);
    set_descriptor(graph, operation, FA_CUDNN_OPERATION_REDUCTION_YDESC, y);
    set_descriptor(graph, operation, FA_CUDNN_OPERATION_REDUCTION_DESC, kind);
    add_operation(graph, operation, "cudnnBackendFinalize of a reduction operation");
}

/* y = mode(x, b), or mode(x) when b is NULL, or t ? x : b when t is not. `axis` matters to GEN_INDEX alone. */
static void pointwise(fa_cudnn_graph *graph, int mode, int compute_type, int64_t axis, void *x, void *b, void *t,
                      void *y)
{
    void *kind = fa_cudnn_descriptor(graph, FA_CUDNN_POINTWISE);
    set_int(graph, kind, FA_CUDNN_POINTWISE_MODE, FA_CUDNN_TYPE_POINTWISE_MODE, mode);
    set_int(graph, kind, FA_CUDNN_POINTWISE_MATH_PREC, FA_CUDNN_TYPE_DATA_TYPE, compute_type);
    if (mode == FA_CUDNN_GEN_INDEX)
        fa_cudnn_set(graph, kind, FA_CUDNN_POINTWISE_AXIS, FA_CUDNN_TYPE_INT64, 1, &axis);
    fa_cudnn_finalize(graph, kind, "cudnnBackendFinalize of a pointwise step");
    void *operation = fa_cudnn_descriptor(graph, FA_CUDNN_OPERATION_POINTWISE);
    set_descriptor(graph, operation, FA_CUDNN_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
    set_descriptor(graph, operation, FA_CUDNN_OPERATION_POINTWISE_XDESC, x);
    if (b)
        set_descriptor(graph, operation, FA_CUDNN_OPERATION_POINTWISE_BDESC, b);
    if (t)
        set_descriptor(graph, operation, FA_CUDNN_OPERATION_POINTWISE_TDESC, t);
    set_descriptor(graph, operation, FA_CUDNN_OPERATION_POINTWISE_YDESC, y);
    add_operation(graph, operation, "cudnnBackendFinalize of a pointwise operation");
}

/* Scores whose key lies after the diagonal become -inf: row (+ seq_kv - seq_q) >= column stays. */
static void *mask(fa_cudnn_graph *graph, void *scores, const int64_t dims[4], bool bottom_right)
{
    void *row = intermediate(graph, FA_CUDNN_INT32, dims), *column = intermediate(graph, FA_CUDNN_INT32, dims);
    pointwise(graph, FA_CUDNN_GEN_INDEX, FA_CUDNN_FLOAT, 2, scores, NULL, NULL, row);
    pointwise(graph, FA_CUDNN_GEN_INDEX, FA_CUDNN_FLOAT, 3, scores, NULL, NULL, column);
    if (bottom_right) {
        void *moved = intermediate(graph, FA_CUDNN_INT32, dims), *back = intermediate(graph, FA_CUDNN_INT32, dims);
        pointwise(graph, FA_CUDNN_ADD, FA_CUDNN_INT32, 0, row, value(graph, FA_CUDNN_SEQ_KV, FA_CUDNN_INT32), NULL,
                  moved);
        pointwise(graph, FA_CUDNN_SUB, FA_CUDNN_INT32, 0, moved, value(graph, FA_CUDNN_SEQ_Q, FA_CUDNN_INT32), NULL,
                  back);
        row = back;
    }
    void *seen = intermediate(graph, FA_CUDNN_BOOLEAN, dims), *masked = intermediate(graph, FA_CUDNN_FLOAT, dims);
    pointwise(graph, FA_CUDNN_CMP_GE, FA_CUDNN_BOOLEAN, 0, row, column, NULL, seen);
    pointwise(graph, FA_CUDNN_BINARY_SELECT, FA_CUDNN_FLOAT, 0, scores, value(graph, FA_CUDNN_MASKED, FA_CUDNN_FLOAT),
              seen, masked);
    return masked;
}

/* Weights of `type`, which the second matmul takes. The engines know softmax by all of its steps, so the row's
 * log-sum-exp is in the graph too; virtual, it is never stored. */
static void *softmax(fa_cudnn_graph *graph, int type, void *scores, const int64_t dims[4])
{
    const int64_t row[4] = {dims[0], dims[1], dims[2], 1};
    void *high = intermediate(graph, FA_CUDNN_FLOAT, row), *sum = intermediate(graph, FA_CUDNN_FLOAT, row);
    void *log_sum = intermediate(graph, FA_CUDNN_FLOAT, row), *stats = intermediate(graph, FA_CUDNN_FLOAT, row);
    void *shifted = intermediate(graph, FA_CUDNN_FLOAT, dims), *power = intermediate(graph, FA_CUDNN_FLOAT, dims);
    void *weights = intermediate(graph, type, dims);
    reduce(graph, FA_CUDNN_REDUCE_MAX, scores, high);
    pointwise(graph, FA_CUDNN_SUB, FA_CUDNN_FLOAT, 0, scores, high, NULL, shifted);
    pointwise(graph, FA_CUDNN_EXP, FA_CUDNN_FLOAT, 0, shifted, NULL, NULL, power);
    reduce(graph, FA_CUDNN_REDUCE_ADD, power, sum);
    pointwise(graph, FA_CUDNN_LOG, FA_CUDNN_FLOAT, 0, sum, NULL, NULL, log_sum);
    pointwise(graph, FA_CUDNN_ADD, FA_CUDNN_FLOAT, 0, high, log_sum, NULL, stats);
    pointwise(graph, FA_CUDNN_DIV, FA_CUDNN_FLOAT, 0, power, sum, NULL, weights);
    return weights;
}

void *fa_cudnn_attention(fa_cudnn_graph *graph, void *handle, const fa_problem *problem, bool bottom_right)
{
    const int64_t batch = problem->batch, heads = problem->heads, kv_heads = problem->kv_heads, dim = problem->dim;
    const int64_t seq_q = problem->seq_q, seq_kv = problem->seq_kv;
    const int64_t q_dims[4] = {batch, heads, seq_q, dim}, v_dims[4] = {batch, kv_heads, seq_kv, dim};
    const int64_t k_dims[4] = {batch, kv_heads, dim, seq_kv},
                  k_strides[4] = {kv_heads * seq_kv * dim, seq_kv * dim, 1, dim};
    const int64_t s_dims[4] = {batch, heads, seq_q, seq_kv};
    const int type = problem->dtype == FA_DTYPE_BF16 ? FA_CUDNN_BFLOAT16 : FA_CUDNN_HALF;
    graph->next_uid = FA_CUDNN_FIRST_VIRTUAL;

    void *q = packed(graph, FA_CUDNN_Q, type, IN_MEMORY, q_dims);
    void *k = tensor(graph, FA_CUDNN_K, type, IN_MEMORY, k_dims, k_strides);
    void *v = packed(graph, FA_CUDNN_V, type, IN_MEMORY, v_dims);
    void *o = packed(graph, FA_CUDNN_O, type, IN_MEMORY, q_dims);
    void *raw = intermediate(graph, FA_CUDNN_FLOAT, s_dims), *scores = intermediate(graph, FA_CUDNN_FLOAT, s_dims);
    matmul(graph, q, k, raw);
    pointwise(graph, FA_CUDNN_MUL, FA_CUDNN_FLOAT, 0, raw, value(graph, FA_CUDNN_SCALE, FA_CUDNN_FLOAT), NULL, scores);
    if (problem->causal)
        scores = mask(graph, scores, s_dims, bottom_right);
    matmul(graph, softmax(graph, type, scores, s_dims), v, o);

    void *made = fa_cudnn_descriptor(graph, FA_CUDNN_OPERATIONGRAPH);
    if (handle)
        fa_cudnn_set(graph, made, FA_CUDNN_OPERATIONGRAPH_HANDLE, FA_CUDNN_TYPE_HANDLE, 1, &handle);
    fa_cudnn_set(graph, made, FA_CUDNN_OPERATIONGRAPH_OPS, FA_CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->operation_count,
                 graph->operations);
    fa_cudnn_finalize(graph, made, "cudnnBackendFinalize of the attention graph");
    return graph->status == FA_PASS ? made : NULL;
}
