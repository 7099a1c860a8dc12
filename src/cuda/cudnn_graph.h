/* Attention as an operation graph of cuDNN's backend descriptors. */
#pragma once

#include "cuda/cudnn_api.h"
#include "input/problem.h"

/* Identifiers of the tensors that exist in memory: on the device up to O, on the host from SCALE on. */
enum {
    FA_CUDNN_Q = 1,
    FA_CUDNN_K,
    FA_CUDNN_V,
    FA_CUDNN_O,
    FA_CUDNN_SCALE,
    FA_CUDNN_MASKED,
    FA_CUDNN_SEQ_KV,
    FA_CUDNN_SEQ_Q,
    FA_CUDNN_FIRST_VIRTUAL,
};

/* A graph under construction. After the first failure, kept in `status` and `why`, every further step does nothing. */
typedef struct fa_cudnn_graph {
    const fa_cudnn_api *api;
    fa_status status;
    fa_reason *why;
    void *owned[160];
    int32_t owned_count;
    void *operations[24];
    int32_t operation_count;
    int64_t next_uid;
} fa_cudnn_graph;

/* A descriptor of `type`, destroyed with the graph; NULL after a failure. */
void *fa_cudnn_descriptor(fa_cudnn_graph *graph, int type);
void fa_cudnn_set(fa_cudnn_graph *graph, void *descriptor, int name, int type, int64_t count, const void *elements);
void fa_cudnn_finalize(fa_cudnn_graph *graph, void *descriptor, const char *what);
void fa_cudnn_graph_free(fa_cudnn_graph *graph);

/* Finalised operation graph of O = softmax(scale Q K^T, masked) V on contiguous tensors; NULL after a failure.
 * `bottom_right`: the causal diagonal ends in the last row and column, else it starts in the first. */
void *fa_cudnn_attention(fa_cudnn_graph *graph, void *handle, const fa_problem *problem, bool bottom_right);
