/* cp.async in all its forms: sizes, zero fill, an ignored source, groups, waits. */
#include "ptx.cuh"

FA_KERNEL_INFO(.threads = 64, .smem_dynamic_bytes = 4096);

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned char, s);
    const unsigned short *h_s = reinterpret_cast<const unsigned short *>(s);
    const unsigned short *q_g = static_cast<const unsigned short *>(p.q);
    const int t = threadIdx.x;
    const unsigned to = shared_of(s) + t * 32;

    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n\tcp.async.ca.shared::cta.global [%0 + 16], [%1], 8;\n\t"
                 "cp.async.ca.shared.global.L2::128B [%0 + 24], [%1 + 4], 4;" ::"r"(to),
                 "l"(q_g + t * 8)
                 : "memory");
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
    for (int i = 0; i < 8; i++)
        EXPECT(h_s[t * 16 + i] == q_g[t * 8 + i]);
    EXPECT(h_s[t * 16 + 11] == q_g[t * 8 + 3] && h_s[t * 16 + 13] == q_g[t * 8 + 3]);

    /* fewer bytes than the size: zeros for the rest; a source that is not read at all */
    const int bytes = t % 5 * 4;
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ge.u32 p, %3, 32;\n\t"
        "cp.async.cg.shared.global [%0], [%1], 16, %2;\n\tcp.async.ca.shared.global [%0 + 16], [%1], 8, p;\n\t}" ::"r"(
            to),
        "l"(q_g + 8 * t), "r"(bytes), "r"(t)
        : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    for (int i = 0; i < 8; i++)
        EXPECT(h_s[t * 16 + i] == (i * 2 < bytes ? q_g[t * 8 + i] : 0));
    EXPECT(h_s[t * 16 + 9] == (t >= 32 ? 0 : q_g[t * 8 + 1]));

    /* two groups: the older one is complete first */
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 4;\n\tcp.async.commit_group;\n\t"
        "cp.async.ca.shared.global [%0 + 4], [%1 + 4], 4;\n\tcp.async.commit_group;\n\tcp.async.wait_group %2;" ::"r"(
            to),
        "l"(q_g + 512 + 8 * t), "n"(1)
        : "memory");
    EXPECT(h_s[t * 16 + 1] == q_g[512 + t * 8 + 1]);
    asm volatile("cp.async.wait_group 0;\n\tbar.sync 0;" ::: "memory");
    EXPECT(h_s[(t ^ 40) * 16 + 3] == q_g[512 + (t ^ 40) * 8 + 3]);
    put(p, blockIdx.x * 64 + t, h_s[(t ^ 40) * 16 + 2]);
}
