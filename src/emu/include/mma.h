/* WMMA m16n16k16, half or bfloat16 inputs, float or, of half, half accumulators. Which lane holds which element is not
 * specified: here a map drawn from the seed says it, one per fragment type, so a kernel that assumes a layout computes
 * nonsense. Convergence is checked before a store and after a load, never in between: a missing __syncwarp stays
 * visible. */
#ifndef FA_EMU_MMA_H
#define FA_EMU_MMA_H

#ifndef FA_EMU_SHIM_H
#include "fa_emu.h"
#endif
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

template <typename Use, int M, int N, int K, typename T, typename Layout = void>
struct fragment {
    static_assert(sizeof(T) == 0, "the emulator has WMMA m16n16k16 with half or bfloat16 inputs");
};

template <typename T, int LENGTH, int TYPE>
struct fa_emu_fragment {
    typedef T element_type;
    typedef T storage_element_type;
    static constexpr int num_elements = LENGTH, num_storage_elements = LENGTH, fa_type = TYPE;
    T x[LENGTH];
    static const uint16_t *map() { return fa_emu_now()->wmma_map[TYPE] + fa_emu_now()->lane * LENGTH; }
};

template <typename Layout>
struct fragment<matrix_a, 16, 16, 16, __nv_bfloat16, Layout>
    : fa_emu_fragment<__nv_bfloat16, FA_EMU_FRAG_AB_LEN, FA_EMU_FRAG_A> {
    typedef Layout layout;
};
template <typename Layout>
struct fragment<matrix_b, 16, 16, 16, __nv_bfloat16, Layout>
    : fa_emu_fragment<__nv_bfloat16, FA_EMU_FRAG_AB_LEN, FA_EMU_FRAG_B> {
    typedef Layout layout;
};
template <typename Layout>
struct fragment<matrix_a, 16, 16, 16, half, Layout> : fa_emu_fragment<half, FA_EMU_FRAG_AB_LEN, FA_EMU_FRAG_A> {
    typedef Layout layout;
};
template <typename Layout>
struct fragment<matrix_b, 16, 16, 16, half, Layout> : fa_emu_fragment<half, FA_EMU_FRAG_AB_LEN, FA_EMU_FRAG_B> {
    typedef Layout layout;
};
template <>
struct fragment<accumulator, 16, 16, 16, float, void>
    : fa_emu_fragment<float, FA_EMU_FRAG_ACC_LEN, FA_EMU_FRAG_ACC_F32> {
};
template <>
struct fragment<accumulator, 16, 16, 16, half, void> : fa_emu_fragment<half, FA_EMU_FRAG_ACC_LEN, FA_EMU_FRAG_ACC_F16> {
};

template <typename Layout>
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
template <typename T>
static inline void fa_emu_wmma_address(const T *p, unsigned ldm, const char *file, int line)
{
    fa_emu_aligned(p, 32, "WMMA: the tile is not 32-byte aligned", file, line);
    if (ldm * sizeof(T) % 16)
        fa_emu_now()->api->fail("misaligned", "WMMA: the leading dimension is no multiple of 16 bytes", file, line);
}

template <typename F, typename T>
static inline __attribute__((always_inline)) void fa_emu_wmma_load(F &f, const T *p, unsigned ldm, bool by_row,
                                                                   const char *file, int line)
{
    fa_emu_wmma_address(p, ldm, file, line);
    const uint16_t *map = F::map();
    for (int i = 0; i < F::num_elements; i++) {
        const unsigned row = map[i] / 16, col = map[i] % 16;
        f.x[i] = p[by_row ? row * ldm + col : col * ldm + row];
    }
    fa_emu_converge("load_matrix_sync", file, line);
}

template <typename Use, typename T, typename Layout>
static inline void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout> &f, const T *p, unsigned ldm, FA_EMU_HERE)
{
    fa_emu_wmma_load(f, p, ldm, fa_emu_by_row<Layout>::value, FA_EMU_THERE);
}
template <typename T>
static inline void load_matrix_sync(fragment<accumulator, 16, 16, 16, T> &f, const T *p, unsigned ldm, layout_t layout,
                                    FA_EMU_HERE)
{
    fa_emu_wmma_load(f, p, ldm, layout == mem_row_major, FA_EMU_THERE);
}

template <typename T>
static inline void store_matrix_sync(T *p, const fragment<accumulator, 16, 16, 16, T> &f, unsigned ldm, layout_t layout,
                                     FA_EMU_HERE)
{
    fa_emu_wmma_address(p, ldm, FA_EMU_THERE);
    fa_emu_converge("store_matrix_sync", FA_EMU_THERE);
    const uint16_t *map = f.map();
    for (int i = 0; i < f.num_elements; i++) {
        const unsigned row = map[i] / 16, col = map[i] % 16;
        p[layout == mem_row_major ? row * ldm + col : col * ldm + row] = f.x[i];
    }
}

template <typename F, typename V>
static inline void fill_fragment(F &f, const V &value)
{
    for (int i = 0; i < F::num_elements; i++)
        f.x[i] = value;
}

template <typename D, typename T, typename LA, typename LB, typename C>
static inline void mma_sync(fragment<accumulator, 16, 16, 16, D> &d, const fragment<matrix_a, 16, 16, 16, T, LA> &a,
                            const fragment<matrix_b, 16, 16, 16, T, LB> &b,
                            const fragment<accumulator, 16, 16, 16, C> &c, bool saturate = false, FA_EMU_HERE)
{
    constexpr bool bf16 = __is_same(T, __nv_bfloat16);
    static_assert(!bf16 || (sizeof(C) == 4 && sizeof(D) == 4), "WMMA of bfloat16 accumulates in float");
    (void)saturate;
    fa_emu_op op = fa_emu_op_make(FA_EMU_WMMA, 0, "mma_sync", ~0u, FA_EMU_THERE);
    op.width = (sizeof(C) == 2 ? FA_EMU_WMMA_C_F16 : 0) | (sizeof(D) == 2 ? FA_EMU_WMMA_D_F16 : 0) |
               (bf16 ? FA_EMU_WMMA_BF16 : 0);
    op.a = a.x;
    op.b = b.x;
    op.c = c.x;
    op.d = d.x;
    fa_emu_wait(op);
}

} // namespace wmma
} // namespace nvcuda

#endif
