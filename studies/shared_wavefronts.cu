/* Clocks of a multiprocessor per ldmatrix, stmatrix, ld.shared, st.shared and shfl: how many wavefronts of 128 bytes
 * each takes, without bank conflicts and with rows 128 bytes apart (eight rows in the same banks).
 *     nvcc -std=c++17 -O3 -arch=sm_90a studies/shared_wavefronts.cu -o build/shared_wavefronts &&
 *         build/shared_wavefronts */
#include "clocks.cuh"

enum access {
    LDSM1,
    LDSM2,
    LDSM4,
    LDSM4T,
    STSM1,
    STSM2,
    STSM4,
    STSM4T,
    LDS32,
    LDS64,
    LDS128,
    STS32,
    STS64,
    STS128,
    SHFL
};
/* Where lane i reads: 16 bytes further, rows of 128 bytes, 4 bytes of the same word, 4, 8 or 16 bytes further. */
enum pattern { ROWS_16, ROWS_128, SAME, BYTES_4, BYTES_8, BYTES_16 };

template <pattern PATTERN>
__device__ __forceinline__ unsigned offset(unsigned lane)
{
    return PATTERN == ROWS_16 || PATTERN == BYTES_16 ? lane * 16
           : PATTERN == ROWS_128                     ? lane * 128
           : PATTERN == BYTES_8                      ? lane * 8
           : PATTERN == BYTES_4                      ? lane * 4
                                                     : 0;
}

/* The first one, two or four of x, at `where`. */
#define LOAD_1(PTX) asm volatile(PTX " %0,[%1];" : "=r"(x[0]) : "r"(where) : "memory")
#define LOAD_1V(PTX) asm volatile(PTX " {%0},[%1];" : "=r"(x[0]) : "r"(where) : "memory")
#define LOAD_2(PTX) asm volatile(PTX " {%0,%1},[%2];" : "=r"(x[0]), "=r"(x[1]) : "r"(where) : "memory")
#define LOAD_4(PTX) \
    asm volatile(PTX " {%0,%1,%2,%3},[%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(where) : "memory")
#define STORE_1(PTX) asm volatile(PTX " [%1],%0;" ::"r"(x[0]), "r"(where) : "memory")
#define STORE_1V(PTX) asm volatile(PTX " [%1],{%0};" ::"r"(x[0]), "r"(where) : "memory")
#define STORE_2(PTX) asm volatile(PTX " [%2],{%0,%1};" ::"r"(x[0]), "r"(x[1]), "r"(where) : "memory")
#define STORE_4(PTX) \
    asm volatile(PTX " [%4],{%0,%1,%2,%3};" ::"r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(where) : "memory")
#define LDSM "ldmatrix.sync.aligned.m8n8"
#define STSM "stmatrix.sync.aligned.m8n8"

template <access ACCESS, pattern PATTERN>
struct wavefronts {
    enum { MOST_WARPS = 32, ROLES = 1, UNROLL = 16 };
    unsigned r[4][4], sum[4], at, other;

    /* Two places that the rounds take in turns: the compiler must not take one load for another. */
    __device__ __forceinline__ void setup(const unsigned *seed_g, unsigned shared)
    {
        for (int i = 0; i < 16; ++i)
            r[i / 4][i % 4] = sum[i % 4] = seed_g[i * 32 + threadIdx.x];
        at = shared + offset<PATTERN>(threadIdx.x % 32);
        other = at + 32768;
    }

    template <int I, int ROLE>
    __device__ __forceinline__ void step()
    {
        unsigned(&x)[4] = r[I % 4];
        if (I == 0) {
            const unsigned last = at;
            at = other;
            other = last;
        }
        const unsigned where = at + I * 512;
        if (ACCESS == LDSM1)
            LOAD_1V(LDSM ".x1.shared.b16");
        if (ACCESS == LDSM2)
            LOAD_2(LDSM ".x2.shared.b16");
        if (ACCESS == LDSM4)
            LOAD_4(LDSM ".x4.shared.b16");
        if (ACCESS == LDSM4T)
            LOAD_4(LDSM ".x4.trans.shared.b16");
        if (ACCESS == STSM1)
            STORE_1V(STSM ".x1.shared.b16");
        if (ACCESS == STSM2)
            STORE_2(STSM ".x2.shared.b16");
        if (ACCESS == STSM4)
            STORE_4(STSM ".x4.shared.b16");
        if (ACCESS == STSM4T)
            STORE_4(STSM ".x4.trans.shared.b16");
        if (ACCESS == LDS32)
            LOAD_1("ld.shared.b32");
        if (ACCESS == LDS64)
            LOAD_2("ld.shared.v2.b32");
        if (ACCESS == LDS128)
            LOAD_4("ld.shared.v4.b32");
        if (ACCESS == STS32)
            STORE_1("st.shared.b32");
        if (ACCESS == STS64)
            STORE_2("st.shared.v2.b32");
        if (ACCESS == STS128)
            STORE_4("st.shared.v4.b32");
        if (ACCESS == SHFL)
            asm volatile("shfl.sync.bfly.b32 %0,%0,1,0x1f,0xffffffff;" : "+r"(x[I / 4 % 4]));
        if (I % 4 == 3 && (ACCESS < STSM1 || ACCESS >= LDS32) && ACCESS < STS32)
            for (int i = 0; i < 4; ++i) /* or the loads would be dropped; two LOP3 per four loads and register */
                sum[i] ^= r[0][i] ^ r[1][i] ^ r[2][i] ^ r[3][i];
    }

    __device__ __forceinline__ unsigned result() const
    {
        unsigned all = 0;
        for (int i = 0; i < 16; ++i)
            all += r[i / 4][i % 4] + sum[i % 4];
        return all;
    }
};

#define REPORT(ACCESS, PATTERN) report<wavefronts<ACCESS, PATTERN>>(b, #ACCESS " " #PATTERN)

int main()
{
    const buffers b = make_buffers("studies/shared_wavefronts.cu");
    printf("# columns: 4, 8, 16, 32 warps\n");
    REPORT(LDSM1, ROWS_16), REPORT(LDSM2, ROWS_16), REPORT(LDSM4, ROWS_16), REPORT(LDSM4T, ROWS_16);
    REPORT(LDSM4, ROWS_128), REPORT(LDSM4, SAME), REPORT(LDSM1, SAME);
    REPORT(STSM1, ROWS_16), REPORT(STSM2, ROWS_16), REPORT(STSM4, ROWS_16), REPORT(STSM4T, ROWS_16);
    REPORT(STSM4, ROWS_128);
    REPORT(LDS32, BYTES_4), REPORT(LDS32, SAME), REPORT(LDS32, ROWS_128), REPORT(LDS64, BYTES_8), REPORT(LDS64, SAME);
    REPORT(LDS128, BYTES_16), REPORT(LDS128, SAME), REPORT(LDS128, ROWS_128);
    REPORT(STS32, BYTES_4), REPORT(STS32, ROWS_128), REPORT(STS64, BYTES_8), REPORT(STS128, BYTES_16);
    REPORT(STS32, SAME), REPORT(STS128, SAME), REPORT(SHFL, SAME);
    return 0;
}
