#include "run/params.h"

static void add_gradients(const fa_buffers *buffers, const fa_problem *problem, fa_params *params)
{
    static const int tensors[4] = {FA_DO, FA_DQ, FA_DK, FA_DV};
    params->deterministic = problem->deterministic;
    params->dout = (const void *)(uintptr_t)fa_buffers_at(buffers, FA_DO);
    params->dq = (void *)(uintptr_t)fa_buffers_at(buffers, FA_DQ);
    params->dk = (void *)(uintptr_t)fa_buffers_at(buffers, FA_DK);
    params->dv = (void *)(uintptr_t)fa_buffers_at(buffers, FA_DV);
    if (problem->sinks && buffers->base[FA_DSINKS])
        params->dsinks = (fa_f32 *)(uintptr_t)fa_buffers_at(buffers, FA_DSINKS);
    for (int i = 0; i < 4; i++) {
        const fa_layout *layout = &buffers->layout[tensors[i]];
        params->grad_stride[i][0] = layout->stride_b;
        params->grad_stride[i][1] = layout->stride_h;
        params->grad_stride[i][2] = layout->stride_s;
    }
}

#define STRIDES(of) .of##_stride_b = of->stride_b, .of##_stride_h = of->stride_h, .of##_stride_s = of->stride_s
fa_params fa_buffers_params(const fa_buffers *buffers, const fa_problem *problem, const fa_launch *launch)
{
    const fa_layout *q = &buffers->layout[FA_Q], *k = &buffers->layout[FA_K];
    const fa_layout *v = &buffers->layout[FA_V], *o = &buffers->layout[FA_O];
    const fa_layout *l = &buffers->layout[FA_L]; /* two halves are a float */
    const bool lse = buffers->tensors > FA_L;
    fa_params params = {
        .q = (const void *)(uintptr_t)fa_buffers_at(buffers, FA_Q),
        .k = (const void *)(uintptr_t)fa_buffers_at(buffers, FA_K),
        .v = (const void *)(uintptr_t)fa_buffers_at(buffers, FA_V),
        .o = (void *)(uintptr_t)fa_buffers_at(buffers, FA_O),
        STRIDES(q),
        STRIDES(k),
        STRIDES(v),
        STRIDES(o),
        .batch = problem->batch,
        .heads = problem->heads,
        .kv_heads = problem->kv_heads,
        .seq_q = problem->seq_q,
        .seq_kv = problem->seq_kv,
        .dim = problem->dim,
        .causal = problem->causal,
        .scale = problem->scale,
        .tiles_m = launch->tiles_m,
        .tiles = launch->tiles,
        .sm_count = buffers->device != NULL ? buffers->device->info.sm_count : 0,
        .workspace = buffers->base[FA_WORKSPACE] ? (void *)(uintptr_t)fa_buffers_at(buffers, FA_WORKSPACE) : NULL,
        .workspace_bytes = buffers->workspace_bytes,
        .lse = lse ? (fa_f32 *)(uintptr_t)fa_buffers_at(buffers, FA_L) : NULL,
        .lse_stride_b = l->stride_b / 2,
        .lse_stride_h = l->stride_h / 2,
        .lse_stride_s = l->stride_s / 2,
        .dtype = problem->dtype,
    };
    fa_tables_params(&buffers->tables, problem, &params);
    if (problem->backward)
        add_gradients(buffers, problem, &params);
    return params;
}
