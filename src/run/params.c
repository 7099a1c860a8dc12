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
        .q_stride_b = q->stride_b,
        .q_stride_h = q->stride_h,
        .q_stride_s = q->stride_s,
        .k_stride_b = k->stride_b,
        .k_stride_h = k->stride_h,
        .k_stride_s = k->stride_s,
        .v_stride_b = v->stride_b,
        .v_stride_h = v->stride_h,
        .v_stride_s = v->stride_s,
        .o_stride_b = o->stride_b,
        .o_stride_h = o->stride_h,
        .o_stride_s = o->stride_s,
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
        .workspace = (void *)(uintptr_t)buffers->workspace,
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
