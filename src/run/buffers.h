/* The four tensors on a device, each between guard bands of FP16 NaN (a read out of bounds surfaces as NaN, a write as
 * a changed guard), and the parameters of a launch over them. */
#ifndef FA_BUFFERS_H
#define FA_BUFFERS_H

#include "device/device.h"
#include "input/tensors.h"

typedef struct fa_buffers {
    fa_ptr base[4];  /* q, k, v, o: guard, tensor, guard */
    size_t count[4]; /* elements of the tensor proper */
    size_t offset;   /* halves from base to the tensor: the guard and --misalign */
    fa_ptr workspace;
    int64_t workspace_bytes;
} fa_buffers;

/* Halves of a guard band: a tile of 64 rows at dim 256. The same before and after each tensor. */
#define FA_GUARD_COUNT 16384

/* FA_INFEASIBLE, before anything is allocated, when the memory of the device, or the host's for its copies, cannot hold
 * it. */
fa_status fa_buffers_make(fa_device *device, const fa_problem *problem, int64_t workspace_bytes, int32_t misalign,
                          fa_buffers *buffers, fa_reason *why);
void fa_buffers_free(fa_device *device, fa_buffers *buffers);
fa_params fa_buffers_params(const fa_buffers *buffers, const fa_problem *problem, const fa_launch *launch,
                            int32_t sm_count);

/* New contents in place; guards rewritten; the output filled with NaN. */
fa_status fa_buffers_fill(fa_device *device, const fa_buffers *buffers, const fa_tensors *tensors, fa_reason *why);
fa_status fa_buffers_poison_output(fa_device *device, const fa_buffers *buffers, fa_reason *why);
/* Output to the host ([batch, heads, seq_q, dim]). FA_WRONG when a guard band or an input changed: says which, and
 * where. */
fa_status fa_buffers_read(fa_device *device, const fa_buffers *buffers, const fa_tensors *tensors, uint16_t *output,
                          fa_reason *why);

#endif
