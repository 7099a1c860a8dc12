// Alignment of shared memory, in all the orders that people write it.
#include "ordinary.cuh"

CHECKS()
{
    __shared__ alignas(16) float a[THREADS];
    __shared__ __align__(16) half b[THREADS];
    alignas(128) __shared__ float c[THREADS];
    __align__(32) __shared__ int d[THREADS];
    __shared__ float e[THREADS] __attribute__((aligned(64)));
    __shared__ __attribute__((aligned(256))) float f[THREADS];
    __attribute__((aligned(32))) __shared__ float g[THREADS];
    static __shared__ float h[THREADS];
    __shared__ static float i[THREADS];
    volatile __shared__ float j[THREADS];
    __shared__ volatile float kk[THREADS];
    __shared__ float __align__(16) l[THREADS];
    __shared__ alignas(float4) float m;
    __shared__ unsigned long long int n[2], o, *q;
    EXPECT((size_t)a % 16 == 0 && (size_t)c % 128 == 0 && (size_t)d % 32 == 0 && (size_t)e % 64 == 0 &&
           (size_t)f % 256 == 0 && (size_t)g % 32 == 0 && (size_t)l % 16 == 0);
    a[t] = t;
    b[t] = __int2half_rn(t);
    c[t] = d[t] = e[t] = f[t] = g[t] = h[t] = i[t] = j[t] = kk[t] = l[t] = t;
    if (t == 0) {
        m = 1;
        n[0] = n[1] = o = 3;
        q = n;
    }
    __syncthreads();
    const int u = t ^ 1;
    EXPECT(a[u] == u && b[u] == __int2half_rn(u) && c[u] == u && d[u] == u && e[u] == u && f[u] == u && g[u] == u &&
           h[u] == u && i[u] == u && j[u] == u && kk[u] == u && l[u] == u && m == 1 && q[1] + o == 6);
}
