/* The names of kernels/prims.cuh, where PTX stands on the GPU. Shared-memory pointers are generic pointers in both. */
#ifndef FA_EMU_PRIMS_H
#define FA_EMU_PRIMS_H

#if FA_EMU_TSAN
extern "C" void __tsan_read_range(void *address, unsigned long size);
extern "C" void __tsan_write_range(void *address, unsigned long size);
#endif
#if FA_EMU_ASAN
extern "C" void *__asan_region_is_poisoned(void *begin, size_t size);
#endif

/* The core's own accesses are invisible to the sanitizers: these say, in the kernel's place, what it will touch. */
static inline __attribute__((always_inline)) void fa_emu_touch(const void *address, size_t size, bool write)
{
    (void)address, (void)size, (void)write;
#if FA_EMU_ASAN
    volatile char *bad = size ? (volatile char *)__asan_region_is_poisoned((void *)address, size) : nullptr;
    if (bad && write)
        *bad = 0;
    else if (bad)
        (void)*bad;
#endif
#if FA_EMU_TSAN
    if (size && write)
        __tsan_write_range((void *)address, size);
    else if (size)
        __tsan_read_range((void *)address, size);
#endif
}

static inline void fa_emu_aligned(const void *address, size_t align, const char *what, const char *file, int line)
{
    if ((uintptr_t)address % align)
        fa_emu_now()->api->fail("misaligned", what, file, line);
}

static inline __attribute__((always_inline)) void fa_emu_cp_async(void *dst_s, const void *src_g, int size, int bytes,
                                                                  const char *file, int line)
{
    fa_emu_touch(src_g, bytes > 0 ? bytes : 0, false);
    fa_emu_touch(dst_s, size, true);
    fa_emu_now()->api->cp_async(dst_s, src_g, size, bytes, file, line);
}
static inline void cp_async_16(void *dst_s, const void *src_g, int src_bytes = 16, FA_EMU_HERE)
{
    fa_emu_cp_async(dst_s, src_g, 16, src_bytes, FA_EMU_THERE);
}
static inline void cp_async_8(void *dst_s, const void *src_g, int src_bytes = 8, FA_EMU_HERE)
{
    fa_emu_cp_async(dst_s, src_g, 8, src_bytes, FA_EMU_THERE);
}
static inline void cp_async_4(void *dst_s, const void *src_g, int src_bytes = 4, FA_EMU_HERE)
{
    fa_emu_cp_async(dst_s, src_g, 4, src_bytes, FA_EMU_THERE);
}
static inline void cp_async_commit() { fa_emu_now()->api->cp_async_commit(); }
template <int N>
static inline void cp_async_wait()
{
    fa_emu_now()->api->cp_async_wait(N, 0);
}
static inline void cp_async_wait_all() { fa_emu_now()->api->cp_async_wait(0, 1); }

/* Every lane reads the row it names and hands it in; the core deals the elements out. */
template <int N>
static inline __attribute__((always_inline)) void fa_emu_ldmatrix(unsigned (&r)[N], const void *row_s, bool trans,
                                                                  const char *name, const char *file, int line)
{
    alignas(16) unsigned char row[16] = {};
    fa_emu_op op = fa_emu_op_make(FA_EMU_LDMATRIX, trans, name, ~0u, file, line);
    if ((int)fa_emu_now()->lane < 8 * N) {
        fa_emu_aligned(row_s, 16, "ldmatrix: the row is not 16-byte aligned", file, line);
        fa_emu_touch(row_s, 16, false);
        memcpy(row, row_s, 16);
    }
    op.arg = trans ? -N : N;
    op.a = row;
    op.d = r;
    fa_emu_wait(op);
}
static inline void ldmatrix_x1(unsigned (&r)[1], const void *row_s, FA_EMU_HERE)
{
    fa_emu_ldmatrix(r, row_s, false, "ldmatrix_x1", FA_EMU_THERE);
}
static inline void ldmatrix_x2(unsigned (&r)[2], const void *row_s, FA_EMU_HERE)
{
    fa_emu_ldmatrix(r, row_s, false, "ldmatrix_x2", FA_EMU_THERE);
}
static inline void ldmatrix_x4(unsigned (&r)[4], const void *row_s, FA_EMU_HERE)
{
    fa_emu_ldmatrix(r, row_s, false, "ldmatrix_x4", FA_EMU_THERE);
}
static inline void ldmatrix_x1_trans(unsigned (&r)[1], const void *row_s, FA_EMU_HERE)
{
    fa_emu_ldmatrix(r, row_s, true, "ldmatrix_x1_trans", FA_EMU_THERE);
}
static inline void ldmatrix_x2_trans(unsigned (&r)[2], const void *row_s, FA_EMU_HERE)
{
    fa_emu_ldmatrix(r, row_s, true, "ldmatrix_x2_trans", FA_EMU_THERE);
}
static inline void ldmatrix_x4_trans(unsigned (&r)[4], const void *row_s, FA_EMU_HERE)
{
    fa_emu_ldmatrix(r, row_s, true, "ldmatrix_x4_trans", FA_EMU_THERE);
}

template <int N>
static inline __attribute__((always_inline)) void fa_emu_stmatrix(void *row_s, const unsigned (&r)[N], bool trans,
                                                                  const char *name, const char *file, int line)
{
    alignas(16) unsigned char row[16];
    fa_emu_op op = fa_emu_op_make(FA_EMU_STMATRIX, trans, name, ~0u, file, line);
    op.arg = trans ? -N : N;
    op.a = r;
    op.d = row;
    fa_emu_wait(op);
    if ((int)fa_emu_now()->lane < 8 * N) {
        fa_emu_aligned(row_s, 16, "stmatrix: the row is not 16-byte aligned", file, line);
        fa_emu_touch(row_s, 16, true);
        memcpy(row_s, row, 16);
    }
}
static inline void stmatrix_x2(void *row_s, const unsigned (&r)[2], FA_EMU_HERE)
{
    fa_emu_stmatrix(row_s, r, false, "stmatrix_x2", FA_EMU_THERE);
}
static inline void stmatrix_x4(void *row_s, const unsigned (&r)[4], FA_EMU_HERE)
{
    fa_emu_stmatrix(row_s, r, false, "stmatrix_x4", FA_EMU_THERE);
}
static inline void stmatrix_x4_trans(void *row_s, const unsigned (&r)[4], FA_EMU_HERE)
{
    fa_emu_stmatrix(row_s, r, true, "stmatrix_x4_trans", FA_EMU_THERE);
}

static inline void fa_emu_mma(int mode, const char *name, void *d, const unsigned *a, const unsigned *b,
                              const char *file, int line)
{
    fa_emu_op op = fa_emu_op_make(FA_EMU_MMA, mode, name, ~0u, file, line);
    op.a = a;
    op.b = b;
    op.d = d;
    fa_emu_wait(op);
}
static inline void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], FA_EMU_HERE)
{
    fa_emu_mma(FA_EMU_MMA_F32, "mma_m16n8k16", d, a, b, FA_EMU_THERE);
}
static inline void mma_m16n8k16_from(float (&d)[4], const float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                     FA_EMU_HERE)
{
    float sum[4] = {c[0], c[1], c[2], c[3]};
    fa_emu_mma(FA_EMU_MMA_F32, "mma_m16n8k16_from", sum, a, b, FA_EMU_THERE);
    memcpy(d, sum, sizeof sum);
}
static inline void mma_m16n8k16_f16(unsigned (&d)[2], const unsigned (&a)[4], const unsigned (&b)[2], FA_EMU_HERE)
{
    fa_emu_mma(FA_EMU_MMA_F16, "mma_m16n8k16_f16", d, a, b, FA_EMU_THERE);
}

static inline float exp2_approx(float x) { return exp2f(x); }
static inline unsigned pack_half2(float lo, float hi)
{
    const half2 h = __floats2half2_rn(lo, hi);
    unsigned bits;
    memcpy(&bits, &h, sizeof bits);
    return bits;
}
static inline void st_global_16(void *to_g, uint4 value, FA_EMU_HERE)
{
    fa_emu_aligned(to_g, 16, "st_global_16", FA_EMU_THERE);
    *(uint4 *)to_g = value;
}
static inline uint4 ld_global_nc_16(const void *from_g, FA_EMU_HERE)
{
    fa_emu_aligned(from_g, 16, "ld_global_nc_16", FA_EMU_THERE);
    return *(const uint4 *)from_g;
}

/* Addresses in shared space are pointers here. */
typedef unsigned char *smem_addr;
#define cp_async_16_at cp_async_16
#define ldmatrix_x4_at ldmatrix_x4
#define ldmatrix_x4_trans_at ldmatrix_x4_trans
static inline smem_addr smem_address(unsigned char *pointer_s) { return pointer_s; }
static inline smem_addr xor_address(smem_addr address, int bits) { return (smem_addr)((uintptr_t)address ^ bits); }
static inline void st_shared_16_at(smem_addr to_s, uint4 value) { *(uint4 *)to_s = value; }

/* What steers the compiler on the GPU does nothing here. */
static inline void make_opaque(unsigned &) {}
static inline void prevent_recompute(unsigned &) {}
static inline unsigned reload_thread_index() { return threadIdx.x; }
static inline unsigned reload_block_index() { return blockIdx.x; }
static inline int to_uniform(int value) { return value; }

#endif
