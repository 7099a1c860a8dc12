#include "input/layout.h"

#include <stdlib.h>
#include <string.h>

/* With FA_STRIDES_FAR the last block begins further than this from the first: beyond an offset in 32 bits. */
static const int64_t FAR = (int64_t)1 << 31;

static void pack(fa_layout *l, int64_t pad_s, int64_t pad_h, int64_t pad_b)
{
    l->stride_s = l->dim + pad_s;
    l->stride_h = l->seq * l->stride_s + pad_h;
    l->stride_b = l->heads * l->stride_h + pad_b;
}

/* Elements of 16 bytes. */
static int64_t unit_of(const fa_layout *l) { return 16 / fa_layout_bytes(l); }

static int64_t to_a_multiple(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

/* One dimension's stride has a remainder of 1, 2 or 4 elements; those outside it are multiples of 16 bytes
 * again. */
static void pack_odd(fa_layout *l, bool backward, uint64_t seed, int tensor)
{
    enum { ROWS, HEADS, BATCHES, DIMENSIONS };
    const uint64_t kinds = 1 + (backward ? FA_DSINKS : FA_L);
    const uint64_t of = seed % kinds, dimension = seed / kinds % DIMENSIONS;
    const int64_t rest = of == 0 || of == 1 + (uint64_t)tensor ? (int64_t)1 << seed % 3 : 0;
    l->stride_s = l->dim + (dimension == ROWS ? rest : 0);
    l->stride_h = to_a_multiple(l->seq * l->stride_s, unit_of(l)) + (dimension == HEADS ? rest : 0);
    l->stride_b = to_a_multiple(l->heads * l->stride_h, unit_of(l)) + (dimension == BATCHES ? rest : 0);
}

/* The outermost dimension with more than one index is stretched: batches, else heads, else rows. */
static void stretch(fa_layout *l, int tensor)
{
    int64_t *stride = l->batch > 1 ? &l->stride_b : l->heads > 1 ? &l->stride_h : &l->stride_s;
    l->blocks = l->batch > 1 ? l->batch : l->heads > 1 ? l->heads : l->seq;
    if (l->blocks == 1)
        return;
    l->block_count = (size_t)*stride;
    const int64_t unit = unit_of(l), apart = FAR / (l->blocks - 1) / unit * unit + unit * (5 + tensor);
    l->block_pitch = *stride + apart;
    *stride = l->block_pitch;
    if (l->batch == 1)
        l->stride_b = l->heads * l->stride_h;
    if (l->batch == 1 && l->heads == 1)
        l->stride_b = l->stride_h = l->seq * l->stride_s;
}

static fa_layout layout_of(const fa_problem *problem, fa_strides strides, uint64_t seed, int tensor)
{
    const bool query = tensor != FA_K && tensor != FA_V && tensor != FA_DK && tensor != FA_DV,
               paged = problem->pages != NULL && !query;
    if (tensor == FA_DSINKS)
        return (fa_layout){.batch = 1,
                           .heads = 1,
                           .seq = problem->heads,
                           .dim = 2,
                           .stride_b = 2 * problem->heads,
                           .stride_h = 2 * problem->heads,
                           .stride_s = 2,
                           .blocks = 1,
                           .block_count = 2 * (size_t)problem->heads};
    if (tensor == FA_L && (strides == FA_STRIDES_FAR || strides == FA_STRIDES_ODD))
        strides = FA_STRIDES_PACKED;
    fa_layout l = {
        .strides = strides,
        .batch = query ? fa_problem_stored_batch(problem) : fa_problem_stored_batch_kv(problem),
        .heads = query ? problem->heads : problem->kv_heads,
        .seq = query ? fa_problem_stored_q(problem) : fa_problem_stored_kv(problem),
        .dim = tensor == FA_L                                                           ? 2
               : tensor == FA_Q || tensor == FA_K || tensor == FA_DQ || tensor == FA_DK ? problem->dim
                                                                                        : fa_problem_dim_v(problem),
        .fp8 = (tensor == FA_Q                     ? problem->dtype
                : tensor == FA_K || tensor == FA_V ? fa_problem_dtype_kv(problem)
                                                   : fa_problem_dtype_o(problem)) == FA_DTYPE_E4M3,
        .blocks = 1,
    };
    const int64_t unit = unit_of(&l);
    if (strides == FA_STRIDES_PADDED)
        pack(&l, tensor == FA_L ? 2 : unit * (1 + tensor), unit * (5 + 2 * tensor), unit * (23 + 3 * tensor));
    else
        pack(&l, 0, 0, 0);
    if (strides == FA_STRIDES_ODD)
        pack_odd(&l, problem->backward, seed, tensor);
    /* In pages the heads of a row lie together, or the rows of a head: a draw with BSHD takes the other one. */
    const bool swapped = paged ? problem->pages->nhd != (strides == FA_STRIDES_BSHD) : strides == FA_STRIDES_BSHD;
    if (swapped && (strides == FA_STRIDES_PACKED || strides == FA_STRIDES_BSHD)) {
        l.strides = FA_STRIDES_BSHD;
        l.stride_h = l.dim;
        l.stride_s = (int64_t)l.heads * l.dim;
    } else if (swapped && strides == FA_STRIDES_PADDED) {
        l.stride_h = l.dim + unit * (1 + tensor);
        l.stride_s = l.heads * l.stride_h + unit * (5 + 2 * tensor);
        l.stride_b = l.seq * l.stride_s + unit * (23 + 3 * tensor);
    } else if (paged && strides == FA_STRIDES_BSHD) {
        l.strides = FA_STRIDES_PACKED;
    }
    l.block_count =
        (size_t)((l.batch - 1) * l.stride_b + (l.heads - 1) * l.stride_h + (l.seq - 1) * l.stride_s + l.dim);
    if (strides == FA_STRIDES_FAR)
        stretch(&l, tensor);
    return l;
}

fa_layout fa_layout_of(const fa_problem *problem, fa_strides strides, uint64_t seed, int tensor)
{
    const bool inside = tensor == FA_V && problem->v_in_k;
    fa_layout l = layout_of(problem, strides, seed, inside ? FA_K : tensor);
    if (inside) { /* the rows of K, of which V is a part */
        l.dim = fa_problem_dim_v(problem);
        l.block_count -= (size_t)(problem->dim - l.dim);
    }
    return l;
}

size_t fa_layout_span(const fa_layout *layout)
{
    return (size_t)((layout->blocks - 1) * layout->block_pitch) + layout->block_count;
}

static int64_t rows_of_block(const fa_layout *l) { return (int64_t)l->batch * l->heads * l->seq / l->blocks; }

size_t fa_layout_dense(const fa_layout *layout) { return (size_t)(rows_of_block(layout) * layout->dim); }

/* Offset in its block of a row, counted over [batch, heads, seq]. */
static size_t offset_in_block(const fa_layout *l, int64_t row)
{
    const int64_t s = row % l->seq, h = row / l->seq % l->heads, b = row / l->seq / l->heads;
    const int64_t at = b * l->stride_b + h * l->stride_h + s * l->stride_s;
    return (size_t)(l->blocks > 1 ? at % l->block_pitch : at);
}

void fa_layout_scatter(const fa_layout *layout, int64_t block, const uint16_t *dense, uint16_t gap, uint16_t *image)
{
    const int64_t rows = rows_of_block(layout), dim = layout->dim;
#pragma omp parallel for schedule(static) if (rows * dim > 1 << 16)
    for (size_t i = 0; i < layout->block_count; i++)
        image[i] = gap;
#pragma omp parallel for schedule(static) if (rows * dim > 1 << 16)
    for (int64_t row = block * rows; row < (block + 1) * rows; row++)
        memcpy(image + offset_in_block(layout, row), dense + row * dim, (size_t)dim * sizeof *image);
}

bool fa_layout_is_dense(const fa_layout *layout)
{
    return layout->strides == FA_STRIDES_PACKED || layout->strides == FA_STRIDES_FAR;
}

const uint16_t *fa_layout_image(const fa_layout *layout, int64_t block, const uint16_t *dense, uint16_t gap,
                                uint16_t *scratch)
{
    if (fa_layout_is_dense(layout))
        return dense + (size_t)block * fa_layout_dense(layout);
    fa_layout_scatter(layout, block, dense, gap, scratch);
    return scratch;
}

void fa_layout_gather(const fa_layout *layout, int64_t block, const uint16_t *image, uint16_t *dense)
{
    const int64_t rows = rows_of_block(layout), dim = layout->dim;
#pragma omp parallel for schedule(static) if (rows * dim > 1 << 16)
    for (int64_t row = block * rows; row < (block + 1) * rows; row++)
        memcpy(dense + row * dim, image + offset_in_block(layout, row), (size_t)dim * sizeof *image);
}

size_t fa_layout_gaps_changed(const fa_layout *layout, int64_t block, const uint16_t *image, uint16_t gap,
                              size_t *first)
{
    const int64_t rows = rows_of_block(layout);
    size_t changed = 0;
    if (layout->block_count == fa_layout_dense(layout))
        return 0;
    bool *in_a_row = fa_alloc(layout->block_count * sizeof *in_a_row);
    for (int64_t row = block * rows; row < (block + 1) * rows; row++)
        memset(in_a_row + offset_in_block(layout, row), 1, (size_t)layout->dim * sizeof *in_a_row);
    for (size_t i = 0; i < layout->block_count; i++)
        if (!in_a_row[i] && image[i] != gap && changed++ == 0)
            *first = i;
    free(in_a_row);
    return changed;
}
