// Vector types, cached loads, bit tricks; SIMD functions on the halves and bytes of a word.
#include <cuda_runtime.h>
#include <math_constants.h>
#include <vector_types.h>

#include "ordinary.cuh"

CHECKS()
{
    const float4 a = make_float4(1, 2, 3, 4);
    const uint4 bits = *reinterpret_cast<const uint4 *>(&a);
    const int2 two = make_int2(3, -4);
    const ushort4 small = make_ushort4(1, 2, 3, 4);
    const dim3 shape(2, 3);
    EXPECT(__uint_as_float(bits.w) == 4.0f && two.x + two.y == -1 && small.z == 3 && shape.x * shape.y * shape.z == 6);
    const unsigned *words = (const unsigned *)p.q;
    EXPECT(__ldg(words) == *words && __ldcs(words) == *words && __ldcg(words) == *words && __ldca(words) == *words);
    EXPECT(__popc(255u) == 8 && __clz(1) == 31 && __ffs(8) == 4 && __brev(1u) == 0x80000000u &&
           __byte_perm(0x01020304, 0, 0x0123) == 0x04030201u);
    EXPECT(__dp4a(0x01010101, 0x02020202, 1) == 9 && __mulhi(1 << 30, 4) == 1 && CUDART_INF_F > 1e38f);
    EXPECT(__half2float(__ldg((const half *)p.k)) == __half2float(*(const half *)p.k) && warpSize == 32);
    {
        EXPECT(__vadd2(0x00010002, 0x00010001) == 0x00020003 && __vadd4(0x01010101, 0x01010101) == 0x02020202 &&
               __vmaxs2(0x00010002, 0x00020001) == 0x00020002 && __vcmpeq4(1, 1) == 0xffffffff &&
               __vsub4(0x02020202, 0x01010101) == 0x01010101);
    }
}
