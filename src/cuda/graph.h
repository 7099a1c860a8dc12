/* CUDA graphs of identical launches between two events, captured once and kept. */
#ifndef FA_DEVICE_CUDA_GRAPH_H
#define FA_DEVICE_CUDA_GRAPH_H

#include "cuda/kernel.h"

/* A captured graph and what it was captured from. */
typedef struct fa_graph {
    const fa_kernel *kernel; /* NULL: free */
    CUgraphExec exec;
    int32_t launches;
    uint64_t used;
    fa_launch launch;
    unsigned char params[sizeof(fa_params)];
} fa_graph;

/* The floor, two candidates, and the launch counts tried before the last one. */
#define FA_GRAPHS 6
typedef struct fa_graphs {
    fa_graph graphs[FA_GRAPHS];
    uint64_t uses;
} fa_graphs;

/* The graph of start event, request->launches launches, stop event; it has run once. */
fa_status fa_graphs_find(fa_cuda *cuda, fa_graphs *all, CUevent start, CUevent stop, fa_kernel *kernel,
                         const fa_sample_request *request, CUgraphExec *exec, fa_reason *why);
void fa_graphs_forget(fa_cuda *cuda, fa_graphs *all, const fa_kernel *kernel);
void fa_graphs_close(fa_cuda *cuda, fa_graphs *all);

#endif
