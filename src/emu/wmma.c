/* WMMA beyond m16n16k16 of halves: m32n8k16, m8n32k16, m16n16k8 of tf32, 8-bit integers. Accumulators have 256 elements
 * in every shape. */
#include "emu/wmma.h"

#include <string.h>

#include "ptx/formats.h"

enum { LARGEST = 32 * 16 };

static double element(const void *from, uint32_t at, fa_emu_wmma_type type)
{
    const fa_ptx_type types[] = {
        [FA_EMU_WMMA_F16] = FA_PTX_F16, [FA_EMU_WMMA_BF] = FA_PTX_BF16, [FA_EMU_WMMA_TF32] = FA_PTX_TF32};
    switch (type) {
    case FA_EMU_WMMA_S8:
        return ((const int8_t *)from)[at];
    case FA_EMU_WMMA_U8:
        return ((const uint8_t *)from)[at];
    case FA_EMU_WMMA_TF32:
        return fa_ptx_to_double(((const uint32_t *)from)[at], types[type]);
    default:
        return fa_ptx_to_double(((const uint16_t *)from)[at], types[type]);
    }
}

/* The fragments of all lanes as a row-major matrix of `elements` elements. */
static void gather(const fa_emu_worker *worker, fa_emu_op *const op[FA_EMU_WARP], bool is_b, uint32_t elements,
                   double *matrix)
{
    const uint16_t *map = worker->launch->wmma_map[is_b ? FA_EMU_FRAG_B : FA_EMU_FRAG_A];
    const uint32_t length = elements / FA_EMU_WARP;
    for (uint32_t slot = 0; slot < elements; slot++) {
        const fa_emu_op *lane = op[slot / length];
        matrix[fa_emu_wmma_element(map, slot, elements)] =
            element(is_b ? lane->b : lane->a, slot % length, (fa_emu_wmma_type)(op[0]->mode - 1));
    }
}

static int32_t whole(double value, bool saturate)
{
    const int64_t sum = (int64_t)value;
    if (saturate && (sum > INT32_MAX || sum < INT32_MIN))
        return sum > 0 ? INT32_MAX : INT32_MIN;
    return (int32_t)(uint32_t)(uint64_t)sum;
}

void fa_emu_wmma_other(const fa_emu_worker *worker, fa_emu_op *const op[FA_EMU_WARP])
{
    const uint32_t m = (uint32_t)op[0]->arg >> 16, n = (uint32_t)op[0]->arg >> 8 & 0xff, k = op[0]->arg & 0xff;
    const bool integer = FA_EMU_WMMA_INTEGER(op[0]->mode - 1), saturate = op[0]->width & FA_EMU_WMMA_SATURATE;
    const bool c_half = op[0]->width & FA_EMU_WMMA_C_F16, d_half = op[0]->width & FA_EMU_WMMA_D_F16;
    const uint16_t *c_map = worker->launch->wmma_map[c_half ? FA_EMU_FRAG_ACC_F16 : FA_EMU_FRAG_ACC_F32];
    const uint16_t *d_map = worker->launch->wmma_map[d_half ? FA_EMU_FRAG_ACC_F16 : FA_EMU_FRAG_ACC_F32];
    double a[LARGEST], b[LARGEST], sum[256];
    gather(worker, op, false, m * k, a);
    gather(worker, op, true, k * n, b);
    for (uint32_t at = 0; at < 256; at++) {
        sum[at] = 0;
        for (uint32_t i = 0; i < k; i++)
            sum[at] += a[at / n * k + i] * b[i * n + at % n];
    }
    for (uint32_t i = 0; i < 256; i++) {
        const void *c = op[i / FA_EMU_FRAG_ACC_LEN]->c;
        const uint32_t at = i % FA_EMU_FRAG_ACC_LEN;
        sum[c_map[i]] += c_half    ? fa_ptx_to_double(((const uint16_t *)c)[at], FA_PTX_F16)
                         : integer ? (double)((const int32_t *)c)[at]
                                   : (double)((const float *)c)[at];
    }
    for (uint32_t i = 0; i < 256; i++) {
        void *d = op[i / FA_EMU_FRAG_ACC_LEN]->d;
        const uint32_t at = i % FA_EMU_FRAG_ACC_LEN;
        const double value = sum[d_map[i]];
        if (d_half)
            ((uint16_t *)d)[at] = (uint16_t)fa_ptx_from_double(value, FA_PTX_F16, FA_PTX_NEAREST, false);
        else if (integer)
            ((int32_t *)d)[at] = whole(value, saturate);
        else
            ((float *)d)[at] = (float)value;
    }
}
