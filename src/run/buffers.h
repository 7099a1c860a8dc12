/* The tensors of one candidate on a device. Each lies between guard bands of NaN, and gaps between its rows
 * hold the same: a read out of bounds gives NaN in the output, a write out of bounds changes a guard or a gap. */
#pragma once

#include "device/device.h"
#include "input/tensors.h"
#include "run/capacity.h"
#include "run/tables.h"

/* Behind the tensors: the workspace, in halves. */
enum { FA_WORKSPACE = FA_TENSORS };

typedef struct fa_buffers {
    fa_device *device;
    const fa_problem *problem; /* whose layout it is */
    int tensors;               /* fa_tensor_count */
    fa_layout
        layout[FA_TENSORS + 1];      /* of q, k, v, o, lse, ...; FP32 in halves; FA_WORKSPACE: blocks and count alone */
    fa_ptr base[FA_TENSORS + 1];     /* guard, tensor, guard; each an allocation of its own, but for: */
    bool v_after_k;                  /* --l2-persist kv: V follows K, as one window of the L2 must hold both */
    size_t capacity[FA_TENSORS + 1]; /* elements between the guards: the layout's span, or more */
    size_t count[FA_TENSORS];        /* elements of the tensor alone, without gaps */
    size_t offset;                   /* elements from base to a tensor: the guard and --misalign */
    int32_t clean;                   /* a bit for each tensor, and for the tables: 0 in place of NaN around its rows */
    fa_tables tables;                /* of the features */
    int64_t workspace_bytes;
} fa_buffers;

/* A guard band before and after a part of a tensor that lies far from the others (FA_STRIDES_FAR). */
#define FA_FAR_GUARD_COUNT 4096

static inline bool fa_buffers_write(const fa_buffers *buffers, int tensor)
{
    const bool backward = buffers->problem != NULL && buffers->problem->backward;
    return tensor < buffers->tensors && tensor >= (backward ? FA_DQ : FA_O);
}

static inline bool fa_buffers_has_lse(const fa_buffers *buffers) { return fa_buffers_write(buffers, FA_L); }

/* Elements of the tensors that a launch writes, but for FP32 ones: of O, or of dQ, dK and dV. */
static inline size_t fa_buffers_output_count(const fa_buffers *buffers)
{
    size_t count = 0;
    for (int tensor = FA_O; tensor < buffers->tensors; tensor++)
        count += fa_buffers_write(buffers, tensor) && !fa_tensor_is_fp32(tensor) ? buffers->count[tensor] : 0;
    return count;
}

/* The same with dsinks: two halves an element. */
static inline size_t fa_buffers_output_halves(const fa_buffers *buffers)
{
    const bool more = buffers->tensors > FA_DSINKS;
    return fa_buffers_output_count(buffers) + (more ? buffers->count[FA_DSINKS] : 0);
}

/* As --strides, --seed and --misalign say. FA_INFEASIBLE, before anything is allocated, when the tensors do not fit in
 * the device's memory, or the copies that a check makes do not fit in the host's. */
fa_status fa_buffers_make(fa_device *device, const fa_problem *problem, int64_t workspace_bytes,
                          const fa_options *options, bool lse, fa_buffers *buffers, fa_reason *why);
/* Another layout in the same memory; contents are lost. False where there is no room for it: nothing has changed. */
bool fa_buffers_lay(fa_buffers *buffers, const fa_problem *problem, fa_strides strides, uint64_t seed);
void fa_buffers_free(fa_buffers *buffers);

fa_ptr fa_buffers_at(const fa_buffers *buffers, int tensor);    /* the first element of FA_Q, ... */
size_t fa_buffers_bytes(const fa_buffers *buffers, int tensor); /* from the first element to the last, with gaps */
/* Copies the inputs in, rewrites the guards, fills the output and the log-sum-exp with NaN. */
fa_status fa_buffers_fill(fa_buffers *buffers, const fa_tensors *tensors, fa_reason *why);
fa_status fa_buffers_poison_output(const fa_buffers *buffers, fa_reason *why);
/* dense: as the host has the tensor, packed. Gaps between its rows become NaN. */
fa_status fa_buffers_put(const fa_buffers *buffers, int tensor, const uint16_t *dense, fa_reason *why);
/* Copies the output to the host: [batch, heads, seq_q, dim_v] as stored, without gaps between its rows. Backward: dQ,
 * dK, dV and dsinks, one behind the other. */
fa_status fa_buffers_output(const fa_buffers *buffers, uint16_t *output, fa_reason *why);
/* The same. FA_WRONG when a guard band, a gap, a row between sequences or an input has changed: the reason says which
 * and where. */
fa_status fa_buffers_read(const fa_buffers *buffers, const fa_tensors *tensors, uint16_t *output, fa_reason *why);
/* Copies the log-sum-exp to the host ([batch, heads, seq_q]), where there is one. FA_WRONG when a gap or a row
 * between sequences has changed. */
fa_status fa_buffers_read_lse(const fa_buffers *buffers, float *lse, fa_reason *why);
