/* What kernels share: the shared-memory declaration, and PTX behind named functions, one per instruction. Some serve
 * only kernels of your own. The emulator runs the same text: it interprets the PTX.
 * Suffixes: _g global, _s shared, _r register. PTX ISA section in brackets. */
#pragma once

#include "fa_params.h"

#include <cuda_fp16.h>
#if FA_BF16
#include <cuda_bf16.h>
#define FA_PTX_TYPE "bf16" /* fa_element in the name of an instruction */
#else
#define FA_PTX_TYPE "f16"
#endif
#if FA_FP8 || FA_FP8_KV
#include <cuda_fp8.h>
#endif

#define WARP_SIZE 32
#define ALL_LANES 0xffffffffu
#define INF (__builtin_bit_cast(float, 0x7f800000))

/* What the compiler may assume of a launch. --maxreg wins: ptxas ignores -maxrregcount where a kernel states bounds. */
#if FA_MAXREG > 0
#define FA_LAUNCH_BOUNDS(threads, blocks)
#else
#define FA_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#endif

/* The last parameter of a function that is one instruction. Nothing on a GPU; on the emulator the line that calls it,
 * for its reports. */
#ifndef FA_CALLER
#define FA_CALLER
#endif

/* Dynamic shared memory of the block as `type *name`, 16-byte aligned (kernels align further themselves). */
#define FA_SHARED(type, name)                                \
    extern __shared__ __align__(16) unsigned char fa_smem[]; \
    type *name = reinterpret_cast<type *>(fa_smem)

/* FA_SHARED aligned to `align` bytes: the address is a constant to the compiler. */
#define FA_SHARED_ALIGNED(type, name, align) \
    extern __shared__ __align__(align)       \
    unsigned char fa_smem_##align[];         \
    type *name = reinterpret_cast<type *>(fa_smem_##align)

/* A generic pointer into shared memory as the 32-bit address shared-space instructions take. */
__device__ __forceinline__ unsigned smem_address(const void *pointer_s)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer_s));
}

/* Asynchronous copy of 16, 8 or 4 bytes; bytes past src_bytes are written as zero, and with src_bytes == 0 nothing is
 * read (the pointer must still be a valid one). sm_80. [cp.async] */
__device__ __forceinline__ void cp_async_16(void *dst_s, const void *src_g, int src_bytes FA_CALLER)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(smem_address(dst_s)), "l"(src_g),
                 "r"(src_bytes)
                 : "memory");
}

/* cp_async_16 to an address that is already in shared space. */
__device__ __forceinline__ void cp_async_16_at(unsigned dst_s, const void *src_g, int src_bytes FA_CALLER)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(dst_s), "l"(src_g), "r"(src_bytes) : "memory");
}

__device__ __forceinline__ void cp_async_8(void *dst_s, const void *src_g, int src_bytes FA_CALLER)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;\n" ::"r"(smem_address(dst_s)), "l"(src_g), "r"(src_bytes)
                 : "memory");
}

__device__ __forceinline__ void cp_async_4(void *dst_s, const void *src_g, int src_bytes FA_CALLER)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(smem_address(dst_s)), "l"(src_g), "r"(src_bytes)
                 : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

/* Waits until at most N of this thread's groups are in flight. */
template <int N>
__device__ __forceinline__ void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

/* 8x8 tiles of 16-bit elements from shared memory: lane l gives the address of row l%8 of tile l/8 (16 bytes, 16-byte
 * aligned). [ldmatrix] */
__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], const void *row_s FA_CALLER)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(smem_address(row_s))
                 : "memory");
}

/* ldmatrix_x4 at an address that is already in shared space: for loops that compute it once. */
__device__ __forceinline__ void ldmatrix_x4_at(unsigned (&r)[4], unsigned row_s FA_CALLER)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row_s)
                 : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans_at(unsigned (&r)[4], unsigned row_s FA_CALLER)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row_s)
                 : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], const void *row_s FA_CALLER)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(smem_address(row_s))
                 : "memory");
}

/* d += a * b, a 16x16 row-major, b 16x8 column-major, of fa_element; d 16x8. sm_80. [mma.m16n8k16] */
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2] FA_CALLER)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32." FA_PTX_TYPE "." FA_PTX_TYPE ".f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* d = c + a * b: for a c that is used again. */
__device__ __forceinline__ void mma_m16n8k16_from(float (&d)[4], const float (&c)[4], const unsigned (&a)[4],
                                                  const unsigned (&b)[2] FA_CALLER)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32." FA_PTX_TYPE "." FA_PTX_TYPE ".f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\n"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

/* d += a b of e4m3, 32 deep: four elements a register. sm_89. [mma.sync, "Matrix Fragments for mma.m16n8k32"] */
__device__ __forceinline__ void mma_m16n8k32_e4m3(float (&d)[4], const unsigned (&a)[4],
                                                  const unsigned (&b)[2] FA_CALLER)
{
    asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Four floats as e4m3, round to nearest, at most 448, the first in the low bits. sm_89. [cvt.rn.satfinite.e4m3x2] */
__device__ __forceinline__ unsigned pack_e4m3(float f0, float f1, float f2, float f3)
{
    unsigned packed;
    asm("{ .reg .b16 lo, hi; cvt.rn.satfinite.e4m3x2.f32 lo, %2, %1; cvt.rn.satfinite.e4m3x2.f32 hi, %4, %3; "
        "mov.b32 %0, {lo, hi}; }\n"
        : "=r"(packed)
        : "f"(f0), "f"(f1), "f"(f2), "f"(f3));
    return packed;
}

/* 2^x, 2 ulp, exactly 0 for -inf. [ex2.approx.ftz] */
__device__ __forceinline__ float exp2_approx(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float log2_approx(float x)
{
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
}

/* 1 / x, 1 ulp. [rcp.approx.ftz] */
__device__ __forceinline__ float reciprocal_approx(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
}

/* Two floats as two halves, round to nearest, lo in the low bits. [cvt.rn.f16x2.f32] */
__device__ __forceinline__ unsigned pack_half2(float lo, float hi)
{
    unsigned packed;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(hi), "f"(lo));
    return packed;
}

/* Two floats as two fa_elements, round to nearest, lo in the low bits. [cvt.rn.f16x2.f32, cvt.rn.bf16x2.f32] */
__device__ __forceinline__ unsigned pack_elements(float lo, float hi)
{
    unsigned packed;
    asm("cvt.rn." FA_PTX_TYPE "x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(hi), "f"(lo));
    return packed;
}

/* Named barrier `id` (1..15; 0 is __syncthreads) among `threads` threads, a multiple of 32. [bar.sync, bar.arrive] */
__device__ __forceinline__ void bar_sync(int id, int threads FA_CALLER)
{
    asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

/* bar_sync for warps that wait at different places in the code, such as two copies of an unrolled loop: bar.sync
 * promises the compiler, and compute-sanitizer, that all threads wait at one place. The machine code is the same.
 * [barrier.sync] */
__device__ __forceinline__ void bar_sync_apart(int id, int threads FA_CALLER)
{
    asm volatile("barrier.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void bar_arrive(int id, int threads FA_CALLER)
{
    asm volatile("bar.arrive %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

/* Four 8 x 8 matrices to shared memory; lane 8 i + r gives the address of row r of matrix i. */
__device__ __forceinline__ void stmatrix_x4_at(unsigned row_s, const unsigned (&r)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_s), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3])
                 : "memory");
}

/* Adds a float to memory, at once. [red.add] */
__device__ __forceinline__ void red_add(float *sum_g, float a FA_CALLER)
{
    asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;\n" ::"l"(sum_g), "f"(a) : "memory");
}

/* Adds four floats of each lane to 512 bytes of a warp, each float at once by itself; 16-byte aligned. Without an
 * instruction for all four the first floats of the lanes come first, then the second ones. [red.add] */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr bool RED_ADDS_4 = true, HAS_STMATRIX = true;
#else
constexpr bool RED_ADDS_4 = false, HAS_STMATRIX = false;
#endif
__device__ __forceinline__ void red_add_4(float *sums_g, unsigned lane, const float (&a)[4] FA_CALLER)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"l"(sums_g + lane * 4), "f"(a[0]),
                 "f"(a[1]), "f"(a[2]), "f"(a[3])
                 : "memory");
#else
    asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;\n"
                 "red.relaxed.gpu.global.add.f32 [%0 + 128], %2;\n"
                 "red.relaxed.gpu.global.add.f32 [%0 + 256], %3;\n"
                 "red.relaxed.gpu.global.add.f32 [%0 + 384], %4;\n" ::"l"(sums_g + lane),
                 "f"(a[0]), "f"(a[1]), "f"(a[2]), "f"(a[3])
                 : "memory");
#endif
}

/* A semaphore between blocks: what was written before add_release is seen after load_acquire has read its value.
 * [ld.acquire, red.release] */
__device__ __forceinline__ unsigned load_acquire(const unsigned *from_g FA_CALLER)
{
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];\n" : "=r"(value) : "l"(from_g) : "memory");
    return value;
}

__device__ __forceinline__ void add_release(unsigned *to_g, unsigned value FA_CALLER)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;\n" ::"l"(to_g), "r"(value) : "memory");
}

/* 16 bytes at once; the pointer is 16-byte aligned. */
__device__ __forceinline__ void st_global_16(void *dst_g, uint4 value FA_CALLER)
{
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"l"(dst_g), "r"(value.x), "r"(value.y), "r"(value.z),
                 "r"(value.w)
                 : "memory");
}

/* 16 bytes to an address already in shared space. */
__device__ __forceinline__ void st_shared_16_at(unsigned dst_s, uint4 value FA_CALLER)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(dst_s), "r"(value.x), "r"(value.y), "r"(value.z),
                 "r"(value.w)
                 : "memory");
}

/* What follows computes nothing; it steers the compiler. */

/* An address in shared memory as the shared-space instructions take it. */
typedef unsigned smem_addr;

__device__ __forceinline__ smem_addr xor_address(smem_addr address, int bits) { return address ^ bits; }

/* Makes a value opaque: the compiler can no longer see how it was computed. Where it sees that an offset grows by a
 * constant, it keeps a 64-bit pointer for each copy of a loop. */
__device__ __forceinline__ void make_opaque(unsigned &value) { asm volatile("" : "+r"(value)); }

/* Keeps a value in its register. ptxas would compute it again at every use; it does not across a shuffle. */
__device__ __forceinline__ void prevent_recompute(unsigned &value)
{
    value = __shfl_sync(ALL_LANES, value, threadIdx.x % 32);
}

/* threadIdx.x and blockIdx.x, read once more. What is computed from them then needs no register across a loop. */
__device__ __forceinline__ unsigned reload_thread_index()
{
    unsigned thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

__device__ __forceinline__ unsigned reload_block_index()
{
    unsigned block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return block;
}

/* A value that all lanes of the warp hold. The first tells the compiler so: it may keep what follows from the value in
 * uniform registers. The second puts the value itself there, which costs a reduction; a branch on it needs no
 * reconvergence. Before sm_80 it changes nothing. */
__device__ __forceinline__ unsigned uniform_by_shuffle(unsigned value) { return __shfl_sync(ALL_LANES, value, 0); }

__device__ __forceinline__ int uniform_by_reduction(int value)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    return value;
#else
    return __reduce_max_sync(ALL_LANES, value);
#endif
}
