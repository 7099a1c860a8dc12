// SIMD functions on the halves and bytes of a word.
#include "ordinary.cuh"

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    bool good = true;
    const int t = threadIdx.x;

    EXPECT(__vadd2(0x00010002, 0x00010001) == 0x00020003 && __vadd4(0x01010101, 0x01010101) == 0x02020202 &&
           __vmaxs2(0x00010002, 0x00020001) == 0x00020002 && __vcmpeq4(1, 1) == 0xffffffff && __vabsdiffu4(3, 1) == 2 &&
           __vsub4(0x02020202, 0x01010101) == 0x01010101);

    attend(p, good);
}
