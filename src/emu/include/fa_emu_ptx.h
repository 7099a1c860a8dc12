/* Inline PTX: what the compiler's pass (src/compile/asm.c) writes in place of an asm statement; the core runs it. */
#pragma once

#include <type_traits>

/* The last parameter of a function that is one instruction: reports then name the line that calls it
 * (kernels/shared/prims.cuh). In other functions the name below means the asm statement's own line. */
#define FA_CALLER , fa_emu_place fa_emu_caller = {__builtin_FILE(), __builtin_LINE()}
static constexpr fa_emu_place fa_emu_caller = {nullptr, 0};

#if FA_EMU_TSAN
extern "C" void __tsan_read_range_pc(void *address, unsigned long size, void *pc);
extern "C" void __tsan_write_range_pc(void *address, unsigned long size, void *pc);
extern "C" void fa_emu_race_operand(const fa_emu_ptx_site *site, int number, void *to, unsigned long size, void *pc);
#endif
#if FA_EMU_ASAN
extern "C" void *__asan_region_is_poisoned(void *begin, size_t size);
extern "C" void __asan_report_error(void *pc, void *bp, void *sp, void *address, int write, size_t size, unsigned exp);
#endif

/* The bits of an operand, by its constraint: r 32, l 64, h 16 bits, f float, d double, n a constant. */
template <char fa_C, typename fa_T>
static inline __attribute__((always_inline)) uint64_t fa_emu_ptx_bits(fa_T x)
{
    static_assert(fa_C != 'r' || sizeof(fa_T) <= 4, "an operand of constraint r has 32 bits");
    static_assert((fa_C != 'l' && fa_C != 'd') || sizeof(fa_T) == 8, "an operand of constraint l or d has 64 bits");
    /* No variable whose address is taken: inlined into a function that is not instrumented, AddressSanitizer's marks of
     * its scope would stay behind on the stack. */
    if constexpr (fa_C == 'f')
        return __builtin_bit_cast(uint32_t, (float)x);
    else if constexpr (std::is_integral_v<fa_T> || std::is_enum_v<fa_T>)
        return fa_C == 'r' ? (uint32_t)x : fa_C == 'h' ? (uint16_t)x : (uint64_t)x;
    else if constexpr (sizeof(fa_T) == 8)
        return __builtin_bit_cast(uint64_t, x);
    else if constexpr (sizeof(fa_T) == 4)
        return __builtin_bit_cast(uint32_t, x);
    else if constexpr (sizeof(fa_T) == 2)
        return __builtin_bit_cast(uint16_t, x);
    else
        return __builtin_bit_cast(uint8_t, x);
}

/* An output; with In its value before, too. */
template <char fa_C, bool fa_In, typename fa_T>
struct fa_emu_ptx_place {
    fa_T *to;
    inline __attribute__((always_inline)) uint64_t load() const
    {
        if constexpr (fa_In)
            return fa_emu_ptx_bits<fa_C, std::remove_cv_t<fa_T>>(*to);
        return 0;
    }
    inline __attribute__((always_inline)) void store(uint64_t bits) const
    {
        if constexpr (std::is_integral_v<fa_T>)
            *to = (fa_T)bits;
        else
            memcpy((void *)to, &bits, sizeof(fa_T) < 8 ? sizeof(fa_T) : 8);
    }
};
struct fa_emu_ptx_value {
    uint64_t bits;
    inline __attribute__((always_inline)) uint64_t load() const { return bits; }
    inline __attribute__((always_inline)) void store(uint64_t) const {}
};

template <char fa_C, typename fa_T>
static inline __attribute__((always_inline)) fa_emu_ptx_place<fa_C, false, fa_T> fa_emu_ptx_out(fa_T &x)
{
    return {&x};
}
template <char fa_C, typename fa_T>
static inline __attribute__((always_inline)) fa_emu_ptx_place<fa_C, true, fa_T> fa_emu_ptx_inout(fa_T &x)
{
    return {&x};
}
template <char fa_C, typename fa_T>
static inline __attribute__((always_inline)) fa_emu_ptx_value fa_emu_ptx_in(fa_T x)
{
    return {fa_emu_ptx_bits<fa_C, fa_T>(x)};
}

/* Under a sanitizer the call is a function of its own, which is not instrumented: the operands' copies would cost more
 * than the instruction. Outputs are declared by hand: memory, and on the thread's stack what may be a register of a
 * wgmma. */
#if FA_EMU_TSAN || FA_EMU_ASAN
#define FA_EMU_PTX_CALL __attribute__((noipa, no_sanitize("address", "thread")))
#else
#define FA_EMU_PTX_CALL inline __attribute__((always_inline))
#endif
static inline __attribute__((always_inline)) void fa_emu_ptx_declare(const fa_emu_ptx_site &, int,
                                                                     const fa_emu_ptx_value &, const void *, void *)
{
}
template <char fa_C, bool fa_In, typename fa_T>
static inline __attribute__((always_inline)) void fa_emu_ptx_declare(const fa_emu_ptx_site &site, int number,
                                                                     fa_emu_ptx_place<fa_C, fa_In, fa_T> place,
                                                                     const void *frame, void *pc)
{
    (void)site, (void)number, (void)place, (void)frame, (void)pc;
#if FA_EMU_TSAN || FA_EMU_ASAN
    enum { fa_NEAR = 1 << 14 };
    const bool fa_near = (uintptr_t)place.to - (uintptr_t)frame + fa_NEAR < 2 * fa_NEAR;
#if FA_EMU_TSAN
    if (fa_near)
        return fa_emu_race_operand(&site, number, (void *)place.to, sizeof(fa_T), pc);
    if (fa_In)
        __tsan_read_range_pc((void *)place.to, sizeof(fa_T), pc);
    __tsan_write_range_pc((void *)place.to, sizeof(fa_T), pc);
#else
    if (void *bad = fa_near ? nullptr : __asan_region_is_poisoned((void *)place.to, sizeof(fa_T)))
        __asan_report_error(pc, (void *)frame, (void *)frame, bad, 1, sizeof(fa_T), 0);
#endif
#endif
}
template <typename... fa_Operands>
static FA_EMU_PTX_CALL void fa_emu_ptx(fa_emu_ptx_site &site, const fa_emu_place &caller, fa_Operands... operands)
{
    const fa_emu_place *place = caller.file == nullptr ? &site.at : &caller;
    uint64_t values[sizeof...(fa_Operands) + 1] = {operands.load()...};
    int at = 0;
#if FA_EMU_TSAN || FA_EMU_ASAN
    void *pc = __builtin_return_address(0);
    fa_emu_now()->api->ptx(&site, place, values, nullptr, pc, __builtin_frame_address(0));
    (fa_emu_ptx_declare(site, at++, operands, __builtin_frame_address(0), pc), ...);
    at = 0;
#else
    fa_emu_now()->api->ptx(&site, place, values, nullptr, nullptr, nullptr);
#endif
    (operands.store(values[at++]), ...);
}
/* A statement whose results a later one delivers (wgmma): the core keeps the operands' places and writes there. */
template <char fa_C, bool fa_In, typename fa_T>
static inline __attribute__((always_inline)) void *fa_emu_ptx_place_of(const fa_emu_ptx_place<fa_C, fa_In, fa_T> &place)
{
    return (void *)place.to;
}
/* An input that is a variable: the race detector watches it. */
struct fa_emu_ptx_late_value {
    uint64_t bits;
    void *place;
    inline __attribute__((always_inline)) uint64_t load() const { return bits; }
};
template <char fa_C, typename fa_T>
static inline __attribute__((always_inline)) fa_emu_ptx_late_value fa_emu_ptx_late(fa_T &&x)
{
#if FA_EMU_TSAN
    if constexpr (std::is_lvalue_reference_v<fa_T> && fa_C == 'r')
        return {fa_emu_ptx_bits<fa_C, std::remove_cvref_t<fa_T>>(x), (void *)&x};
#endif
    return {fa_emu_ptx_bits<fa_C, std::remove_cvref_t<fa_T>>(x), nullptr};
}
static inline __attribute__((always_inline)) void *fa_emu_ptx_place_of(const fa_emu_ptx_late_value &value)
{
    return value.place;
}
template <typename... fa_Operands>
static FA_EMU_PTX_CALL void fa_emu_ptx_start(fa_emu_ptx_site &site, const fa_emu_place &caller, fa_Operands... operands)
{
    const fa_emu_place *place = caller.file == nullptr ? &site.at : &caller;
    uint64_t values[sizeof...(fa_Operands)] = {operands.load()...};
    void *places[sizeof...(fa_Operands)] = {fa_emu_ptx_place_of(operands)...};
#if FA_EMU_TSAN || FA_EMU_ASAN
    fa_emu_now()->api->ptx(&site, place, values, places, __builtin_return_address(0), __builtin_frame_address(0));
#else
    fa_emu_now()->api->ptx(&site, place, values, places, nullptr, nullptr);
#endif
}
/* asm volatile("" : "+r"(x)): nothing but a word to the optimizer */
template <typename... fa_Operands>
static inline __attribute__((always_inline)) void fa_emu_ptx_nothing(const fa_Operands &...)
{
}

/* An instruction that a function of CUDA stands for. */
static inline void fa_emu_ptx_run(fa_emu_ptx_site &site, const char *file, int line)
{
    fa_emu_ptx(site, fa_emu_place{file, line});
}
#define FA_EMU_PTX_RUN(text)                                        \
    do {                                                            \
        static fa_emu_ptx_site site_ = {text, {"", 0}, 0, nullptr}; \
        fa_emu_ptx_run(site_, FA_EMU_THERE);                        \
    } while (0)

static inline bool fa_emu_is_own(const void *p)
{
    return fa_emu_is_shared(p, fa_emu_now()->smem, fa_emu_now()->smem_bytes, &fa_emu_build);
}
/* In a cluster the block's rank stands above the place, in the block's own addresses, too. */
static inline size_t __cvta_generic_to_shared(const void *p)
{
    if (fa_emu_now()->cluster_size > 1)
        if (const uint32_t address = fa_emu_now()->api->cluster_address(p))
            return address;
    return fa_emu_shared_address(p, fa_emu_now()->smem, &fa_emu_build);
}
static inline void *__cvta_shared_to_generic(size_t address)
{
    const uint32_t above = (uint32_t)address >> FA_EMU_CLUSTER_SHIFT;
    void *own =
        fa_emu_shared_place((uint32_t)address & ((1u << FA_EMU_CLUSTER_SHIFT) - 1), fa_emu_now()->smem, &fa_emu_build);
    return above == 0 ? own : fa_emu_now()->api->map_rank(own, above - 1);
}
static inline size_t __cvta_generic_to_global(const void *p) { return (size_t)p; }
static inline void *__cvta_global_to_generic(size_t address) { return (void *)address; }
static inline unsigned __isShared(const void *p) { return fa_emu_is_own(p); }
static inline unsigned __isClusterShared(const void *p) { return fa_emu_now()->api->rank_of(p) >= 0; }
static inline unsigned __isGlobal(const void *p) { return !__isShared(p) && !__isClusterShared(p); }

/* Clusters: their blocks lie along x. */
static inline unsigned __clusterGridDimInClusters() { return gridDim.x / fa_emu_now()->cluster_size; }
static inline dim3 __clusterDim() { return {fa_emu_now()->cluster_size, 1, 1}; }
static inline dim3 __clusterRelativeBlockIdx() { return {fa_emu_now()->cluster_rank, 0, 0}; }
static inline dim3 __clusterIdx() { return {blockIdx.x / fa_emu_now()->cluster_size, blockIdx.y, blockIdx.z}; }
static inline unsigned __clusterRelativeBlockRank() { return fa_emu_now()->cluster_rank; }
static inline unsigned __clusterSizeInBlocks() { return fa_emu_now()->cluster_size; }
static inline void __cluster_barrier_arrive(FA_EMU_HERE) { FA_EMU_PTX_RUN("barrier.cluster.arrive;"); }
static inline void __cluster_barrier_arrive_relaxed(FA_EMU_HERE) { FA_EMU_PTX_RUN("barrier.cluster.arrive.relaxed;"); }
static inline void __cluster_barrier_wait(FA_EMU_HERE) { FA_EMU_PTX_RUN("barrier.cluster.wait;"); }
static inline unsigned __cluster_query_shared_rank(const void *p) { return (unsigned)fa_emu_now()->api->rank_of(p); }
static inline void *__cluster_map_shared_rank(const void *p, unsigned rank, FA_EMU_HERE)
{
    void *to = fa_emu_now()->api->map_rank(p, rank);
    if (to == nullptr)
        fa_emu_now()->api->fail(rank < fa_emu_now()->cluster_size ? "illegal address" : "absent block",
                                rank < fa_emu_now()->cluster_size ? "map_shared_rank of a pointer that is not shared"
                                                                  : "map_shared_rank: the cluster has no such block",
                                FA_EMU_THERE);
    return to;
}
