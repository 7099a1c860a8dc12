/* How the tensors of a problem lie in memory (--strides). */
#pragma once

#include "input/problem.h"

/* FA_L: the log-sum-exp, FP32: rows of two halves. Backward has them all as inputs, dO too, and the gradients;
 * FA_DSINKS are [heads] of FP32. */
enum { FA_Q, FA_K, FA_V, FA_O, FA_L, FA_DO, FA_DQ, FA_DK, FA_DV, FA_DSINKS, FA_TENSORS };
/* How many of them a problem has, from FA_Q on. */
static inline int fa_tensor_count(const fa_problem *problem, bool lse)
{
    return !problem->backward ? (lse ? FA_L + 1 : FA_L) : problem->sinks ? FA_TENSORS : FA_DSINKS;
}
static inline bool fa_tensor_is_fp32(int tensor) { return tensor == FA_L || tensor == FA_DSINKS; }

/* A tensor [batch, heads, seq, dim], in elements; the stride of dim is 1. Its memory is `blocks` ranges of block_count
 * elements, block_pitch apart: one range, except with FA_STRIDES_FAR. */
typedef struct fa_layout {
    fa_strides strides;
    int32_t batch, heads, seq, dim;
    bool fp8; /* an element takes a byte in memory, else two: fa_layout_bytes */
    int64_t stride_b, stride_h, stride_s;
    int64_t blocks, block_pitch;
    size_t block_count; /* from the first element to the last, gaps included */
} fa_layout;

/* Strides are multiples of 16 bytes where rows are, so rows keep the alignment of the first one, except with
 * FA_STRIDES_ODD: there 15 seeds in a row give the strides of rows, heads or batches a remainder, in all tensors or in
 * q, k, v or o alone, so that a kernel that looks at some of them only is found out; `seed` matters there alone. Padded
 * strides differ between tensors. The log-sum-exp stays packed with FA_STRIDES_FAR and FA_STRIDES_ODD, dsinks with all.
 */
fa_layout fa_layout_of(const fa_problem *problem, fa_strides strides, uint64_t seed, int tensor);
static inline int32_t fa_layout_bytes(const fa_layout *layout) { return layout->fp8 ? 1 : 2; }
size_t fa_layout_span(const fa_layout *layout);  /* elements from the first to the last, gaps included */
size_t fa_layout_dense(const fa_layout *layout); /* elements of a block without gaps; the same for all blocks */

/* Between `dense`, the packed tensor, and `image`, the block_count elements of one block in memory, both as the host
 * holds elements. */
void fa_layout_scatter(const fa_layout *layout, int64_t block, const uint16_t *dense, uint16_t gap, uint16_t *image);
void fa_layout_gather(const fa_layout *layout, int64_t block, const uint16_t *image, uint16_t *dense);
/* True when a block in memory is what `dense` holds: no gaps, no other order. */
bool fa_layout_is_dense(const fa_layout *layout);
/* The image: part of `dense`, or made in `scratch`. */
const uint16_t *fa_layout_image(const fa_layout *layout, int64_t block, const uint16_t *dense, uint16_t gap,
                                uint16_t *scratch);
/* Elements in the gaps of an image that are not `gap`. `first`: the offset of the first one, when there is one. */
size_t fa_layout_gaps_changed(const fa_layout *layout, int64_t block, const uint16_t *image, uint16_t gap,
                              size_t *first);
