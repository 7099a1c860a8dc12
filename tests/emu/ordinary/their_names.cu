// Functions that have the names of kernels/shared/prims.cuh.
#include "ordinary.cuh"

#define WARP_SIZE 32
#define FLOAT4(value) (reinterpret_cast<float4 *>(&(value))[0])
__shared__ half sm[256];
__device__ void ldmatrix_x4(unsigned (&r)[4], const half *a)
{
    unsigned s = __cvta_generic_to_shared(a);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(s));
}
__device__ float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
__device__ float exp2_approx(float x)
{
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ void bar_sync(int a, int b) { asm volatile("bar.sync %0, %1;" ::"r"(a), "r"(b) : "memory"); }
constexpr __host__ __device__ int cdiv(int a, int b) { return (a + b - 1) / b; }
template <typename T>
__device__ T warp_reduce_sum(T v)
{
#pragma unroll
    for (int o = WARP_SIZE >> 1; o >= 1; o >>= 1)
        v += __shfl_xor_sync(0xffffffff, v, o);
    return v;
}
__device__ void cp_async_commit() { asm volatile("cp.async.commit_group;"); }
template <int n>
__device__ void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(n));
}

CHECKS()
{
    unsigned r[4];
    ldmatrix_x4(r, &sm[(t & 31) * 8]);
    EXPECT(r[0] != 77);
    float4 v{1, 2, 3, 4};
    EXPECT((v + v).w == 8 && exp2_approx(2.f) == 4);
    bar_sync(1, THREADS);
    EXPECT(cdiv(5, 2) == 3 && warp_reduce_sum(1.f) == 32 && WARP_SIZE == 32);
    cp_async_commit();
    cp_async_wait<0>();
}
