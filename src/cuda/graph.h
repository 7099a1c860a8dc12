/* CUDA graphs: a number of identical launches between two events. A graph is captured once and kept. */
#pragma once

#include "cuda/context.h"

/* A captured graph and what it was captured from. */
typedef struct fa_graph {
    const fa_kernel *kernel; /* NULL: free */
    CUgraphExec exec;
    int32_t launches;
    bool persist_kv;
    uint64_t used;
    fa_launch launch;
    unsigned char params[sizeof(fa_params)];
} fa_graph;

/* Enough for the empty kernel, two candidates, and the launch counts that calibration tries. */
#define FA_GRAPHS 6
typedef struct fa_graphs {
    fa_graph graphs[FA_GRAPHS];
    uint64_t uses;
} fa_graphs;

/* The graph of a start event, request->launches launches and a stop event; if missing, captured and run once. */
fa_status fa_graphs_find(fa_cuda *cuda, fa_graphs *all, CUevent start, CUevent stop, fa_kernel *kernel,
                         const fa_sample_request *request, CUgraphExec *exec, fa_reason *why);
void fa_graphs_forget(fa_cuda *cuda, fa_graphs *all, const fa_kernel *kernel);
void fa_graphs_close(fa_cuda *cuda, fa_graphs *all);
