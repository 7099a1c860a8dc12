/* Hopper's instructions behind named functions: mbarrier, TMA, wgmma by N, setmaxnreg, fences; sm_90a. Beside them a
 * few loads and stores that only the wgmma kernels use. All else is in prims.cuh. Shared-memory operands are 32-bit
 * addresses (smem_address). Source: PTX ISA 9.0, sections "mbarrier", "cp.async.bulk.tensor", "Asynchronous Warpgroup
 * Level Matrix Instructions", "setmaxnreg". */
#pragma once

#include "shared/prims.cuh"

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
static_assert(FA_M < 0, "wgmma needs sm_90a; on the emulator: --arch sm_90a");
#endif

typedef unsigned long long u64;

/* True in one lane of a whole warp. ptxas knows that it is one: it would loop over all lanes for a lane picked by
 * number. */
__device__ __forceinline__ bool elect_one()
{
    unsigned elected;
    asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.b32 %0, 1, 0, p;\n\t}" : "=r"(elected));
    return elected != 0;
}

/* make_opaque of prims.cuh for a pointer and for several values: an address is then not computed early. */
template <class T>
__device__ __forceinline__ void make_opaque(T *&pointer)
{
    asm volatile("" : "+l"(pointer));
}

template <class A, class B>
__device__ __forceinline__ void make_opaque(A &a, B &b)
{
    asm volatile("" : "+r"(a), "+r"(b));
}

template <class A, class B, class C>
__device__ __forceinline__ void make_opaque(A &a, B &b, C &c)
{
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c));
}

/* The first use of a value that is still on its way from memory. Without it the compiler may wait for it earlier. */
__device__ __forceinline__ void first_use(int &value) { asm volatile("" : "+r"(value)::"memory"); }

/* mbarrier: 8 bytes in shared memory. A phase ends when `count` arrivals and all expected bytes are in. */
__device__ __forceinline__ void mbarrier_init(unsigned bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void mbarrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(unsigned bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive_expect(unsigned bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ bool mbarrier_try_wait(unsigned bar, unsigned parity)
{
    unsigned done;
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.b32 %0, 1, 0, p;\n\t}"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
    return done != 0;
}

/* Has the phase of this parity ended? Does not wait: mbarrier_try_wait may, for a while. */
__device__ __forceinline__ bool mbarrier_test_wait(unsigned bar, unsigned parity)
{
    unsigned done;
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.b32 %0, 1, 0, p;\n\t}"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
    return done != 0;
}

/* A wait that fails this often has lost its signal. It gives up, and the output is wrong, instead of a hang.
 * (A trap here makes ptxas ignore setmaxnreg. A loop without a bound keeps descriptors in vector registers.) */
#ifndef FA_SPIN_LIMIT
#define FA_SPIN_LIMIT (1 << 24)
#endif

/* Returns when the phase of this parity has ended. A new barrier counts as having ended parity 1. */
__device__ __forceinline__ void mbarrier_wait(unsigned bar, unsigned parity)
{
    for (int tries = 0; tries < FA_SPIN_LIMIT && !mbarrier_try_wait(bar, parity); ++tries)
        ;
}

/* TMA. `map` is a CUtensorMap in parameter space. Coordinates are in elements, innermost first. */
__device__ __forceinline__ void tma_prefetch_map(const fa_tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void tma_load(unsigned to_s, const fa_tensor_map *map, unsigned bar, int c0, int c1, int c2,
                                         int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to_s),
                 "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

/* Loads the box into L2 only. */
__device__ __forceinline__ void tma_prefetch_l2(const fa_tensor_map *map, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];" ::"l"(map), "r"(c0), "r"(c1),
                 "r"(c2), "r"(c3)
                 : "memory");
}

/* A line of global memory to L2, beside TMA. */
__device__ __forceinline__ void prefetch_l2(const void *line_g)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line_g) : "memory");
}

/* Stores the box from shared memory, but nothing beyond the tensor. One thread stores, commits and waits. */
__device__ __forceinline__ void tma_store(const fa_tensor_map *map, unsigned from_s, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
                 "r"(from_s), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/* Returns when every committed store has read its shared memory. */
__device__ __forceinline__ void tma_store_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

/* Adds floats in shared memory to floats in global memory, both at multiples of 16 bytes, each sum at once by itself; a
 * store to commit and wait for. [cp.reduce.async.bulk] */
__device__ __forceinline__ void bulk_add_floats(float *sums_g, unsigned from_s, unsigned bytes)
{
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(sums_g),
                 "r"(from_s), "r"(bytes)
                 : "memory");
}

/* Returns when every committed store or reduction has been made. */
__device__ __forceinline__ void bulk_wait_done() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

/* Ordinary stores to shared memory before it are seen by TMA and wgmma after it. */
__device__ __forceinline__ void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* The same, each matrix transposed: lane 8 i + r gives the address of column r of matrix i. */
__device__ __forceinline__ void stmatrix_x4_trans_at(unsigned column_s, const unsigned (&r)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(column_s), "r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

/* Two 8 x 8 matrices from an address in shared space. */
__device__ __forceinline__ void ldmatrix_x2_at(unsigned (&r)[2], unsigned row_s)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(row_s)
                 : "memory");
}

/* 16 bytes from an address in shared space. */
__device__ __forceinline__ void ld_shared_16_at(uint4 &x, unsigned from_s)
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(from_s));
}

__device__ __forceinline__ float ld_shared_at(unsigned from_s)
{
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from_s) : "memory");
    return x;
}

__device__ __forceinline__ void st_shared_at(unsigned to_s, float x)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to_s), "f"(x) : "memory");
}

/* Two floats that lie 32 bytes apart in shared space. */
__device__ __forceinline__ void st_shared_pair_at(unsigned to_s, float x, float y)
{
    asm volatile("st.shared.f32 [%0], %1;\n\tst.shared.f32 [%0 + 32], %2;" ::"r"(to_s), "f"(x), "f"(y) : "memory");
}

__device__ __forceinline__ void ld_shared_pair_at(float (&x)[2], unsigned from_s)
{
    asm volatile("ld.shared.f32 %0, [%2];\n\tld.shared.f32 %1, [%2 + 32];" : "=f"(x[0]), "=f"(x[1]) : "r"(from_s));
}

/* Two elements, loaded in program order. The compiler would start many loads at once, and they would take registers. */
__device__ __forceinline__ unsigned ld_global_4_ordered(const fa_element *from_g)
{
    unsigned pair;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(pair) : "l"(from_g) : "memory");
    return pair;
}

/* Registers per thread of a warpgroup from here on. */
template <int REGISTERS>
__device__ __forceinline__ void setmaxnreg_inc()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS>
__device__ __forceinline__ void setmaxnreg_dec()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* wgmma. Order: fence_operand, wgmma_fence, the products, wgmma_commit, wgmma_wait, fence_operand. */
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/* Returns when at most PENDING of the committed groups are still running. */
template <int PENDING>
__device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Computes `value`, never negative, before what follows. ptxas would move the computation to its use, below a wait.
 * The store is never executed. A branch in its place would keep what follows out of the uniform registers. */
__device__ __forceinline__ void compute_before(int value)
{
    asm volatile("{\n\t.reg .pred p;\n\tsetp.lt.s32 p, %0, 0;\n\t@p st.shared.u32 [%0], %0;\n\t}" ::"r"(value)
                 : "memory");
}

/* Pins an accumulator to this point: the compiler moves no read of it above a wait, no write below a fence. */
template <int COUNT>
__device__ __forceinline__ void fence_operand(float (&r)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        asm volatile("" : "+f"(r[i])::"memory");
}

/* Shared-memory descriptor of a tile whose rows are as long as its swizzle, 128 or 64 bytes. Its low word is a sum:
 * descriptor_start(address) + bytes / 16 to move on + descriptor_leading(bytes between column groups of a row's
 * length), the last for N-major tiles only. */
template <int ROW_BYTES = 128>
__device__ __forceinline__ u64 wgmma_descriptor(unsigned low)
{
    static_assert(ROW_BYTES == 128 || ROW_BYTES == 64, "rows of 128 or 64 bytes");
    constexpr unsigned LAYOUT = ROW_BYTES == 128 ? 1 : 2, GROUP_BYTES = 8 * ROW_BYTES;
    return (static_cast<u64>(LAYOUT << 30 | GROUP_BYTES >> 4) << 32) | low;
}

__device__ __forceinline__ constexpr unsigned descriptor_start(unsigned address_s) { return address_s >> 4; }

__device__ __forceinline__ constexpr unsigned descriptor_leading(unsigned bytes) { return bytes >> 4 << 16; }

/* Operand lists by groups of 8 accumulators. T8_i: numbers in the text; R8_i: registers in the constraints. */
#define T8_0H "%0,%1,%2,%3"
#define T8_0 "%0,%1,%2,%3,%4,%5,%6,%7"
#define T8_1 T8_0 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define T8_2 T8_1 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define T8_3 T8_2 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define T8_4 T8_3 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define T8_5 T8_4 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define T8_6 T8_5 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define T8_7 T8_6 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define T8_8 T8_7 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define T8_9 T8_8 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define T8_10 T8_9 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define T8_11 T8_10 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define T8_12 T8_11 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define T8_13 T8_12 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define T8_14 T8_13 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define T8_15 T8_14 ",%120,%121,%122,%123,%124,%125,%126,%127"
#define T8_7H T8_7 ",%64,%65,%66,%67"
#define T8_1H T8_1 ",%16,%17,%18,%19"
#define T8_3H T8_3 ",%32,%33,%34,%35"
#define R8(i)                                                                                                   \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
        "+f"(d[i + 7])
#define R8_0H "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define R8_0 R8(0)
#define R8_1 R8_0, R8(8)
#define R8_1H R8_1, "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])
#define R8_2 R8_1, R8(16)
#define R8_3 R8_2, R8(24)
#define R8_3H R8_3, "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35])
#define R8_4 R8_3, R8(32)
#define R8_5 R8_4, R8(40)
#define R8_6 R8_5, R8(48)
#define R8_7 R8_6, R8(56)
#define R8_7H R8_7, "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67])
#define R8_8 R8_7, R8(64)
#define R8_9 R8_8, R8(72)
#define R8_10 R8_9, R8(80)
#define R8_11 R8_10, R8(88)
#define R8_12 R8_11, R8(96)
#define R8_13 R8_12, R8(104)
#define R8_14 R8_13, R8(112)
#define R8_15 R8_14, R8(120)
/* D[64, N] (+)= A[64, 16] B[16, N]; accumulate 0: D = A B.
 * ss: A, B in shared memory, both K-major (B as [N, K]). rs: A in registers, B K-major.
 * rs_n, ss_n: B N-major in shared memory ([K, N], "transposed"). ss_m: A M-major, B K-major. ss_mn: neither K-major.
 * d[4j + 2h + e]: row 16 * warp + lane / 4 + 8h, column 8j + 2 * (lane % 4) + e. */
template <int N>
struct wgmma;

/* TYPES: depth and types in the text; MAJORS: its last words. */
#define WGMMA_RS(NAME, N, G, S0, S1, S2, S3, S4, S5, TYPES, MAJORS)                                                \
    static __device__ __forceinline__ void NAME(float(&d)[N / 2], const unsigned *a, u64 b, int accumulate)        \
    {                                                                                                              \
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " S5 ", 0;\n\t"                                         \
                     "wgmma.mma_async.sync.aligned.m64n" #N TYPES " {" T8_##G "}, {" S0 ", " S1 ", " S2 ", " S3    \
                                                                              "}, " S4 ", p, 1, 1" MAJORS ";\n\t}" \
                     : R8_##G                                                                                      \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                       \
    }

#define WGMMA_SS(NAME, N, G, S0, S1, S2, TYPES, MAJORS)                                                           \
    static __device__ __forceinline__ void NAME(float(&d)[N / 2], u64 a, u64 b, int accumulate)                   \
    {                                                                                                             \
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " S2 ", 0;\n\t"                                        \
                     "wgmma.mma_async.sync.aligned.m64n" #N TYPES " {" T8_##G "}, " S0 ", " S1 ", p, 1, 1" MAJORS \
                                                                              ";\n\t}"                            \
                     : R8_##G                                                                                     \
                     : "l"(a), "l"(b), "r"(accumulate));                                                          \
    }

#define WGMMA_16 "k16.f32." FA_PTX_TYPE "." FA_PTX_TYPE
#define WGMMA(N, G, S0, S1, S2, S3, S4, S5)                           \
    template <>                                                       \
    struct wgmma<N> {                                                 \
        WGMMA_SS(ss, N, G, S0, S1, S2, WGMMA_16, ", 0, 0")            \
        WGMMA_SS(ss_n, N, G, S0, S1, S2, WGMMA_16, ", 0, 1")          \
        WGMMA_SS(ss_m, N, G, S0, S1, S2, WGMMA_16, ", 1, 0")          \
        WGMMA_SS(ss_mn, N, G, S0, S1, S2, WGMMA_16, ", 1, 1")         \
        WGMMA_RS(rs, N, G, S0, S1, S2, S3, S4, S5, WGMMA_16, ", 0")   \
        WGMMA_RS(rs_n, N, G, S0, S1, S2, S3, S4, S5, WGMMA_16, ", 1") \
    };

/* The values of N. */
#define WGMMA_ALL(X)                                           \
    X(8, 0H, "%4", "%5", "%6", "%7", "%8", "%9")               \
    X(40, 1H, "%20", "%21", "%22", "%23", "%24", "%25")        \
    X(32, 1, "%16", "%17", "%18", "%19", "%20", "%21")         \
    X(64, 3, "%32", "%33", "%34", "%35", "%36", "%37")         \
    X(72, 3H, "%36", "%37", "%38", "%39", "%40", "%41")        \
    X(80, 4, "%40", "%41", "%42", "%43", "%44", "%45")         \
    X(96, 5, "%48", "%49", "%50", "%51", "%52", "%53")         \
    X(112, 6, "%56", "%57", "%58", "%59", "%60", "%61")        \
    X(128, 7, "%64", "%65", "%66", "%67", "%68", "%69")        \
    X(136, 7H, "%68", "%69", "%70", "%71", "%72", "%73")       \
    X(144, 8, "%72", "%73", "%74", "%75", "%76", "%77")        \
    X(160, 9, "%80", "%81", "%82", "%83", "%84", "%85")        \
    X(176, 10, "%88", "%89", "%90", "%91", "%92", "%93")       \
    X(192, 11, "%96", "%97", "%98", "%99", "%100", "%101")     \
    X(208, 12, "%104", "%105", "%106", "%107", "%108", "%109") \
    X(224, 13, "%112", "%113", "%114", "%115", "%116", "%117") \
    X(240, 14, "%120", "%121", "%122", "%123", "%124", "%125") \
    X(256, 15, "%128", "%129", "%130", "%131", "%132", "%133")

WGMMA_ALL(WGMMA)

/* D[64, N] (+)= A[64, 32] B[32, N] of e4m3, both K-major. ss, rs and d as above; a[0]: row lane / 4, k's
 * 4 (lane % 4) and the next three; a[1] 8 rows on, a[2] and a[3] 16 k's on. */
template <int N>
struct wgmma_e4m3;

#define WGMMA_E4M3(N, G, S0, S1, S2, S3, S4, S5)                            \
    template <>                                                             \
    struct wgmma_e4m3<N> {                                                  \
        WGMMA_SS(ss, N, G, S0, S1, S2, "k32.f32.e4m3.e4m3", "")             \
        WGMMA_RS(rs, N, G, S0, S1, S2, S3, S4, S5, "k32.f32.e4m3.e4m3", "") \
    };

WGMMA_ALL(WGMMA_E4M3)
