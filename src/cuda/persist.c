#include "cuda/persist.h"

#include <math.h>
#include <stdlib.h>

#include "base/status.h"

/* One window from the first byte of K and V to the last. Of a larger window only a share persists. */
static fa_status window_of(const fa_cuda *cuda, const fa_params *p, CUaccessPolicyWindow *window, fa_reason *why)
{
    const int largest = fa_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
    const int room = fa_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
    const fa_i64 k_last =
        (p->batch - 1) * p->k_stride_b + (p->kv_heads - 1) * p->k_stride_h + (p->seq_kv - 1) * p->k_stride_s + p->dim;
    const fa_i64 v_last =
        (p->batch - 1) * p->v_stride_b + (p->kv_heads - 1) * p->v_stride_h + (p->seq_kv - 1) * p->v_stride_s + p->dim;
    const uintptr_t k = (uintptr_t)p->k, v = (uintptr_t)p->v, first = k < v ? k : v;
    const uintptr_t k_end = k + 2 * (uintptr_t)k_last, v_end = v + 2 * (uintptr_t)v_last;
    const uintptr_t bytes = (k_end > v_end ? k_end : v_end) - first;
    if (room <= 0 || largest <= 0 || !cuda->api.cuStreamSetAttribute || !cuda->api.cuGraphKernelNodeSetAttribute)
        return fa_refuse(why, FA_NOT_RUN, "--l2-persist: %s has no persistent L2 lines, or its driver is too old",
                         cuda->info.name);
    if (bytes > (uintptr_t)largest)
        return fa_refuse(why, FA_INFEASIBLE, "--l2-persist kv: K and V span %zu bytes, a window holds %d",
                         (size_t)bytes, largest);
    *window = (CUaccessPolicyWindow){
        .base_ptr = (void *)first, /* NOLINT: an address of the device */
        .num_bytes = bytes,
        .hitRatio = fminf(1.0f, (float)room / (float)bytes),
        .hitProp = CU_ACCESS_PROPERTY_PERSISTING,
        .missProp = CU_ACCESS_PROPERTY_STREAMING,
    };
    return FA_PASS;
}

fa_status fa_cuda_persist_begin(fa_cuda *cuda, const fa_params *params, fa_reason *why)
{
    CUlaunchAttributeValue value = {.pad = {0}};
    FA_TRY(window_of(cuda, params, &value.accessPolicyWindow, why));
    if (!cuda->lines_persist)
        FA_CUDA_TRY(cuda, cuCtxSetLimit,
                    (CU_LIMIT_PERSISTING_L2_CACHE_SIZE,
                     (size_t)fa_cuda_attribute(cuda, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE)));
    cuda->lines_persist = true;
    FA_CUDA_TRY(cuda, cuStreamSetAttribute, (cuda->stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
    return FA_PASS;
}

static fa_status set_nodes(fa_cuda *cuda, const CUgraphNode *nodes, size_t count, const CUlaunchAttributeValue *value,
                           fa_reason *why)
{
    for (size_t i = 0; i < count; i++) {
        CUgraphNodeType type;
        FA_CUDA_TRY(cuda, cuGraphNodeGetType, (nodes[i], &type));
        if (type == CU_GRAPH_NODE_TYPE_KERNEL)
            FA_CUDA_TRY(cuda, cuGraphKernelNodeSetAttribute,
                        (nodes[i], CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, value));
    }
    return FA_PASS;
}

fa_status fa_cuda_persist_graph(fa_cuda *cuda, const fa_params *params, CUgraph graph, fa_reason *why)
{
    CUlaunchAttributeValue value = {.pad = {0}};
    size_t count = 0;
    FA_TRY(window_of(cuda, params, &value.accessPolicyWindow, why));
    FA_CUDA_TRY(cuda, cuGraphGetNodes, (graph, NULL, &count));
    CUgraphNode *nodes = fa_alloc(count * sizeof *nodes);
    const CUresult got = cuda->api.cuGraphGetNodes(graph, nodes, &count);
    const fa_status status = got == CUDA_SUCCESS ? set_nodes(cuda, nodes, count, &value, why)
                                                 : fa_cuda_refuse(cuda, got, "cuGraphGetNodes", why);
    free(nodes);
    return status;
}

void fa_cuda_persist_end(fa_cuda *cuda)
{
    const CUlaunchAttributeValue none = {.pad = {0}};
    cuda->api.cuStreamSetAttribute(cuda->stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &none);
}

/* GPUs before sm_80 have no persistent lines and refuse these calls: not an error. */
void fa_cuda_reset_l2(fa_cuda *cuda)
{
    cuda->lines_persist = false;
    cuda->api.cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0);
    if (cuda->api.cuCtxResetPersistingL2Cache)
        cuda->api.cuCtxResetPersistingL2Cache();
}
