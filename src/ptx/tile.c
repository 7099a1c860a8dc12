#include "ptx/tile.h"

#include <string.h>

#include "base/clones.h"
#include "ptx/formats.h"
#include "ptx/fp8.h"

enum { LANES = 32 };

static const fa_ptx_tile tiles[] = {
    {FA_PTX_W_M16N8K8, 16, 8, 8, "f16", "f16 f32"},
    {FA_PTX_W_M16N8K16, 16, 8, 16, "f16", "f16 f32"},
    {FA_PTX_W_M16N8K8, 16, 8, 8, "bf16", "f32"},
    {FA_PTX_W_M16N8K16, 16, 8, 16, "bf16", "f32"},
    {FA_PTX_W_M16N8K4, 16, 8, 4, "tf32", "f32"},
    {FA_PTX_W_M16N8K8, 16, 8, 8, "tf32", "f32"},
    {FA_PTX_W_M8N8K16, 8, 8, 16, "s8 u8", "s32"},
    {FA_PTX_W_M16N8K16, 16, 8, 16, "s8 u8", "s32"},
    {FA_PTX_W_M16N8K32, 16, 8, 32, "s8 u8", "s32"},
    {FA_PTX_W_M16N8K16, 16, 8, 16, "e4m3 e5m2", "f16 f32"},
    {FA_PTX_W_M16N8K32, 16, 8, 32, "e4m3 e5m2", "f16 f32"},
    {FA_PTX_W_M8N8K4, 8, 8, 4, "f64", "f64"},
    {FA_PTX_W_M16N8K4, 16, 8, 4, "f64", "f64"},
    {FA_PTX_W_M16N8K8, 16, 8, 8, "f64", "f64"},
    {FA_PTX_W_M16N8K16, 16, 8, 16, "f64", "f64"},
};

static bool takes(const char *list, fa_ptx_type type)
{
    return fa_ptx_listed(list, fa_ptx_types[type].text, strlen(fa_ptx_types[type].text));
}

const fa_ptx_tile *fa_ptx_tile_find(const fa_ptx_instr *mma)
{
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
        if (fa_ptx_has(mma, (fa_ptx_word)tiles[i].shape) && takes(tiles[i].sums, mma->type[0]) &&
            mma->type[3] == mma->type[0] && takes(tiles[i].inputs, mma->type[1]) &&
            takes(tiles[i].inputs, mma->type[2]))
            return &tiles[i];
    return NULL;
}

/* Elements in one register. */
static int packed(fa_ptx_type type) { return fa_ptx_types[type].bits >= 32 ? 1 : 32 / fa_ptx_types[type].bits; }
int fa_ptx_tile_a(const fa_ptx_tile *tile, fa_ptx_type type) { return tile->m * tile->k / LANES / packed(type); }
int fa_ptx_tile_b(const fa_ptx_tile *tile, fa_ptx_type type) { return tile->n * tile->k / LANES / packed(type); }
int fa_ptx_tile_c(const fa_ptx_tile *tile, fa_ptx_type type) { return tile->m * tile->n / LANES / packed(type); }

static inline double widen(uint64_t bits, fa_ptx_type type)
{
    switch (type) {
    case FA_PTX_F16:
        return (double)fa_ptx_half(bits);
    case FA_PTX_BF16:
        return (double)fa_ptx_float(bits << 16);
    case FA_PTX_TF32: /* the low bits are ignored */
        return (double)fa_ptx_float(bits & ~(uint64_t)0x1fff);
    case FA_PTX_E4M3:
    case FA_PTX_E5M2:
        return (double)fa_ptx_fp8_value((unsigned)bits, type);
    case FA_PTX_S8:
        return (double)(int8_t)bits;
    case FA_PTX_U8:
        return (double)(uint8_t)bits;
    case FA_PTX_S32:
        return (double)(int32_t)bits;
    default:
        return fa_ptx_to_double(bits, type);
    }
}

/* a[row][k] and b[k][column] from the fragments */
static inline void gather(const fa_ptx_instr *mma, fa_ptx_fragment *const lane[LANES], double a[16][32],
                          double b[32][8])
{
    const fa_ptx_tile *t = mma->tile;
    const fa_ptx_type a_type = mma->type[1], b_type = mma->type[2];
    const int e = packed(a_type), a_count = fa_ptx_tile_a(t, a_type), b_count = fa_ptx_tile_b(t, b_type);
    const unsigned bits = fa_ptx_types[a_type].bits;
    const uint64_t mask = fa_ptx_mask(bits);
    for (int l = 0; l < LANES; l++) {
        const int group = l / 4, thread = l % 4;
        for (int r = 0; r < a_count; r++)
            for (int h = 0; h < e; h++) {
                const int row = t->m == 16 ? group + 8 * (r % 2) : group, step = t->m == 16 ? r / 2 : r;
                a[row][4 * e * step + thread * e + h] = widen(lane[l]->a[r] >> (h * bits) & mask, a_type);
            }
        for (int r = 0; r < b_count; r++)
            for (int h = 0; h < e; h++)
                b[4 * e * r + thread * e + h][group] = widen(lane[l]->b[r] >> (h * bits) & mask, b_type);
    }
}

/* Sums of products of bytes are exact in double; C is added modulo 2^32, or saturating. */
static uint64_t add_integer(uint64_t c, double sum, bool saturate)
{
    const int64_t wide = (int64_t)(int32_t)c + (int64_t)sum;
    if (saturate)
        return (uint32_t)(int32_t)(wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : wide);
    return (uint32_t)wide;
}

static inline uint64_t add_half(uint64_t c, double sum)
{
    const double value = widen(c, FA_PTX_F16) + sum;
    return value != value ? 0x7FFF : fa_ptx_half_bits(value); /* the device's NaN */
}

static inline void scatter(const fa_ptx_instr *mma, fa_ptx_fragment *const lane[LANES], double sum[16][8])
{
    const fa_ptx_type type = mma->type[0];
    const bool saturate = fa_ptx_has(mma, FA_PTX_W_SATFINITE);
    const int count = mma->tile->m * mma->tile->n / LANES;
    for (int l = 0; l < LANES; l++) {
        fa_ptx_fragment *f = lane[l];
        if (type == FA_PTX_F16)
            memset(f->d, 0, sizeof f->d);
        for (int i = 0; i < count; i++) {
            const double value = sum[l / 4 + 8 * (i / 2)][l % 4 * 2 + i % 2];
            if (type == FA_PTX_F16)
                f->d[i / 2] |= add_half(f->c[i / 2] >> (16 * (i % 2)), value) << (16 * (i % 2));
            else if (type == FA_PTX_S32)
                f->d[i] = add_integer(f->c[i], value, saturate);
            else if (type == FA_PTX_F32)
                f->d[i] = fa_ptx_float_bits((float)(value + (double)fa_ptx_float(f->c[i])));
            else
                f->d[i] = fa_ptx_double_bits(value + fa_ptx_double(f->c[i]));
        }
    }
}

/* d by the model of the hardware's sum: ptx/fp8.h */
static void multiply_fp8(const fa_ptx_instr *mma, fa_ptx_fragment *const lane[LANES], double a[16][32], double b[32][8])
{
    const fa_ptx_tile *t = mma->tile;
    const bool half = mma->type[0] == FA_PTX_F16;
    const fa_ptx_fp8 shape = {t->m, t->n, t->k, FA_PTX_FP8_MMA_TERMS, mma->type[1], mma->type[2], half};
    float a_f[16 * 32], b_f[32 * 8], d[16][8];
    for (int i = 0; i < t->m * t->k; i++)
        a_f[i] = (float)a[i / t->k][i % t->k];
    for (int i = 0; i < t->k * t->n; i++)
        b_f[i] = (float)b[i / t->n][i % t->n];
    for (int e = 0; e < LANES * 4; e++) {
        const int l = e / 4, i = e % 4;
        const uint64_t c = half ? lane[l]->c[i / 2] >> (16 * (i % 2)) : lane[l]->c[i];
        d[l / 4 + 8 * (i / 2)][l % 4 * 2 + i % 2] = (float)widen(c, half ? FA_PTX_F16 : FA_PTX_F32);
    }
    fa_ptx_fp8_multiply(&shape, a_f, b_f, d[0], 8);
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < 4; i++) {
            const float value = d[l / 4 + 8 * (i / 2)][l % 4 * 2 + i % 2];
            const uint64_t bits = fa_ptx_from_double((double)value, mma->type[0], FA_PTX_NEAREST, false);
            if (half)
                lane[l]->d[i / 2] = (i % 2 == 0 ? 0 : lane[l]->d[i / 2]) | bits << (16 * (i % 2));
            else
                lane[l]->d[i] = bits;
        }
}

FA_CLONES void fa_ptx_tile_multiply(const fa_ptx_instr *mma, fa_ptx_fragment *const lane[LANES])
{
    double a[16][32], b[32][8], sum[16][8];
    const int rows = mma->tile->m, depth = mma->tile->k;
    gather(mma, lane, a, b);
    if (fa_ptx_is_fp8(mma->type[1])) {
        multiply_fp8(mma, lane, a, b);
        return;
    }
    for (int i = 0; i < rows; i++) {
        double row[8] = {0};
        for (int k = 0; k < depth; k++)
            for (int j = 0; j < 8; j++)
                row[j] += a[i][k] * b[k][j];
        memcpy(sum[i], row, sizeof row);
    }
    scatter(mma, lane, sum);
}
