/* The `cudnn` baseline: fused attention by cuDNN's backend API, inference only, FP16 or BF16 with FP32
 * sums.
 * The plan is the first that its heuristics offer (mode A, then the fallback list) and that it can build: what PyTorch
 * runs. Where cuDNN has no library, no plan or no such mask the baseline is not run, in cuDNN's words. */
#include "cuda/cudnn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cuda/cudnn_graph.h"

enum { MAX_CONFIGS = 16, MAX_PACKS = 8 };

/* The pointers of one launch and the descriptor that binds them. Making one takes as long as a short kernel. */
typedef struct fa_cudnn_pack {
    const void *q, *k, *v, *o;
    void *descriptor;
} fa_cudnn_pack;

typedef struct fa_cudnn {
    fa_cudnn_api api;
    void *handle, *plan;
    fa_cudnn_graph graph;
    fa_problem problem;
    bool bottom_right;
    float scale, masked; /* read by cuDNN at every execution, so they live here */
    int32_t seq_kv, seq_q;
    CUdeviceptr workspace;
    CUstream stream;
    bool bound;
    fa_cudnn_pack packs[MAX_PACKS];
    int32_t next_pack;
} fa_cudnn;

/* Engine configurations in the order of preference; returns how many. */
static int32_t ask_heuristics(fa_cudnn *self, void *operation_graph, int mode, void *configs[MAX_CONFIGS])
{
    fa_cudnn_graph *graph = &self->graph;
    void *heuristics = fa_cudnn_descriptor(graph, FA_CUDNN_ENGINEHEUR);
    fa_cudnn_set(graph, heuristics, FA_CUDNN_ENGINEHEUR_OPERATION_GRAPH, FA_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                 &operation_graph);
    fa_cudnn_set(graph, heuristics, FA_CUDNN_ENGINEHEUR_MODE, FA_CUDNN_TYPE_HEUR_MODE, 1, &mode);
    fa_cudnn_finalize(graph, heuristics, "no engine for this attention");
    for (int32_t i = 0; i < MAX_CONFIGS; i++)
        configs[i] = fa_cudnn_descriptor(graph, FA_CUDNN_ENGINECFG);
    if (graph->status != FA_PASS)
        return 0;
    int64_t count = 0;
    const int code = self->api.get_attribute(heuristics, FA_CUDNN_ENGINEHEUR_RESULTS, FA_CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                             MAX_CONFIGS, &count, configs);
    graph->status = fa_cudnn_check(&self->api, code, FA_NOT_RUN, "engines that the heuristics offer", graph->why);
    return graph->status == FA_PASS ? (int32_t)(count < MAX_CONFIGS ? count : MAX_CONFIGS) : 0;
}

/* NULL with the reason in the graph when this configuration cannot be built. */
static void *build_plan(fa_cudnn *self, void *config)
{
    fa_cudnn_graph *graph = &self->graph;
    void *plan = fa_cudnn_descriptor(graph, FA_CUDNN_EXECUTION_PLAN);
    fa_cudnn_set(graph, plan, FA_CUDNN_EXECUTION_PLAN_HANDLE, FA_CUDNN_TYPE_HANDLE, 1, &self->handle);
    fa_cudnn_set(graph, plan, FA_CUDNN_EXECUTION_PLAN_ENGINE_CONFIG, FA_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    fa_cudnn_finalize(graph, plan, "no plan for this attention");
    return graph->status == FA_PASS ? plan : NULL;
}

static fa_status find_plan(fa_cudnn *self, void *operation_graph)
{
    fa_cudnn_graph *graph = &self->graph;
    static const int modes[] = {FA_CUDNN_HEUR_A, FA_CUDNN_HEUR_FALLBACK};
    for (size_t i = 0; i < sizeof modes / sizeof *modes && !self->plan; i++) {
        void *configs[MAX_CONFIGS];
        graph->status = FA_PASS;
        const int32_t count = ask_heuristics(self, operation_graph, modes[i], configs);
        for (int32_t config = 0; config < count && !self->plan; config++) {
            graph->status = FA_PASS;
            self->plan = build_plan(self, configs[config]);
        }
    }
    if (self->plan)
        return FA_PASS;
    if (graph->status != FA_PASS)
        return graph->status;
    return fa_cudnn_check(&self->api, FA_CUDNN_NOT_SUPPORTED, FA_NOT_RUN,
                          "the heuristics offer no engine for this attention", graph->why);
}

/* FA_NOT_RUN when cuDNN cannot apply the mask of this problem. */
static fa_status check_mask(fa_cudnn *self, fa_reason *why)
{
    const fa_problem *p = &self->problem;
    self->bottom_right = p->causal && p->seq_q != p->seq_kv;
    if (self->bottom_right && p->seq_q > p->seq_kv)
        return fa_refuse(why, FA_NOT_RUN, "%s: a bottom-right causal mask needs seq_q <= seq_kv (here %d and %d)",
                         self->api.name, p->seq_q, p->seq_kv);
    if (self->bottom_right && self->api.version < 90600)
        return fa_refuse(why, FA_NOT_RUN, "%s: bottom-right causal masks need cuDNN 9.6", self->api.name);
    return FA_PASS;
}

static fa_status reserve_workspace(fa_kernel *kernel, fa_reason *why)
{
    fa_cudnn *self = kernel->self;
    int64_t bytes = 0, count = 0;
    const int code = self->api.get_attribute(self->plan, FA_CUDNN_EXECUTION_PLAN_WORKSPACE_SIZE, FA_CUDNN_TYPE_INT64, 1,
                                             &count, &bytes);
    FA_TRY(fa_cudnn_check(&self->api, code, FA_ERROR, "workspace size of the plan", why));
    return bytes > 0 ? fa_cuda_reserve(kernel->cuda, self->api.name, &self->workspace, (size_t)bytes, why) : FA_PASS;
}

static fa_status make_pack(fa_cudnn *self, const fa_params *p, void *descriptor, fa_reason *why)
{
    const int64_t uids[] = {FA_CUDNN_Q,     FA_CUDNN_K,      FA_CUDNN_V,      FA_CUDNN_O,
                            FA_CUDNN_SCALE, FA_CUDNN_MASKED, FA_CUDNN_SEQ_KV, FA_CUDNN_SEQ_Q};
    const void *pointers[] = {p->q, p->k, p->v, p->o, &self->scale, &self->masked, &self->seq_kv, &self->seq_q};
    const int64_t count = self->bottom_right ? 8 : self->problem.causal ? 6 : 5; /* the tensors this graph has */
    void *workspace = (void *)self->workspace;
    fa_cudnn_graph step = {.api = &self->api, .why = why};
    fa_cudnn_set(&step, descriptor, FA_CUDNN_VARIANT_PACK_UNIQUE_IDS, FA_CUDNN_TYPE_INT64, count, uids);
    fa_cudnn_set(&step, descriptor, FA_CUDNN_VARIANT_PACK_DATA_POINTERS, FA_CUDNN_TYPE_VOID_PTR, count, pointers);
    fa_cudnn_set(&step, descriptor, FA_CUDNN_VARIANT_PACK_WORKSPACE, FA_CUDNN_TYPE_VOID_PTR, 1, &workspace);
    fa_cudnn_finalize(&step, descriptor, "cudnnBackendFinalize of the variant pack");
    return step.status;
}

static fa_status find_pack(fa_cudnn *self, const fa_params *p, void **descriptor, fa_reason *why)
{
    for (int32_t i = 0; i < MAX_PACKS; i++) {
        const fa_cudnn_pack *pack = &self->packs[i];
        if (pack->descriptor && pack->q == p->q && pack->k == p->k && pack->v == p->v && pack->o == p->o) {
            *descriptor = pack->descriptor;
            return FA_PASS;
        }
    }
    fa_cudnn_pack *pack = &self->packs[self->next_pack];
    self->next_pack = (self->next_pack + 1) % MAX_PACKS;
    if (pack->descriptor)
        self->api.destroy_descriptor(pack->descriptor);
    *pack = (fa_cudnn_pack){.q = p->q, .k = p->k, .v = p->v, .o = p->o};
    void *made = NULL;
    FA_TRY(fa_cudnn_check(&self->api, self->api.create_descriptor(FA_CUDNN_VARIANT_PACK, &made), FA_ERROR,
                          "cudnnBackendCreateDescriptor of a variant pack", why));
    const fa_status status = make_pack(self, p, made, why);
    if (status != FA_PASS) {
        self->api.destroy_descriptor(made);
        return status;
    }
    *descriptor = pack->descriptor = made;
    return FA_PASS;
}

static bool is_contiguous(const fa_params *p)
{
    return p->q_stride_s == p->dim && p->q_stride_h == p->q_stride_s * p->seq_q &&
           p->q_stride_b == p->q_stride_h * p->heads && p->o_stride_s == p->dim &&
           p->o_stride_h == p->o_stride_s * p->seq_q && p->o_stride_b == p->o_stride_h * p->heads &&
           p->k_stride_s == p->dim && p->k_stride_h == p->k_stride_s * p->seq_kv &&
           p->k_stride_b == p->k_stride_h * p->kv_heads && p->v_stride_s == p->dim &&
           p->v_stride_h == p->v_stride_s * p->seq_kv && p->v_stride_b == p->v_stride_h * p->kv_heads;
}

static fa_status enqueue(fa_kernel *kernel, const fa_launch *launch, const fa_params *p, CUstream stream,
                         fa_reason *why)
{
    (void)launch;
    fa_cudnn *self = kernel->self;
    const fa_problem *made_for = &self->problem;
    FA_ASSERT(p->seq_q == made_for->seq_q && p->seq_kv == made_for->seq_kv && p->dim == made_for->dim &&
                  p->batch == made_for->batch && p->heads == made_for->heads && p->kv_heads == made_for->kv_heads,
              "launched with another problem than it was made for");
    if (!is_contiguous(p))
        return fa_refuse(why, FA_INFEASIBLE, "%s: its plan is for packed tensors", self->api.name);
    if (((uintptr_t)p->q | (uintptr_t)p->k | (uintptr_t)p->v | (uintptr_t)p->o) % 16 != 0)
        return fa_refuse(why, FA_INFEASIBLE, "%s: its plans need tensors aligned to 16 bytes", self->api.name);
    if (!self->bound || self->stream != stream) {
        FA_TRY(fa_cudnn_check(&self->api, self->api.set_stream(self->handle, stream), FA_ERROR, "cudnnSetStream", why));
        self->stream = stream;
        self->bound = true;
    }
    self->scale = p->scale;
    void *pack = NULL;
    FA_TRY(find_pack(self, p, &pack, why));
    return fa_cudnn_check(&self->api, self->api.execute(self->handle, self->plan, pack), FA_ERROR,
                          "cudnnBackendExecute", why);
}

static void destroy(fa_kernel *kernel)
{
    fa_cudnn *self = kernel->self;
    for (int32_t i = 0; i < MAX_PACKS; i++)
        if (self->packs[i].descriptor)
            self->api.destroy_descriptor(self->packs[i].descriptor);
    fa_cudnn_graph_free(&self->graph);
    if (self->handle)
        self->api.destroy(self->handle);
    if (self->workspace)
        kernel->cuda->api.cuMemFree(self->workspace);
}

static fa_status make(fa_kernel *kernel, const fa_problem *problem, fa_reason *why)
{
    fa_cudnn *self = kernel->self;
    FA_TRY(fa_cudnn_api_open(&self->api, why));
    self->problem = *problem;
    self->scale = problem->scale;
    /* Before 9.10 the engines wanted a finite value there (cuDNN 9.10 release notes; cudnn-frontend does the same). */
    self->masked = self->api.version < 91000 ? -3.402823466e+38f : -INFINITY;
    self->seq_q = problem->seq_q;
    self->seq_kv = problem->seq_kv;
    FA_TRY(check_mask(self, why));
    FA_TRY(fa_cudnn_check(&self->api, self->api.create(&self->handle), FA_NOT_RUN, "cudnnCreate", why));
    self->graph = (fa_cudnn_graph){.api = &self->api, .why = why};
    void *operation_graph = fa_cudnn_attention(&self->graph, self->handle, problem, self->bottom_right);
    FA_TRY(self->graph.status);
    FA_TRY(find_plan(self, operation_graph));
    return reserve_workspace(kernel, why);
}

static fa_status create(fa_cuda *cuda, const fa_spec *spec, const fa_problem *problem, fa_kernel **kernel,
                        fa_reason *why)
{
    (void)spec;
    fa_kernel *made = fa_cuda_kernel_new(cuda, sizeof(fa_cudnn), enqueue, destroy);
    return fa_cuda_kernel_made(made, make(made, problem, why), kernel);
}

static fa_status describe(const fa_spec *spec, const fa_library_question *question, fa_library_facts *facts,
                          fa_reason *why)
{
    (void)spec, (void)question;
    fa_cudnn_api api;
    FA_TRY(fa_cudnn_api_open(&api, why));
    *facts = (fa_library_facts){.name = "cuDNN", .serves_bf16 = true};
    snprintf(facts->version, sizeof facts->version, "%s", strchr(api.name, ' ') + 1);
    return FA_PASS;
}

const fa_library fa_cudnn_library = {.describe = describe, .create = create};
