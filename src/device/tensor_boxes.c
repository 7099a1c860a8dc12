#include "device/tensor_boxes.h"

typedef struct tensor {
    const char *name;
    const void *address;
    fa_tensor_map *to;
    fa_i64 stride_b, stride_h, stride_s;
    fa_i32 heads, dim, rows;
    fa_i64 seq;
    fa_i32 batch;
} tensor;

static fa_tensor_box box_of(const tensor *of, const fa_params *p, fa_i32 cols)
{
    return (fa_tensor_box){
        .name = of->name,
        .address = of->address,
        .to = of->to,
        .dims = {(uint64_t)of->dim, (uint64_t)of->seq, (uint64_t)of->heads, (uint64_t)of->batch},
        .strides_bytes = {2 * (uint64_t)of->stride_s, 2 * (uint64_t)of->stride_h, 2 * (uint64_t)of->stride_b},
        .box = {(uint32_t)cols, (uint32_t)of->rows, 1, 1},
        .dtype = p->dtype,
        .swizzle_bytes = cols == 64 || cols == 32 || cols == 16 ? 2 * (uint32_t)cols : 0,
    };
}

fa_status fa_tensor_boxes(const fa_kernel_info *info, fa_params *p, fa_tensor_box boxes[FA_TENSOR_BOXES], int *count,
                          fa_reason *why)
{
    /* With lengths a head's rows lie one behind the other; K and V in pages are batches of pages. */
    const fa_i32 batch = p->start_q != NULL ? 1 : p->batch;
    const fa_i32 kv_batch = p->page_size > 0 ? p->num_pages : batch;
    const fa_i64 kv_rows = p->page_size > 0 ? p->page_size : p->total_kv;
    const tensor tensors[FA_TENSOR_BOXES] = {{"Q", p->q, &p->q_map, p->q_stride_b, p->q_stride_h, p->q_stride_s,
                                              p->heads, p->dim, info->tma_q_rows, p->total_q, batch},
                                             {"K", p->k, &p->k_map, p->k_stride_b, p->k_stride_h, p->k_stride_s,
                                              p->kv_heads, p->dim, info->tma_k_rows, kv_rows, kv_batch},
                                             {"V", p->v, &p->v_map, p->v_stride_b, p->v_stride_h, p->v_stride_s,
                                              p->kv_heads, p->dim_v, info->tma_v_rows, kv_rows, kv_batch},
                                             {"O", p->o, &p->o_map, p->o_stride_b, p->o_stride_h, p->o_stride_s,
                                              p->heads, p->dim_v, info->tma_o_rows, p->total_q, batch}};
    *count = 0;
    for (int i = 0; i < FA_TENSOR_BOXES; i++) {
        if (tensors[i].rows == 0)
            continue;
        const fa_tensor_box box = boxes[(*count)++] = box_of(&tensors[i], p, info->tma_cols);
        const uint64_t *apart = box.strides_bytes;
        if ((uintptr_t)box.address % 16 || (apart[0] | apart[1] | apart[2]) % 16)
            return fa_refuse(why, FA_INFEASIBLE,
                             "TMA needs rows on 16-byte boundaries: %s starts at %p; rows, heads and batches are %llu, "
                             "%llu and %llu bytes apart",
                             box.name, box.address, (unsigned long long)apart[0], (unsigned long long)apart[1],
                             (unsigned long long)apart[2]);
    }
    return FA_PASS;
}
