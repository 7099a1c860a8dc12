/* Bytes a clock that one multiprocessor takes from L2: loads of 16 bytes a thread that pass L1 by. Every line is read
 * once in a round, so that no load finds another's on its way.
 *     nvcc -std=c++17 -O3 -arch=sm_90a studies/l2_read.cu -o build/l2_read && build/l2_read */
#include "clocks.cuh"

struct l2_loads {
    enum { MOST_WARPS = 32, ROLES = 1, UNROLL = 16, ALL = SEED_BYTES / 16 };
    unsigned x[4][4], sum, at;
    const uint4 *from_g;

    __device__ __forceinline__ void setup(const unsigned *seed_g, unsigned)
    {
        from_g = reinterpret_cast<const uint4 *>(seed_g);
        at = threadIdx.x;
        sum = 0;
        for (int i = 0; i < 16; ++i)
            x[i / 4][i % 4] = 0;
    }

    template <int I, int ROLE>
    __device__ __forceinline__ void step()
    {
        unsigned(&r)[4] = x[I % 4];
        if (I == 0)
            at = (at + UNROLL * 1024) % ALL;
        asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3},[%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "l"(from_g + at + I * 1024)
                     : "memory");
        if (I % 4 == 3)
            for (int i = 0; i < 16; ++i)
                sum ^= x[i / 4][i % 4];
    }

    __device__ __forceinline__ unsigned result() const { return sum; }
};

int main()
{
    const buffers b = make_buffers("studies/l2_read.cu");
    printf("# columns: 4, 8, 16, 32 warps\n");
    const double clocks = report<l2_loads>(b, "16 bytes a thread");
    printf("    %.1f bytes a clock\n", 512 / clocks);
    return 0;
}
