/* WMMA m16n16k16, m32n8k16 and m8n32k16 of half, bfloat16 and 8-bit integers, m16n16k8 of tf32. CUDA does not
 * specify which lane holds which element. Here the seed draws a map per fragment type, so a kernel that assumes a
 * layout computes nonsense. Convergence is checked before a store and after a load, never in between: a missing
 * __syncwarp stays visible. */
#pragma once

#include "fa_emu.h"
#include "cuda_bf16.h"

namespace nvcuda
{
namespace wmma
{

struct matrix_a {
};
struct matrix_b {
};
struct accumulator {
};
struct row_major {
};
struct col_major {
};
enum layout_t { mem_row_major, mem_col_major };

namespace precision
{
struct tf32 {
};
} // namespace precision
namespace experimental /* named by CUTLASS; fragments of them are not emulated */
{
namespace precision
{
struct u4 {
};
struct s4 {
};
struct b1 {
};
} // namespace precision
enum bmmaBitOp { bmmaBitOpXOR = 1, bmmaBitOpAND };
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
} // namespace experimental
template <typename... fa_T>
void bmma_sync(fa_T &&...); /* of them */
static inline float __float_to_tf32(float x)
{
    const unsigned bits = __float_as_uint(x);
    return isfinite(x) ? __uint_as_float((bits + 0x1000) & 0xffffe000) : x; /* ties away from zero */
}

/* How an input is held, and its number in a multiplication; -1: not an input. */
template <typename fa_T>
struct fa_emu_input {
    typedef fa_T held;
    static constexpr int type = __is_same(fa_T, half)            ? FA_EMU_WMMA_F16
                                : __is_same(fa_T, __nv_bfloat16) ? FA_EMU_WMMA_BF
                                : __is_same(fa_T, signed char)   ? FA_EMU_WMMA_S8
                                : __is_same(fa_T, unsigned char) ? FA_EMU_WMMA_U8
                                                                 : -1;
};
template <>
struct fa_emu_input<precision::tf32> {
    typedef float held;
    static constexpr int type = FA_EMU_WMMA_TF32;
};

/* Rows x Columns elements, LENGTH a lane. TABLE: of the map, for those of the accumulators and of m16n16k16 of halves;
 * the others reckon with it. */
template <typename fa_T, typename fa_Held, int fa_ROWS, int fa_COLUMNS, int fa_LENGTH, int fa_TABLE, bool fa_BY_TABLE>
struct fa_emu_fragment {
    typedef fa_T element_type;
    typedef fa_Held storage_element_type;
    static constexpr int num_elements = fa_LENGTH, num_storage_elements = fa_LENGTH, fa_columns = fa_COLUMNS;
    fa_Held x[fa_LENGTH];
    static unsigned fa_element(int i)
    {
        const uint16_t *map = fa_emu_now()->wmma_map[fa_TABLE];
        const unsigned slot = fa_emu_now()->lane * fa_LENGTH + i;
        return fa_BY_TABLE ? map[slot] : fa_emu_wmma_element(map, slot, fa_ROWS * fa_COLUMNS);
    }
};

constexpr bool fa_emu_is_table(int m, int n, int k, int type)
{
    return m == 16 && n == 16 && k == 16 && (type == FA_EMU_WMMA_F16 || type == FA_EMU_WMMA_BF);
}
constexpr bool fa_emu_has(int m, int n, int k, int type)
{
    if (type == FA_EMU_WMMA_TF32)
        return m == 16 && n == 16 && k == 8;
    return type >= 0 && k == 16 && ((m == 16 && n == 16) || (m == 32 && n == 8) || (m == 8 && n == 32));
}
template <typename fa_T, int fa_M, int fa_N, int fa_K, bool fa_IS_B>
using fa_emu_operand =
    fa_emu_fragment<fa_T, typename fa_emu_input<fa_T>::held, fa_IS_B ? fa_K : fa_M, fa_IS_B ? fa_N : fa_K,
                    fa_emu_is_table(fa_M, fa_N, fa_K, fa_emu_input<fa_T>::type) ? FA_EMU_FRAG_AB_LEN
                                                                                : (fa_IS_B ? fa_N : fa_M) * fa_K / 32,
                    fa_IS_B ? FA_EMU_FRAG_B : FA_EMU_FRAG_A,
                    fa_emu_is_table(fa_M, fa_N, fa_K, fa_emu_input<fa_T>::type)>;
template <typename fa_T, int fa_M, int fa_N>
using fa_emu_sums = fa_emu_fragment<fa_T, fa_T, fa_M, fa_N, FA_EMU_FRAG_ACC_LEN,
                                    sizeof(fa_T) == 2 ? FA_EMU_FRAG_ACC_F16 : FA_EMU_FRAG_ACC_F32, true>;

#define FA_EMU_WMMA_ONLY                                                                                        \
    "the emulator has WMMA m16n16k16, m32n8k16 and m8n32k16 of half, bfloat16 and 8-bit integers, m16n16k8 of " \
    "tf32"
template <typename fa_Use, int fa_M, int fa_N, int fa_K, typename fa_T, typename fa_Layout = void>
struct fragment {
    static_assert(sizeof(fa_T) == 0, FA_EMU_WMMA_ONLY);
};
template <int fa_M, int fa_N, int fa_K, typename fa_T, typename fa_Layout>
struct fragment<matrix_a, fa_M, fa_N, fa_K, fa_T, fa_Layout> : fa_emu_operand<fa_T, fa_M, fa_N, fa_K, false> {
    static_assert(fa_emu_has(fa_M, fa_N, fa_K, fa_emu_input<fa_T>::type), FA_EMU_WMMA_ONLY);
    typedef fa_Layout layout;
};
template <int fa_M, int fa_N, int fa_K, typename fa_T, typename fa_Layout>
struct fragment<matrix_b, fa_M, fa_N, fa_K, fa_T, fa_Layout> : fa_emu_operand<fa_T, fa_M, fa_N, fa_K, true> {
    static_assert(fa_emu_has(fa_M, fa_N, fa_K, fa_emu_input<fa_T>::type), FA_EMU_WMMA_ONLY);
    typedef fa_Layout layout;
};
template <int fa_M, int fa_N, int fa_K, typename fa_T>
struct fragment<accumulator, fa_M, fa_N, fa_K, fa_T, void> : fa_emu_sums<fa_T, fa_M, fa_N> {
    static_assert(fa_M * fa_N == 256 && (__is_same(fa_T, float) || __is_same(fa_T, half) || __is_same(fa_T, int)),
                  FA_EMU_WMMA_ONLY);
};

template <typename fa_Layout>
struct fa_emu_by_row {
    static constexpr bool value = false;
};
template <>
struct fa_emu_by_row<row_major> {
    static constexpr bool value = true;
};

static inline void fa_emu_converge(const char *name, const char *file, int line)
{
    fa_emu_op op = fa_emu_op_make(FA_EMU_CONVERGE, 0, name, ~0u, file, line);
    fa_emu_wait(op);
}

/* Rules of the programming guide: pointer on 256 bits, leading dimension a multiple of 16 bytes. */
template <typename fa_T>
static inline void fa_emu_wmma_address(const fa_T *p, unsigned ldm, const char *file, int line)
{
    fa_emu_aligned(p, 32, "WMMA: the tile is not 32-byte aligned", file, line);
    if (ldm * sizeof(fa_T) % 16)
        fa_emu_now()->api->fail("misaligned", "WMMA: the leading dimension is no multiple of 16 bytes", file, line);
}

template <typename fa_F, typename fa_T>
static inline __attribute__((always_inline)) void fa_emu_wmma_load(fa_F &f, const fa_T *p, unsigned ldm, bool by_row,
                                                                   const char *file, int line)
{
    fa_emu_wmma_address(p, ldm, file, line);
    for (int i = 0; i < fa_F::num_elements; i++) {
        const unsigned row = fa_F::fa_element(i) / fa_F::fa_columns, col = fa_F::fa_element(i) % fa_F::fa_columns;
        f.x[i] = p[by_row ? row * ldm + col : col * ldm + row];
    }
    fa_emu_converge("load_matrix_sync", file, line);
}

template <typename fa_Use, int fa_M, int fa_N, int fa_K, typename fa_T, typename fa_Layout>
static inline void load_matrix_sync(fragment<fa_Use, fa_M, fa_N, fa_K, fa_T, fa_Layout> &f,
                                    const typename fa_emu_input<fa_T>::held *p, unsigned ldm, FA_EMU_HERE)
{
    fa_emu_wmma_load(f, p, ldm, fa_emu_by_row<fa_Layout>::value, FA_EMU_THERE);
}
template <int fa_M, int fa_N, int fa_K, typename fa_T>
static inline void load_matrix_sync(fragment<accumulator, fa_M, fa_N, fa_K, fa_T> &f, const fa_T *p, unsigned ldm,
                                    layout_t layout, FA_EMU_HERE)
{
    fa_emu_wmma_load(f, p, ldm, layout == mem_row_major, FA_EMU_THERE);
}

template <int fa_M, int fa_N, int fa_K, typename fa_T>
static inline void store_matrix_sync(fa_T *p, const fragment<accumulator, fa_M, fa_N, fa_K, fa_T> &f, unsigned ldm,
                                     layout_t layout, FA_EMU_HERE)
{
    fa_emu_wmma_address(p, ldm, FA_EMU_THERE);
    fa_emu_converge("store_matrix_sync", FA_EMU_THERE);
    for (int i = 0; i < f.num_elements; i++) {
        const unsigned row = f.fa_element(i) / fa_N, col = f.fa_element(i) % fa_N;
        p[layout == mem_row_major ? row * ldm + col : col * ldm + row] = f.x[i];
    }
}

template <typename fa_F, typename fa_V>
static inline void fill_fragment(fa_F &f, const fa_V &value)
{
    for (int i = 0; i < fa_F::num_elements; i++)
        f.x[i] = value;
}

template <int fa_M, int fa_N, int fa_K, typename fa_D, typename fa_T, typename fa_LA, typename fa_LB, typename fa_C>
static inline void mma_sync(fragment<accumulator, fa_M, fa_N, fa_K, fa_D> &d,
                            const fragment<matrix_a, fa_M, fa_N, fa_K, fa_T, fa_LA> &a,
                            const fragment<matrix_b, fa_M, fa_N, fa_K, fa_T, fa_LB> &b,
                            const fragment<accumulator, fa_M, fa_N, fa_K, fa_C> &c, bool saturate = false, FA_EMU_HERE)
{
    constexpr int type = fa_emu_input<fa_T>::type;
    constexpr bool bf16 = type == FA_EMU_WMMA_BF, integer = FA_EMU_WMMA_INTEGER(type);
    static_assert(type == FA_EMU_WMMA_F16 || (sizeof(fa_C) == 4 && sizeof(fa_D) == 4),
                  "only WMMA of half has half sums");
    static_assert(__is_same(fa_C, int) == integer && __is_same(fa_D, int) == integer, "WMMA sums integers in int");
    fa_emu_op op = fa_emu_op_make(FA_EMU_WMMA, fa_emu_is_table(fa_M, fa_N, fa_K, type) ? 0 : type + 1, "mma_sync", ~0u,
                                  FA_EMU_THERE);
    op.width = (sizeof(fa_C) == 2 ? FA_EMU_WMMA_C_F16 : 0) | (sizeof(fa_D) == 2 ? FA_EMU_WMMA_D_F16 : 0) |
               (bf16 ? FA_EMU_WMMA_BF16 : 0) | (saturate ? FA_EMU_WMMA_SATURATE : 0);
    op.arg = FA_EMU_WMMA_SHAPE(fa_M, fa_N, fa_K);
    op.a = a.x;
    op.b = b.x;
    op.c = c.x;
    op.d = d.x;
    fa_emu_wait(op);
}

} // namespace wmma
} // namespace nvcuda
