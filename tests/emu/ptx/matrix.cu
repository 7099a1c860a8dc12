/* ldmatrix, stmatrix and movmatrix, of one, two and four tiles, transposed or not; needs sm_90. */
#include "ptx.cuh"
#include "../../../src/emu/core/fragments.h"

FA_KERNEL_INFO(.threads = 32, .smem_dynamic_bytes = 4096);

__device__ unsigned pair_at(const unsigned short *s, int row, int col, int row2, int col2)
{
    return s[row * 8 + col] | static_cast<unsigned>(s[row2 * 8 + col2]) << 16;
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned short, s);
    const int lane = threadIdx.x, i = fa_ldmatrix_to_row(lane), j = fa_ldmatrix_to_col(lane, 0);
    for (int k = lane; k < 256; k += 32)
        s[k] = static_cast<unsigned short>(mixed(k));
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    unsigned r[4], moved;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_of(s + lane * 8))
                 : "memory");
    for (int m = 0; m < 4; m++)
        EXPECT(r[m] == pair_at(s + m * 64, i, j, i, j + 1));
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(moved) : "r"(r[2]));
    EXPECT(moved == pair_at(s + 128, j, i, j + 1, i));
    put(p, lane, moved);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%0, %1}, [%2+128];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_of(s + lane % 16 * 8))
                 : "memory");
    for (int m = 0; m < 2; m++)
        EXPECT(r[m] == pair_at(s + (m + 1) * 64, j, i, j + 1, i));
    put(p, 32 + lane, r[1]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(r[0])
                 : "r"(shared_of(s + lane % 8 * 8))
                 : "memory");
    EXPECT(r[0] == pair_at(s, i, j, i, j + 1));

    unsigned short *to_s = s + 512;
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(shared_of(to_s + lane % 16 * 8)),
                 "r"(r[0]), "r"(moved)
                 : "memory");
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(shared_of(to_s + 128 + lane % 8 * 8)),
        "r"(r[0])
        : "memory");
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    for (int k = lane; k < 64; k += 32) {
        EXPECT(to_s[k] == s[k] && to_s[64 + k] == s[128 + k % 8 * 8 + k / 8] && to_s[128 + k] == s[k % 8 * 8 + k / 8]);
        put(p, 64 + k, to_s[64 + k]);
    }
}
