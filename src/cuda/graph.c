#include "cuda/graph.h"

#include <string.h>

#include "cuda/persist.h"

static void drop_graph(fa_cuda *cuda, fa_graph *entry)
{
    if (entry->exec)
        cuda->api.cuGraphExecDestroy(entry->exec);
    *entry = (fa_graph){0};
}

/* Capture turns the two events into nodes of the graph (CU_EVENT_RECORD_EXTERNAL). */
static fa_status put_captured(fa_cuda *cuda, CUevent start, CUevent stop, fa_kernel *kernel,
                              const fa_sample_request *request, fa_reason *why)
{
    FA_CUDA_TRY(cuda, cuEventRecordWithFlags, (start, cuda->stream, CU_EVENT_RECORD_EXTERNAL));
    FA_TRY(fa_cuda_enqueue(kernel, request, request->launches, why));
    FA_CUDA_TRY(cuda, cuEventRecordWithFlags, (stop, cuda->stream, CU_EVENT_RECORD_EXTERNAL));
    return FA_PASS;
}

static fa_status capture(fa_cuda *cuda, CUevent start, CUevent stop, fa_kernel *kernel,
                         const fa_sample_request *request, CUgraphExec *exec, fa_reason *why)
{
    FA_CUDA_TRY(cuda, cuStreamBeginCapture, (cuda->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    const fa_status put = put_captured(cuda, start, stop, kernel, request, why);
    CUgraph graph = NULL;
    const CUresult ended = cuda->api.cuStreamEndCapture(cuda->stream, &graph); /* also after a failure: ends the mode */
    FA_TRY(put);
    if (ended != CUDA_SUCCESS)
        return fa_cuda_refuse(cuda, ended, "cuStreamEndCapture", why);
    const fa_status persists =
        request->persist_kv ? fa_cuda_persist_graph(cuda, &request->params, graph, why) : FA_PASS;
    const CUresult made = persists == FA_PASS ? cuda->api.cuGraphInstantiateWithFlags(exec, graph, 0) : CUDA_SUCCESS;
    cuda->api.cuGraphDestroy(graph);
    FA_TRY(persists);
    if (made != CUDA_SUCCESS)
        return fa_cuda_refuse(cuda, made, "cuGraphInstantiateWithFlags", why);
    /* Uploaded and launched once here: never a first launch behind the blocking kernel. */
    FA_CUDA_TRY(cuda, cuGraphUpload, (*exec, cuda->stream));
    FA_CUDA_TRY(cuda, cuGraphLaunch, (*exec, cuda->stream));
    FA_CUDA_TRY(cuda, cuStreamSynchronize, (cuda->stream));
    return FA_PASS;
}

static bool same_graph(const fa_graph *entry, const fa_kernel *kernel, const fa_sample_request *request)
{
    return entry->kernel == kernel && entry->launches == request->launches &&
           entry->persist_kv == request->persist_kv &&
           memcmp(&entry->launch, &request->launch, sizeof entry->launch) == 0 &&
           memcmp(entry->params, &request->params, sizeof entry->params) == 0;
}

fa_status fa_graphs_find(fa_cuda *cuda, fa_graphs *all, CUevent start, CUevent stop, fa_kernel *kernel,
                         const fa_sample_request *request, CUgraphExec *exec, fa_reason *why)
{
    fa_graph *entry = &all->graphs[0]; /* becomes the least recently used one */
    for (int i = 0; i < FA_GRAPHS; i++) {
        if (same_graph(&all->graphs[i], kernel, request)) {
            all->graphs[i].used = ++all->uses;
            *exec = all->graphs[i].exec;
            return FA_PASS;
        }
        if (all->graphs[i].used < entry->used)
            entry = &all->graphs[i];
    }
    drop_graph(cuda, entry);
    const fa_status status = capture(cuda, start, stop, kernel, request, &entry->exec, why);
    if (status != FA_PASS) {
        drop_graph(cuda, entry);
        return status;
    }
    entry->kernel = kernel;
    entry->launches = request->launches;
    entry->persist_kv = request->persist_kv;
    entry->launch = request->launch;
    entry->used = ++all->uses;
    memcpy(entry->params, &request->params, sizeof entry->params);
    *exec = entry->exec;
    return FA_PASS;
}

void fa_graphs_forget(fa_cuda *cuda, fa_graphs *all, const fa_kernel *kernel)
{
    for (int i = 0; i < FA_GRAPHS; i++)
        if (all->graphs[i].kernel == kernel)
            drop_graph(cuda, &all->graphs[i]);
}

void fa_graphs_close(fa_cuda *cuda, fa_graphs *all)
{
    for (int i = 0; i < FA_GRAPHS; i++)
        drop_graph(cuda, &all->graphs[i]);
}
