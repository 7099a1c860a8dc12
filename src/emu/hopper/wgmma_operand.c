#include "emu/hopper/wgmma_operand.h"

#include <string.h>

#include "base/clones.h"
#include "ptx/fp8.h"
#include "ptx/program.h"

enum { DEPTH = 16, CHUNK_ELEMENTS = 8 }; /* of 16-bit elements */

fa_emu_operand fa_emu_operand_of(const fa_emu_worker *worker, uint64_t descriptor, bool transposed, uint8_t type,
                                 int first, int rows)
{
    static const uint8_t spans[4] = {0, 128, 64, 32};
    const uint32_t start = (uint32_t)(descriptor & 0x3fff) << 4;
    return (fa_emu_operand){.start = fa_emu_shared_place(start, worker->smem, worker->launch->image->build),
                            .leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                            .stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
                            .swizzle = spans[descriptor >> 62],
                            .base_offset = (uint32_t)(descriptor >> 49 & 7),
                            .transposed = transposed,
                            .type = type,
                            .first = first,
                            .rows = rows};
}

int fa_emu_operand_chunks(const fa_emu_operand *operand) { return operand->rows * DEPTH / CHUNK_ELEMENTS; }

static inline uint32_t in_chunk(const fa_emu_operand *o)
{
    return fa_ptx_is_fp8(o->type) ? 2 * CHUNK_ELEMENTS : CHUNK_ELEMENTS;
}

/* The chunk of row `row` (and the 7 that follow, when transposed), depth `k` (and the 7 that follow, when not). */
static inline uint32_t chunk_offset(const fa_emu_operand *o, uint32_t row, uint32_t k)
{
    const uint32_t span = o->swizzle;
    if (!o->transposed)
        return span == 0 ? row % 8 * 16 + row / 8 * o->stride + k / in_chunk(o) * o->leading
                         : row % 8 * span + row / 8 * o->stride + k / in_chunk(o) * 16;
    if (span == 0)
        return row / 8 * o->stride + k % 8 * 16 + k / 8 * o->leading;
    return row % (span / 2) * 2 + row / (span / 2) * o->leading + k % 8 * span + k / 8 * o->stride;
}

static inline unsigned char *chunk_at(const fa_emu_operand *o, uint32_t row, uint32_t k)
{
    return (unsigned char *)fa_emu_swizzled((uintptr_t)o->start + chunk_offset(o, row, k), o->swizzle);
}

/* Two chunks along K for each row, or 16 along K for each 8 rows. */
static inline void chunk_of(const fa_emu_operand *o, int index, uint32_t *row, uint32_t *k)
{
    *row = (uint32_t)o->first + (uint32_t)(o->transposed ? index / DEPTH * CHUNK_ELEMENTS : index / 2);
    *k = o->transposed ? (uint32_t)index % DEPTH : (uint32_t)index % 2 * in_chunk(o);
}

unsigned char *fa_emu_operand_chunk(const fa_emu_operand *operand, int index)
{
    uint32_t row, k;
    chunk_of(operand, index, &row, &k);
    return chunk_at(operand, row, k);
}

bool fa_emu_operand_inside(const fa_emu_worker *worker, const fa_emu_operand *operand)
{
    const fa_emu_build_info *build = worker->launch->image->build;
    for (int i = 0; operand->start != NULL && i < fa_emu_operand_chunks(operand); i++)
        if (!fa_emu_is_shared(fa_emu_operand_chunk(operand, i), worker->smem, worker->launch->grid->smem_bytes, build))
            return false;
    return operand->start != NULL;
}

float fa_emu_widen(uint16_t bits, bool bf16) { return bf16 ? fa_ptx_float((uint32_t)bits << 16) : fa_ptx_half(bits); }

static float element_value(uint16_t bits, uint8_t type)
{
    return fa_ptx_is_fp8(type) ? fa_ptx_fp8_value(bits, type) : fa_emu_widen(bits, type == FA_PTX_BF16);
}

void fa_emu_register_of_a(int lane, int r, uint32_t word, uint8_t type, float sign, float *to)
{
    const int elements = fa_ptx_is_fp8(type) ? 4 : 2, bits = 32 / elements, depth = 8 * elements;
    float *row = to + (r % 2 * 8 + lane / 4) * depth + r / 2 * depth / 2 + lane % 4 * elements;
    for (int h = 0; h < elements; h++)
        row[h] = sign * element_value((uint16_t)(word >> (bits * h) & fa_ptx_mask((unsigned)bits)), type);
}

static inline __attribute__((always_inline)) void widen_chunk(const fa_emu_operand *o, const unsigned char *chunk,
                                                              float sign, float *to, int step)
{
    uint16_t bits[CHUNK_ELEMENTS];
    _Float16 halves[CHUNK_ELEMENTS];
    if (fa_ptx_is_fp8(o->type)) {
        for (int i = 0; i < 2 * CHUNK_ELEMENTS; i++)
            to[i * step] = sign * element_value(chunk[i], o->type);
        return;
    }
    memcpy(bits, chunk, sizeof bits);
    memcpy(halves, chunk, sizeof halves);
    for (int i = 0; i < CHUNK_ELEMENTS; i++)
        to[i * step] = sign * (o->type == FA_PTX_BF16 ? fa_emu_widen(bits[i], true) : (float)halves[i]);
}

FA_CLONES void fa_emu_operand_by_row(const fa_emu_operand *operand, float sign, float *to)
{
    for (int i = 0; i < fa_emu_operand_chunks(operand); i++) {
        uint32_t row, k;
        chunk_of(operand, i, &row, &k);
        float *place = to + (row - (uint32_t)operand->first) * 2 * in_chunk(operand) + k;
        widen_chunk(operand, chunk_at(operand, row, k), sign, place, operand->transposed ? DEPTH : 1);
    }
}

FA_CLONES void fa_emu_operand_by_depth(const fa_emu_operand *operand, float *to)
{
    for (int i = 0; i < fa_emu_operand_chunks(operand); i++) {
        uint32_t row, k;
        chunk_of(operand, i, &row, &k);
        float *place = to + k * (uint32_t)operand->rows + (row - (uint32_t)operand->first);
        widen_chunk(operand, chunk_at(operand, row, k), 1.0f, place, operand->transposed ? 1 : operand->rows);
    }
}

FA_CLONES static void multiply_halves(int columns, const float *a, const float *b, float sum[16][256])
{
    for (int i = 0; i < DEPTH; i++)
        for (int j0 = 0; j0 < columns; j0 += CHUNK_ELEMENTS) {
            float row[CHUNK_ELEMENTS];
            for (int j = 0; j < CHUNK_ELEMENTS; j++)
                row[j] = sum[i][j0 + j];
            for (int k = 0; k < DEPTH; k++)
                for (int j = 0; j < CHUNK_ELEMENTS; j++)
                    row[j] += a[i * DEPTH + k] * b[k * columns + j0 + j];
            for (int j = 0; j < CHUNK_ELEMENTS; j++)
                sum[i][j0 + j] = row[j];
        }
}

void fa_emu_multiply(fa_emu_product *product, const float *b)
{
    fa_emu_tile *tile = product->tile;
    const fa_ptx_fp8 shape = {16,          tile->columns, 32, FA_PTX_FP8_WGMMA_TERMS, product->a_type, product->b_type,
                              tile->halves};
    if (fa_ptx_is_fp8(product->a_type)) {
        fa_ptx_fp8_multiply(&shape, product->a_values, b, tile->sum[0], 256);
        return;
    }
    multiply_halves(tile->columns, product->a_values, b, tile->sum);
    for (int i = 0; tile->halves && i < DEPTH; i++)
        for (int j = 0; j < tile->columns; j++)
            tile->sum[i][j] = (float)(_Float16)tile->sum[i][j];
}
