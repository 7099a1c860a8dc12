#include "device/tensor_boxes.h"

typedef struct tensor {
    const char *name;
    const void *address;
    fa_tensor_map *to;
    fa_i64 stride_b, stride_h, stride_s;
    fa_i32 heads, dim, rows;
    fa_i32 seq, batch;
    fa_i64 total; /* rows of all sequences, where they have lengths; else -1 */
    fa_i32 dtype;
} tensor;

/* cols: elements of 16 bits; a box of FP8 is as wide in bytes. */
static fa_tensor_box box_of(const tensor *of, fa_i32 cols)
{
    const uint64_t bytes = of->dtype == FA_DTYPE_E4M3 ? 1 : 2;
    return (fa_tensor_box){
        .name = of->name,
        .address = of->address,
        .to = of->to,
        .dims = {(uint64_t)of->dim, (uint64_t)of->seq, (uint64_t)of->heads, (uint64_t)of->batch},
        .strides_bytes = {bytes * (uint64_t)of->stride_s, bytes * (uint64_t)of->stride_h,
                          bytes * (uint64_t)of->stride_b},
        .box = {2 * (uint32_t)cols / (uint32_t)bytes, (uint32_t)of->rows, 1, 1},
        .dtype = of->dtype,
        .swizzle_bytes = cols == 64 || cols == 32 || cols == 16 ? 2 * (uint32_t)cols : 0,
    };
}

/* With lengths a head's rows lie one behind the other. The map has the rows of the longest sequence; its last
 * dimension is where a sequence ends. Row i of a sequence of n rows is at (.., longest - n + i, .., end), and rows past
 * its end are out of bounds. The map begins `longest` rows before the tensor; no row of a sequence is there. */
static fa_tensor_box ragged_box_of(const tensor *of, fa_i32 cols)
{
    fa_tensor_box box = box_of(of, cols);
    box.dims[1] = of->seq > 0 ? (uint64_t)of->seq : 1;
    box.dims[3] = (uint64_t)of->total + 1;
    box.strides_bytes[2] = box.strides_bytes[0];
    box.address = (const void *)((uintptr_t)of->address - box.dims[1] * box.strides_bytes[0]);
    return box;
}

fa_status fa_tensor_boxes(const fa_kernel_info *info, fa_params *p, fa_tensor_box boxes[FA_TENSOR_BOXES], int *count,
                          fa_reason *why)
{
    const bool ragged = p->start_q != NULL, paged = p->page_size > 0; /* K and V in pages are batches of pages */
    const bool backward = p->dout != NULL;
    const fa_i64 o_stride[] = {p->o_stride_b, p->o_stride_h, p->o_stride_s};
    const fa_i64 *o = backward ? p->grad_stride[0] : o_stride;
    const fa_i32 kv_batch = paged ? p->num_pages : p->batch, kv_rows = paged ? p->page_size : p->seq_kv;
    const fa_i64 total_q = ragged ? p->total_q : -1, total_kv = ragged && !paged ? p->total_kv : -1;
    const tensor tensors[FA_TENSOR_BOXES] = {
        {"Q", p->q, &p->q_map, p->q_stride_b, p->q_stride_h, p->q_stride_s, p->heads, p->dim, info->tma_q_rows,
         p->seq_q, p->batch, total_q, p->dtype},
        {"K", p->k, &p->k_map, p->k_stride_b, p->k_stride_h, p->k_stride_s, p->kv_heads, p->dim, info->tma_k_rows,
         kv_rows, kv_batch, total_kv, p->dtype_kv},
        {"V", p->v, &p->v_map, p->v_stride_b, p->v_stride_h, p->v_stride_s, p->kv_heads, p->dim_v, info->tma_v_rows,
         kv_rows, kv_batch, total_kv, p->dtype_kv},
        {backward ? "dO" : "O", backward ? p->dout : p->o, &p->o_map, o[0], o[1], o[2], p->heads, p->dim_v,
         info->tma_o_rows, p->seq_q, p->batch, total_q, p->dtype_o}};
    *count = 0;
    for (int i = 0; i < FA_TENSOR_BOXES; i++) {
        if (tensors[i].rows == 0)
            continue;
        const fa_tensor_box box =
            tensors[i].total >= 0 ? ragged_box_of(&tensors[i], info->tma_cols) : box_of(&tensors[i], info->tma_cols);
        const uint64_t *apart = box.strides_bytes;
        const bool aligned = ((uintptr_t)box.address | apart[0] | apart[1] | apart[2]) % 16 == 0;
        if (!aligned && tensors[i].dtype == FA_DTYPE_E4M3 && p->dtype != FA_DTYPE_E4M3) /* an FP8 cache: no map */
            continue;
        if (!aligned)
            return fa_refuse(why, FA_INFEASIBLE,
                             "TMA needs rows on 16-byte boundaries: %s starts %d past one; rows, heads and batches are "
                             "%llu, %llu and %llu bytes apart",
                             box.name, (int)((uintptr_t)tensors[i].address % 16), (unsigned long long)apart[0],
                             (unsigned long long)apart[1], (unsigned long long)apart[2]);
        boxes[(*count)++] = box;
    }
    return FA_PASS;
}
