/* Hopper's instructions behind named functions: mbarrier, TMA, wgmma by N, setmaxnreg, fences.
 * PTX ISA 9.0: sections "mbarrier", "cp.async.bulk.tensor", "Asynchronous Warpgroup Level Matrix Instructions",
 * "setmaxnreg".
 * Shared-memory operands are 32-bit addresses in the shared window (smem_address). */
#ifndef FA_HOPPER_CUH
#define FA_HOPPER_CUH

#include "prims.cuh"

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
static_assert(FA_M < 0, "wgmma needs sm_90a");
#endif

typedef unsigned int fa_u32;
typedef unsigned long long fa_u64;

/* Says that a value is the same in all lanes: what is computed from it can live in uniform registers. */
__device__ __forceinline__ fa_u32 fa_uniform(fa_u32 value) { return __shfl_sync(0xffffffffu, value, 0); }

/* True in one lane of a whole warp: what it guards may use uniform registers, which ptxas would not believe of a lane
 * picked by its number. */
__device__ __forceinline__ bool fa_elect_one()
{
    fa_u32 elected;
    asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.b32 %0, 1, 0, p;\n\t}" : "=r"(elected));
    return elected != 0;
}

__device__ __forceinline__ float fa_minus_inf() { return __int_as_float(0xff800000); }

/* 1 / x, 1 ulp. [rcp.approx.ftz] */
__device__ __forceinline__ float fa_reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* mbarrier: 8 bytes in shared memory; a phase ends when `count` arrivals and all expected bytes are in. */
__device__ __forceinline__ void fa_mbar_init(fa_u32 bar, fa_u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void fa_mbar_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void fa_mbar_arrive(fa_u32 bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void fa_mbar_arrive_expect(fa_u32 bar, fa_u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ bool fa_mbar_try_wait(fa_u32 bar, fa_u32 parity)
{
    fa_u32 done;
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.b32 %0, 1, 0, p;\n\t}"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
    return done != 0;
}

/* A wait that fails this often is a lost signal: it gives up and something wrong is computed, instead of a hang. (A
 * trap here makes ptxas ignore setmaxnreg; a loop without a bound makes it keep descriptors in vector registers.) */
#ifndef FA_SPIN_LIMIT
#define FA_SPIN_LIMIT (1 << 24)
#endif

/* Returns when the phase of this parity has ended. A fresh barrier counts as having ended parity 1. */
__device__ __forceinline__ void fa_mbar_wait(fa_u32 bar, fa_u32 parity)
{
    for (int tries = 0; tries < FA_SPIN_LIMIT && !fa_mbar_try_wait(bar, parity); ++tries)
        ;
}

/* TMA. `map` is a CUtensorMap in parameter space; coordinates are in elements, innermost first. */
__device__ __forceinline__ void fa_tma_prefetch_map(const fa_tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void fa_tma_load(fa_u32 to, const fa_tensor_map *map, fa_u32 bar, int c0, int c1, int c2,
                                            int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
                 "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

/* The box to L2 only. */
__device__ __forceinline__ void fa_tma_prefetch_l2(const fa_tensor_map *map, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];" ::"l"(map), "r"(c0), "r"(c1),
                 "r"(c2), "r"(c3)
                 : "memory");
}

/* The box from shared memory; what lies beyond the tensor is not written. By one thread, which commits and waits. */
__device__ __forceinline__ void fa_tma_store(const fa_tensor_map *map, fa_u32 from, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
                 "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

__device__ __forceinline__ void fa_tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/* Every committed store has read its shared memory. */
__device__ __forceinline__ void fa_tma_store_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/* Ordinary stores to shared memory before it are seen by TMA and wgmma after it. */
__device__ __forceinline__ void fa_fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void fa_ldmatrix_x4(fa_u32 from, fa_u32 *r)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from)
                 : "memory");
}

/* Four 8 x 8 matrices; lane 8 i + r names row r of matrix i. */
__device__ __forceinline__ void fa_stmatrix_x4(fa_u32 to, const fa_u32 *r)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3])
                 : "memory");
}

__device__ __forceinline__ void fa_ldmatrix_x2(fa_u32 from, fa_u32 *r)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(from)
                 : "memory");
}

/* d[16, 8] += a[16, 16] b[16, 8]: one warp, synchronous. d as 4 elements of fa_wgmma's accumulator. */
__device__ __forceinline__ void fa_mma_m16n8k16(float *d, const fa_u32 *a, const fa_u32 *b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
                 "%1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int REGISTERS>
__device__ __forceinline__ void fa_registers_up()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS>
__device__ __forceinline__ void fa_registers_down()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* wgmma. Order: operands in registers final -> fa_wgmma_fence -> instructions -> commit -> wait -> fa_wgmma_settle. */
__device__ __forceinline__ void fa_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void fa_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/* At most `PENDING` of the committed groups are still running. */
template <int PENDING>
__device__ __forceinline__ void fa_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Keeps the computation of `value`, never negative, above what follows: ptxas would sink it to its use below a wait. The
 * store never happens; a branch in its place would keep the uniform registers out of what follows. */
__device__ __forceinline__ void fa_compute_above(int value)
{
    asm volatile("{\n\t.reg .pred p;\n\tsetp.lt.s32 p, %0, 0;\n\t@p st.shared.u32 [%0], %0;\n\t}" ::"r"(value)
                 : "memory");
}

/* Pins registers to this point of the program: reads of an accumulator stay below the wait, writes above the fence. */
template <int COUNT>
__device__ __forceinline__ void fa_wgmma_settle(float (&r)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
        asm volatile("" : "+f"(r[i])::"memory");
}

/* Shared-memory descriptor of a 128-byte-swizzled tile whose 8-row groups are 1024 bytes apart. Its low word is a sum:
 * fa_wgmma_start(address) + bytes / 16 to move on + fa_wgmma_leading(bytes between 64-column groups, N-major only). */
__device__ __forceinline__ fa_u64 fa_wgmma_desc(fa_u32 low)
{
    return (static_cast<fa_u64>((1u << 30) | (1024 >> 4)) << 32) | low;
}

__device__ __forceinline__ constexpr fa_u32 fa_wgmma_start(fa_u32 addr) { return addr >> 4; }

__device__ __forceinline__ constexpr fa_u32 fa_wgmma_leading(fa_u32 bytes) { return bytes >> 4 << 16; }

/* Operand lists by groups of 8 accumulators: numbers in the text, registers in the constraints. */
#define FA_T8_0 "%0,%1,%2,%3,%4,%5,%6,%7"
#define FA_T8_1 FA_T8_0 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define FA_T8_2 FA_T8_1 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define FA_T8_3 FA_T8_2 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define FA_T8_4 FA_T8_3 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define FA_T8_5 FA_T8_4 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define FA_T8_6 FA_T8_5 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define FA_T8_7 FA_T8_6 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define FA_T8_8 FA_T8_7 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define FA_T8_9 FA_T8_8 ",%72,%73,%74,%75,%76,%77,%78,%79"
#define FA_T8_10 FA_T8_9 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define FA_T8_11 FA_T8_10 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define FA_T8_12 FA_T8_11 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define FA_T8_13 FA_T8_12 ",%104,%105,%106,%107,%108,%109,%110,%111"
#define FA_T8_14 FA_T8_13 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define FA_T8_15 FA_T8_14 ",%120,%121,%122,%123,%124,%125,%126,%127"
#define FA_T8_3H FA_T8_3 ",%32,%33,%34,%35"
#define FA_R8(i)                                                                                                \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
        "+f"(d[i + 7])
#define FA_R8_0 FA_R8(0)
#define FA_R8_1 FA_R8_0, FA_R8(8)
#define FA_R8_2 FA_R8_1, FA_R8(16)
#define FA_R8_3 FA_R8_2, FA_R8(24)
#define FA_R8_3H FA_R8_3, "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35])
#define FA_R8_4 FA_R8_3, FA_R8(32)
#define FA_R8_5 FA_R8_4, FA_R8(40)
#define FA_R8_6 FA_R8_5, FA_R8(48)
#define FA_R8_7 FA_R8_6, FA_R8(56)
#define FA_R8_8 FA_R8_7, FA_R8(64)
#define FA_R8_9 FA_R8_8, FA_R8(72)
#define FA_R8_10 FA_R8_9, FA_R8(80)
#define FA_R8_11 FA_R8_10, FA_R8(88)
#define FA_R8_12 FA_R8_11, FA_R8(96)
#define FA_R8_13 FA_R8_12, FA_R8(104)
#define FA_R8_14 FA_R8_13, FA_R8(112)
#define FA_R8_15 FA_R8_14, FA_R8(120)

/* D[64, N] (+)= A[64, 16] B[16, N]. ss: A, B in shared memory, both K-major (B as [N, K]). rs: A in registers, B K-major.
 * rs_n: A in registers, B N-major in shared memory ([K, N], "transposed").
 * d[4j + 2h + e]: row 16 * warp + lane / 4 + 8h, column 8j + 2 * (lane % 4) + e. accumulate 0: D = A B. */
template <int N>
struct fa_wgmma;

#define FA_WGMMA_RS(NAME, N, G, S0, S1, S2, S3, S4, S5, N_MAJOR)                                             \
    static __device__ __forceinline__ void NAME(float(&d)[N / 2], const fa_u32 *a, fa_u64 b, int accumulate) \
    {                                                                                                        \
        asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " S5 ", 0;\n\t"                                   \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" FA_T8_##G                    \
                     "}, {" S0 ", " S1 ", " S2 ", " S3 "}, " S4 ", p, 1, 1, " #N_MAJOR ";\n\t}"              \
                     : FA_R8_##G                                                                             \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                 \
    }

#define FA_WGMMA(N, G, S0, S1, S2, S3, S4, S5)                                                                        \
    template <>                                                                                                       \
    struct fa_wgmma<N> {                                                                                              \
        static __device__ __forceinline__ void ss(float (&d)[N / 2], fa_u64 a, fa_u64 b, int accumulate)              \
        {                                                                                                             \
            asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " S2 ", 0;\n\t"                                        \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" FA_T8_##G "}, " S0 ", " S1        \
                                                                                              ", p, 1, 1, 0, 0;\n\t}" \
                         : FA_R8_##G                                                                                  \
                         : "l"(a), "l"(b), "r"(accumulate));                                                          \
        }                                                                                                             \
        FA_WGMMA_RS(rs, N, G, S0, S1, S2, S3, S4, S5, 0)                                                              \
        FA_WGMMA_RS(rs_n, N, G, S0, S1, S2, S3, S4, S5, 1)                                                            \
    };

FA_WGMMA(64, 3, "%32", "%33", "%34", "%35", "%36", "%37")
FA_WGMMA(72, 3H, "%36", "%37", "%38", "%39", "%40", "%41")
FA_WGMMA(80, 4, "%40", "%41", "%42", "%43", "%44", "%45")
FA_WGMMA(96, 5, "%48", "%49", "%50", "%51", "%52", "%53")
FA_WGMMA(112, 6, "%56", "%57", "%58", "%59", "%60", "%61")
FA_WGMMA(128, 7, "%64", "%65", "%66", "%67", "%68", "%69")
FA_WGMMA(144, 8, "%72", "%73", "%74", "%75", "%76", "%77")
FA_WGMMA(160, 9, "%80", "%81", "%82", "%83", "%84", "%85")
FA_WGMMA(176, 10, "%88", "%89", "%90", "%91", "%92", "%93")
FA_WGMMA(192, 11, "%96", "%97", "%98", "%99", "%100", "%101")
FA_WGMMA(256, 15, "%128", "%129", "%130", "%131", "%132", "%133")

#endif
