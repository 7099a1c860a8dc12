/* Instructions that the emulator knows and no kernel of kernels/ uses: for its own tests. */
#pragma once
#include "shared/prims.cuh"

/* ldmatrix of fewer tiles: x2 reads the addresses of lanes 0..15, x1 those of lanes 0..7. */
#define LDMATRIX_X1(name, form)                                                        \
    __device__ __forceinline__ void name(unsigned(&r)[1], const void *row_s FA_CALLER) \
    {                                                                                  \
        asm volatile("ldmatrix.sync.aligned.m8n8." form ".shared.b16 {%0}, [%1];\n"    \
                     : "=r"(r[0])                                                      \
                     : "r"(smem_address(row_s))                                        \
                     : "memory");                                                      \
    }
#define LDMATRIX_X2(name, form)                                                         \
    __device__ __forceinline__ void name(unsigned(&r)[2], const void *row_s FA_CALLER)  \
    {                                                                                   \
        asm volatile("ldmatrix.sync.aligned.m8n8." form ".shared.b16 {%0, %1}, [%2];\n" \
                     : "=r"(r[0]), "=r"(r[1])                                           \
                     : "r"(smem_address(row_s))                                         \
                     : "memory");                                                       \
    }
LDMATRIX_X1(ldmatrix_x1, "x1")
LDMATRIX_X1(ldmatrix_x1_trans, "x1.trans")
LDMATRIX_X2(ldmatrix_x2, "x2")
LDMATRIX_X2(ldmatrix_x2_trans, "x2.trans")

/* The way back: four 8x8 tiles to shared memory, addresses as for ldmatrix_x4. sm_90. [stmatrix] */
__device__ __forceinline__ void stmatrix_x4(void *row_s, const unsigned (&r)[4] FA_CALLER)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};\n" ::"r"(smem_address(row_s)),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

__device__ __forceinline__ void mma_m16n8k16_f16(unsigned (&d)[2], const unsigned (&a)[4],
                                                 const unsigned (&b)[2] FA_CALLER)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};\n"
        : "+r"(d[0]), "+r"(d[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* 16 bytes that nothing writes while the kernel runs; not kept in L1. [ld.global.nc] */
__device__ __forceinline__ uint4 ld_global_nc_16(const void *src_g FA_CALLER)
{
    uint4 value;
    asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(src_g));
    return value;
}
