/* Barriers, shuffles with their predicate, votes, matches, reductions, elections; needs sm_90. */
#include "ptx.cuh"

FA_KERNEL_INFO(.threads = 128, .smem_dynamic_bytes = 1024);

__device__ unsigned down(unsigned x, unsigned by, unsigned c, unsigned &in_range)
{
    unsigned d;
    asm volatile("{\n\t.reg .pred p;\n\tshfl.sync.down.b32 %0|p, %2, %3, %4, 0xffffffff;\n\tselp.u32 %1, 1, 0, p;\n\t}"
                 : "=r"(d), "=r"(in_range)
                 : "r"(x), "r"(by), "r"(c));
    return d;
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    FA_SHARED(unsigned, s);
    const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32, x = mixed(lane);
    unsigned a, b, c, d, in_range;

    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(a) : "r"(x), "r"(lane * 5));
    EXPECT(a == mixed(lane * 5 % 32));
    asm volatile("shfl.sync.bfly.b32 %0, %1, 6, 0x1f, -1;" : "=r"(b) : "r"(x));
    EXPECT(b == mixed(lane ^ 6));
    asm volatile("shfl.sync.up.b32 %0, %1, 3, 0x0, 0xffffffff;" : "=r"(c) : "r"(x));
    EXPECT(c == mixed(lane < 3 ? lane : lane - 3));
    d = down(x, 4, 0x1f, in_range);
    EXPECT(d == mixed(lane < 28 ? lane + 4 : lane) && in_range == (lane < 28));
    d = down(x, 3, 0x181f, in_range); /* segments of eight lanes */
    EXPECT(d == mixed(lane % 8 < 5 ? lane + 3 : lane) && in_range == (lane % 8 < 5));

    asm volatile("{\n\t.reg .pred p, q;\n\tsetp.lt.u32 p, %4, 7;\n\t"
                 "vote.sync.ballot.b32 %0, p, 0xffffffff;\n\tvote.sync.ballot.b32 %1, !p, 0xffffffff;\n\t"
                 "vote.sync.any.pred q, p, 0xffffffff;\n\tselp.u32 %2, 1, 0, q;\n\t"
                 "vote.sync.all.pred q, p, 0xffffffff;\n\tselp.u32 %3, 1, 0, q;\n\t}"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(lane));
    EXPECT(a == 0x7f && b == ~0x7fu && c == 1 && d == 0);
    asm volatile("{\n\t.reg .pred p;\n\tmatch.any.sync.b32 %0, %3, 0xffffffff;\n\t"
                 "match.all.sync.b32 %1|p, %4, 0xffffffff;\n\tselp.u32 %2, 1, 0, p;\n\t}"
                 : "=r"(a), "=r"(b), "=r"(c)
                 : "r"(lane % 3), "r"(warp));
    EXPECT((a >> lane & 1) == 1 && a == (lane % 3 == 0 ? 0x49249249u : lane % 3 == 1 ? 0x92492492u : 0x24924924u));
    EXPECT(b == ~0u && c == 1);
    asm volatile("redux.sync.add.u32 %0, %2, 0xffffffff;\n\tredux.sync.min.s32 %1, %3, 0xffffffff;"
                 : "=r"(a), "=r"(b)
                 : "r"(lane), "r"(static_cast<int>(lane) - 9));
    EXPECT(a == 496 && b == static_cast<unsigned>(-9));
    asm volatile("{\n\t.reg .pred p;\n\telect.sync %0|p, 0xffffffff;\n\tselp.u32 %1, 1, 0, p;\n\t}" : "=r"(a), "=r"(b));
    EXPECT(a < 32 && b == (lane == a));
    asm volatile("activemask.b32 %0;" : "=r"(a));
    EXPECT((a >> lane & 1) == 1);

    /* block barriers: plain, of some warps, with a predicate; producers and consumers */
    s[t] = t;
    asm volatile("barrier.cta.sync.aligned 0;" ::: "memory");
    EXPECT(s[127 - t] == 127 - t);
    asm volatile("barrier.cta.sync 0, 128;" ::: "memory");
    asm volatile("bar.sync %0, 64;" ::"r"(1 + warp / 2) : "memory");
    s[t] = t * 3;
    asm volatile("bar.sync %0, 64;" ::"r"(1 + warp / 2) : "memory");
    EXPECT(s[t ^ 32] == (t ^ 32) * 3);
    asm volatile("{\n\t.reg .pred p, q;\n\tsetp.lt.u32 p, %3, 100;\n\tbar.red.popc.u32 %0, 0, p;\n\t"
                 "bar.red.and.pred q, 0, p;\n\tselp.u32 %1, 1, 0, q;\n\tbar.red.or.pred q, 0, 128, !p;\n\tselp.u32 %2, "
                 "1, 0, q;\n\t}"
                 : "=r"(a), "=r"(b), "=r"(c)
                 : "r"(t)
                 : "memory");
    EXPECT(a == 100 && b == 0 && c == 1);
    if (warp < 2) {
        s[128 + t] = t + 9;
        asm volatile("bar.arrive 5, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 5, 128;" ::: "memory");
        EXPECT(s[128 + t - 64] == t - 64 + 9);
    }
    s[t] = t;
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    EXPECT(s[t ^ 1] == (t ^ 1));
    asm volatile("nanosleep.u32 20;\n\tgriddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;");
    put(p, blockIdx.x * 128 + t, d + s[t ^ 1]);
    asm volatile("{\n\t.reg .pred p;\n\tsetp.lt.u32 p, %0, 50;\n\t@p exit;\n\t}" ::"r"(t));
    __syncthreads(); /* of the threads that are left */
    EXPECT(t >= 50);
}
