/* Barriers, warp collectives and atomics: each packs its operands and waits until the others have arrived. */
#pragma once

static inline fa_emu_op fa_emu_op_make(int kind, int mode, const char *name, unsigned mask, const char *file, int line)
{
    fa_emu_op op = {};
    op.kind = kind;
    op.mode = mode;
    op.name = name;
    op.mask = mask;
    op.file = file;
    op.line = line;
    return op;
}

static inline uint64_t fa_emu_wait(fa_emu_op &op)
{
    fa_emu_now()->api->wait(&op);
    return op.result;
}

static inline uint64_t fa_emu_barrier(const char *name, int mode, int id, int threads, int predicate, const char *file,
                                      int line)
{
    fa_emu_op op = fa_emu_op_make(FA_EMU_BARRIER, mode, name, ~0u, file, line);
    op.arg = id;
    op.width = threads;
    op.value = predicate != 0;
    return fa_emu_wait(op);
}
#define FA_EMU_SYNC_FN(name, mode)                                                   \
    static inline int name(int p, FA_EMU_HERE)                                       \
    {                                                                                \
        return (int)fa_emu_barrier(#name, FA_EMU_BAR_##mode, 0, 0, p, FA_EMU_THERE); \
    }
FA_EMU_SYNC_FN(__syncthreads_count, COUNT)
FA_EMU_SYNC_FN(__syncthreads_and, AND)
FA_EMU_SYNC_FN(__syncthreads_or, OR)
#undef FA_EMU_SYNC_FN
static inline void __syncthreads(FA_EMU_HERE)
{
    fa_emu_barrier("__syncthreads", FA_EMU_BAR_NONE, 0, 0, 0, FA_EMU_THERE);
}
static inline void __barrier_sync(unsigned id, FA_EMU_HERE)
{
    fa_emu_barrier("__barrier_sync", FA_EMU_BAR_NONE, (int)id, 0, 0, FA_EMU_THERE);
}
static inline void __barrier_sync_count(unsigned id, unsigned threads, FA_EMU_HERE)
{
    fa_emu_barrier("__barrier_sync_count", FA_EMU_BAR_NONE, (int)id, (int)threads, 0, FA_EMU_THERE);
}
/* No kernel runs before or after. */
static inline void cudaGridDependencySynchronize() {}
static inline void cudaTriggerProgrammaticLaunchCompletion() {}

static inline void __syncwarp(unsigned mask = 0xffffffffu, FA_EMU_HERE)
{
    fa_emu_op op = fa_emu_op_make(FA_EMU_SYNCWARP, 0, "__syncwarp", mask, FA_EMU_THERE);
    fa_emu_wait(op);
}
/* Lanes that can be together at this line: as many as there are. */
static inline unsigned __activemask(FA_EMU_HERE)
{
    fa_emu_op op = fa_emu_op_make(FA_EMU_ACTIVEMASK, 0, "__activemask", ~0u, FA_EMU_THERE);
    return (unsigned)fa_emu_wait(op);
}
/* Each gives a value and receives the outcome: votes, reductions. */
#define FA_EMU_COLLECTIVE(name, fa_T, kind, mode, word)                       \
    static inline fa_T name(unsigned mask, fa_T value, FA_EMU_HERE)           \
    {                                                                         \
        fa_emu_op op = fa_emu_op_make(kind, mode, #name, mask, FA_EMU_THERE); \
        op.value = word;                                                      \
        return (fa_T)fa_emu_wait(op);                                         \
    }
#define FA_EMU_VOTE_FN(name, mode) FA_EMU_COLLECTIVE(name, int, FA_EMU_VOTE, FA_EMU_VOTE_##mode, value != 0)
FA_EMU_VOTE_FN(__any_sync, ANY)
FA_EMU_VOTE_FN(__all_sync, ALL)
FA_EMU_VOTE_FN(__uni_sync, UNI)
#undef FA_EMU_VOTE_FN
FA_EMU_COLLECTIVE(__ballot_sync, unsigned, FA_EMU_VOTE, FA_EMU_VOTE_BALLOT, value != 0)

template <typename fa_T>
static inline fa_T fa_emu_shuffle(const char *name, int mode, unsigned mask, fa_T value, int arg, int width,
                                  const char *file, int line)
{
    static_assert(sizeof(fa_T) == 1 || sizeof(fa_T) == 2 || sizeof(fa_T) == 4 || sizeof(fa_T) == 8,
                  "a shuffle moves 1, 2, 4 or 8 bytes");
    fa_emu_op op = fa_emu_op_make(FA_EMU_SHUFFLE, mode, name, mask, file, line);
    op.arg = arg;
    op.width = width;
    memcpy(&op.value, &value, sizeof value);
    fa_emu_wait(op);
    memcpy((void *)&value, &op.result, sizeof value);
    return value;
}
#define FA_EMU_SHUFFLE_FN(name, mode, fa_Arg)                                                         \
    template <typename fa_T>                                                                          \
    static inline fa_T name(unsigned mask, fa_T value, fa_Arg arg, int width = 32, FA_EMU_HERE)       \
    {                                                                                                 \
        return fa_emu_shuffle(#name, FA_EMU_SHFL_##mode, mask, value, (int)arg, width, FA_EMU_THERE); \
    }
FA_EMU_SHUFFLE_FN(__shfl_sync, IDX, int)
FA_EMU_SHUFFLE_FN(__shfl_up_sync, UP, unsigned)
FA_EMU_SHUFFLE_FN(__shfl_down_sync, DOWN, unsigned)
FA_EMU_SHUFFLE_FN(__shfl_xor_sync, XOR, int)
#undef FA_EMU_SHUFFLE_FN

template <typename fa_T>
static inline unsigned fa_emu_match(const char *name, int mode, unsigned mask, fa_T value, const char *file, int line)
{
    fa_emu_op op = fa_emu_op_make(FA_EMU_MATCH, mode, name, mask, file, line);
    memcpy(&op.value, &value, sizeof value);
    return (unsigned)fa_emu_wait(op);
}
template <typename fa_T>
static inline unsigned __match_any_sync(unsigned mask, fa_T value, FA_EMU_HERE)
{
    return fa_emu_match("__match_any_sync", FA_EMU_MATCH_ANY, mask, value, FA_EMU_THERE);
}
template <typename fa_T>
static inline unsigned __match_all_sync(unsigned mask, fa_T value, int *same, FA_EMU_HERE)
{
    const unsigned lanes = fa_emu_match("__match_all_sync", FA_EMU_MATCH_ALL, mask, value, FA_EMU_THERE);
    *same = lanes != 0;
    return lanes;
}

#define FA_EMU_REDUCE_FN(name, fa_T, mode) FA_EMU_COLLECTIVE(name, fa_T, FA_EMU_REDUCE, mode, (unsigned)value)
FA_EMU_REDUCE_FN(__reduce_add_sync, int, FA_EMU_REDUCE_ADD)
FA_EMU_REDUCE_FN(__reduce_add_sync, unsigned, FA_EMU_REDUCE_ADD)
FA_EMU_REDUCE_FN(__reduce_min_sync, int, FA_EMU_REDUCE_MIN_S)
FA_EMU_REDUCE_FN(__reduce_min_sync, unsigned, FA_EMU_REDUCE_MIN_U)
FA_EMU_REDUCE_FN(__reduce_max_sync, int, FA_EMU_REDUCE_MAX_S)
FA_EMU_REDUCE_FN(__reduce_max_sync, unsigned, FA_EMU_REDUCE_MAX_U)
FA_EMU_REDUCE_FN(__reduce_and_sync, unsigned, FA_EMU_REDUCE_AND)
FA_EMU_REDUCE_FN(__reduce_or_sync, unsigned, FA_EMU_REDUCE_OR)
FA_EMU_REDUCE_FN(__reduce_xor_sync, unsigned, FA_EMU_REDUCE_XOR)
#undef FA_EMU_REDUCE_FN
#undef FA_EMU_COLLECTIVE

/* Others get a turn: for loops that wait for memory. */
static inline void fa_emu_yield(const char *name, const char *file, int line)
{
    fa_emu_op op = fa_emu_op_make(FA_EMU_YIELD, 0, name, ~0u, file, line);
    fa_emu_wait(op);
}
static inline void __nanosleep(unsigned, FA_EMU_HERE) { fa_emu_yield("__nanosleep", FA_EMU_THERE); }
static inline void fa_emu_polled(const char *name, const char *file, int line)
{
    fa_emu_thread *self = fa_emu_slot_value;
    if (!FA_EMU_TSAN && ++self->polls % FA_EMU_POLLS == 0) /* the race detector does this itself */
        fa_emu_yield(name, file, line);
}

/* Fences order memory between threads. Blocks of one launch run on several OS threads. */
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
#if FA_EMU_TSAN
extern "C" void fa_emu_race_fence_block(void);
extern "C" void fa_emu_race_scope_block(int on);
static inline void __threadfence_block() { fa_emu_race_fence_block(); }
#else
static inline void fa_emu_race_scope_block(int) {}
static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
#endif
/* While one lives, its thread's atomics are of its block alone. */
struct fa_emu_scope {
    fa_emu_scope(bool block) { fa_emu_race_scope_block(block); }
    ~fa_emu_scope() { fa_emu_race_scope_block(0); }
};
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

/* Atomics are relaxed, as on the device. */
template <typename fa_T, typename fa_F>
static inline fa_T fa_emu_atomic(fa_T *address, fa_F next)
{
    fa_T old, wanted;
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    do {
        wanted = next(old);
    } while (!__atomic_compare_exchange(address, &old, &wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}
template <typename fa_T>
struct fa_emu_same {
    typedef fa_T type;
};
template <typename fa_T>
using fa_emu_as = typename fa_emu_same<fa_T>::type;
#define FA_EMU_ATOMIC_FN(name, expression)                                              \
    template <typename fa_T>                                                            \
    static inline fa_T name(fa_T *address, fa_emu_as<fa_T> value, FA_EMU_HERE)          \
    {                                                                                   \
        fa_emu_polled(#name, FA_EMU_THERE);                                             \
        return fa_emu_atomic(address, [=](fa_T old) -> fa_T { return expression; });    \
    }                                                                                   \
    template <typename fa_T>                                                            \
    static inline fa_T name##_block(fa_T *address, fa_emu_as<fa_T> value, FA_EMU_HERE)  \
    {                                                                                   \
        const fa_emu_scope of_the_block(true);                                          \
        return name(address, value, FA_EMU_THERE);                                      \
    }                                                                                   \
    template <typename fa_T>                                                            \
    static inline fa_T name##_system(fa_T *address, fa_emu_as<fa_T> value, FA_EMU_HERE) \
    {                                                                                   \
        return name(address, value, FA_EMU_THERE);                                      \
    }
FA_EMU_ATOMIC_FN(atomicAdd, old + value)
FA_EMU_ATOMIC_FN(atomicSub, old - value)
FA_EMU_ATOMIC_FN(atomicExch, (void(old), value))
FA_EMU_ATOMIC_FN(atomicMin, value < old ? value : old)
FA_EMU_ATOMIC_FN(atomicMax, value > old ? value : old)
FA_EMU_ATOMIC_FN(atomicInc, old >= value ? 0 : old + 1)
FA_EMU_ATOMIC_FN(atomicDec, old == 0 || old > value ? value : old - 1)
FA_EMU_ATOMIC_FN(atomicAnd, old &value)
FA_EMU_ATOMIC_FN(atomicOr, old | value)
FA_EMU_ATOMIC_FN(atomicXor, old ^ value)
#undef FA_EMU_ATOMIC_FN
/* Vectors add element by element, each atomic by itself. They are aligned as a whole. */
static inline float2 atomicAdd(float2 *address, float2 value, FA_EMU_HERE)
{
    fa_emu_aligned(address, sizeof *address, "atomicAdd of a float2", FA_EMU_THERE);
    return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
static inline float4 atomicAdd(float4 *address, float4 value, FA_EMU_HERE)
{
    fa_emu_aligned(address, sizeof *address, "atomicAdd of a float4", FA_EMU_THERE);
    return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y), atomicAdd(&address->z, value.z),
            atomicAdd(&address->w, value.w)};
}
template <typename fa_T>
static inline fa_T atomicCAS(fa_T *address, fa_emu_as<fa_T> compare, fa_emu_as<fa_T> value, FA_EMU_HERE)
{
    fa_emu_polled("atomicCAS", FA_EMU_THERE);
    fa_T old = compare;
    __atomic_compare_exchange(address, &old, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return old;
}
template <typename fa_T>
static inline fa_T atomicCAS_block(fa_T *address, fa_emu_as<fa_T> compare, fa_emu_as<fa_T> value, FA_EMU_HERE)
{
    const fa_emu_scope of_the_block(true);
    return atomicCAS(address, compare, value, FA_EMU_THERE);
}
#define atomicCAS_system atomicCAS
