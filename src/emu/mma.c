/* Tensor-core operations: ldmatrix, stmatrix, WMMA m16n16k16. Products are exact, a sum of 16 is
 * taken in double and rounded once. The hardware's order of summation and its truncation are not specified. */
#include "emu/mma.h"

#include <string.h>

#include "base/clones.h"
#include "base/random.h"
#include "emu/core/fragments.h"
#include "emu/hopper/wgmma_operand.h"
#include "ptx/formats.h"

static inline double widen(uint16_t bits) { return (double)fa_ptx_half(bits); }

static inline uint16_t narrow(double value)
{
    return value != value ? 0x7FFF : fa_ptx_half_bits(value); /* the device's NaN */
}

/* Moves 8 x 8 matrices between rows and fragments. Lane l has row l % 8 of matrix l / 8 (16 bytes), and its fragment of
 * every matrix. There are |arg| matrices; a negative arg transposes them. store: from fragments to rows. */
static void distribute(fa_emu_op *const op[FA_EMU_WARP], bool store)
{
    const int count = op[0]->arg < 0 ? -op[0]->arg : op[0]->arg;
    for (int lane = 0; lane < FA_EMU_WARP; lane++)
        for (int at = 0; at < 2 * count; at++) {
            const int i = fa_ldmatrix_to_row(lane), j = fa_ldmatrix_to_col(lane, at % 2);
            const int row = op[0]->arg < 0 ? j : i, col = op[0]->arg < 0 ? i : j;
            const fa_emu_op *owner = op[at / 2 * 8 + row];
            if (store)
                ((uint16_t *)owner->d)[col] = ((const uint16_t *)op[lane]->a)[at];
            else
                ((uint16_t *)op[lane]->d)[at] = ((const uint16_t *)owner->a)[col];
        }
}

/* Rows are op->a, elements op->d. */
void fa_emu_ldmatrix(fa_emu_op *const op[FA_EMU_WARP]) { distribute(op, false); }

/* Elements are op->a; each lane stores its row, op->d, itself. */
void fa_emu_stmatrix(fa_emu_op *const op[FA_EMU_WARP]) { distribute(op, true); }

/* sum[i][j] = sum over k of a[i][k] * b[k][j] */
static inline void multiply(const double a[16][16], const double b[16][16], double sum[16][16])
{
    for (int i = 0; i < 16; i++) {
        double row[16] = {0};
        for (int k = 0; k < 16; k++)
            for (int j = 0; j < 16; j++)
                row[j] += a[i][k] * b[k][j];
        memcpy(sum[i], row, sizeof row);
    }
}

/* The fragment of all lanes as a matrix, through the map of its type. False: the two copies of an element differ. */
static inline bool gather(const fa_emu_worker *worker, fa_emu_op *const op[FA_EMU_WARP], bool is_b, double m[16][16])
{
    const uint16_t *map = worker->launch->wmma_map[is_b ? FA_EMU_FRAG_B : FA_EMU_FRAG_A];
    uint16_t bits[256];
    uint8_t seen[256] = {0};
    const bool bf16 = op[0]->width & FA_EMU_WMMA_BF16;
    bool same = true;
    for (int lane = 0; lane < FA_EMU_WARP; lane++) {
        const uint16_t *from = is_b ? op[lane]->b : op[lane]->a;
        for (int i = 0; i < FA_EMU_FRAG_AB_LEN; i++) {
            const int at = map[lane * FA_EMU_FRAG_AB_LEN + i];
            same &= !seen[at] || bits[at] == from[i];
            seen[at] = 1;
            bits[at] = from[i];
        }
    }
    for (int at = 0; at < 256; at++)
        m[at / 16][at % 16] = bf16 ? (double)fa_emu_widen(bits[at], true) : widen(bits[at]);
    return same;
}

FA_CLONES bool fa_emu_wmma(const fa_emu_worker *worker, fa_emu_op *const op[FA_EMU_WARP])
{
    double a[16][16], b[16][16], sum[16][16];
    bool same = gather(worker, op, false, a);
    same &= gather(worker, op, true, b);
    multiply(a, b, sum);
    const bool c_half = op[0]->width & FA_EMU_WMMA_C_F16, d_half = op[0]->width & FA_EMU_WMMA_D_F16;
    const uint16_t *c_map = worker->launch->wmma_map[c_half ? FA_EMU_FRAG_ACC_F16 : FA_EMU_FRAG_ACC_F32];
    const uint16_t *d_map = worker->launch->wmma_map[d_half ? FA_EMU_FRAG_ACC_F16 : FA_EMU_FRAG_ACC_F32];
    for (int i = 0; i < FA_EMU_WARP * FA_EMU_FRAG_ACC_LEN; i++) {
        const void *c = op[i / FA_EMU_FRAG_ACC_LEN]->c;
        const int at = i % FA_EMU_FRAG_ACC_LEN;
        sum[c_map[i] / 16][c_map[i] % 16] += c_half ? widen(((const uint16_t *)c)[at]) : (double)((const float *)c)[at];
    }
    for (int i = 0; i < FA_EMU_WARP * FA_EMU_FRAG_ACC_LEN; i++) {
        void *d = op[i / FA_EMU_FRAG_ACC_LEN]->d;
        const double value = sum[d_map[i] / 16][d_map[i] % 16];
        if (d_half)
            ((uint16_t *)d)[i % FA_EMU_FRAG_ACC_LEN] = narrow(value);
        else
            ((float *)d)[i % FA_EMU_FRAG_ACC_LEN] = (float)value;
    }
    return same;
}

/* The layout of a WMMA fragment is unspecified. Each type gets a permutation drawn from the seed, so that a kernel
 * which assumes a layout fails. */
void fa_emu_wmma_maps(fa_emu_launch *launch)
{
    uint64_t random = launch->grid->seed ^ 0x6672616770657266u;
    for (int type = 0; type < FA_EMU_FRAG_TYPES; type++) {
        const uint32_t len = type <= FA_EMU_FRAG_B ? FA_EMU_FRAG_AB_LEN : FA_EMU_FRAG_ACC_LEN,
                       slots = len * FA_EMU_WARP;
        uint16_t *map = launch->wmma_map[type];
        for (uint32_t i = 0; i < slots; i++)
            map[i] = (uint16_t)(i % 256);
        for (uint32_t i = slots - 1; i > 0; i--) {
            const uint32_t j = (uint32_t)(fa_random_next(&random) % (i + 1));
            const uint16_t swap = map[i];
            map[i] = map[j];
            map[j] = swap;
        }
    }
}

/* The other WMMA: m32n8k16, m8n32k16, m16n16k8 of tf32, 8-bit integers; one lane holds each element. Accumulators have
 * 256 elements in every shape. */
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
static void gather_elements(const fa_emu_worker *worker, fa_emu_op *const op[FA_EMU_WARP], bool is_b, uint32_t elements,
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
    gather_elements(worker, op, false, m * k, a);
    gather_elements(worker, op, true, k * n, b);
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
