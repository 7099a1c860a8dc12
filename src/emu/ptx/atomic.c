#include "emu/ptx/atomic.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>

#include "emu/race/memory.h"
#include "ptx/formats.h"

/* One set of functions per size: 1, 2, 4, 8 bytes. */
typedef struct functions {
    uint64_t (*load)(const void *at, int order);
    void (*store)(void *at, uint64_t bits, int order);
    bool (*exchange)(void *at, uint64_t *expected, uint64_t bits, int order);
} functions;

#define FUNCTIONS(bits_)                                                                                              \
    static uint64_t load_##bits_(const void *at, int order)                                                           \
    {                                                                                                                 \
        (void)order;                                                                                                  \
        return __atomic_load_n((const uint##bits_##_t *)at, __ATOMIC_SEQ_CST);                                        \
    }                                                                                                                 \
    static void store_##bits_(void *at, uint64_t bits, int order)                                                     \
    {                                                                                                                 \
        (void)order;                                                                                                  \
        __atomic_store_n((uint##bits_##_t *)at, (uint##bits_##_t)bits, __ATOMIC_SEQ_CST);                             \
    }                                                                                                                 \
    static bool exchange_##bits_(void *at, uint64_t *expected, uint64_t bits, int order)                              \
    {                                                                                                                 \
        uint##bits_##_t old = (uint##bits_##_t) * expected;                                                           \
        (void)order;                                                                                                  \
        const bool done = __atomic_compare_exchange_n((uint##bits_##_t *)at, &old, (uint##bits_##_t)bits, false,      \
                                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                            \
        *expected = old;                                                                                              \
        return done;                                                                                                  \
    }                                                                                                                 \
    static uint##bits_##_t (*tsan_load_##bits_##_f)(const volatile void *at, int order);                              \
    static void (*tsan_store_##bits_##_f)(volatile void *at, uint##bits_##_t bits, int order);                        \
    static int (*tsan_exchange_##bits_##_f)(volatile void *at, uint##bits_##_t *old, uint##bits_##_t bits, int order, \
                                            int failure);                                                             \
    static uint64_t tsan_load_##bits_(const void *at, int order) { return tsan_load_##bits_##_f(at, order); }         \
    static void tsan_store_##bits_(void *at, uint64_t bits, int order)                                                \
    {                                                                                                                 \
        tsan_store_##bits_##_f(at, (uint##bits_##_t)bits, order);                                                     \
    }                                                                                                                 \
    static bool tsan_exchange_##bits_(void *at, uint64_t *expected, uint64_t bits, int order)                         \
    {                                                                                                                 \
        uint##bits_##_t old = (uint##bits_##_t) * expected;                                                           \
        const int failure = order == __ATOMIC_ACQ_REL   ? __ATOMIC_ACQUIRE                                            \
                            : order == __ATOMIC_RELEASE ? __ATOMIC_RELAXED                                            \
                                                        : order;                                                      \
        const int done = tsan_exchange_##bits_##_f(at, &old, (uint##bits_##_t)bits, order, failure);                  \
        *expected = old;                                                                                              \
        return done != 0;                                                                                             \
    }
FUNCTIONS(8)
FUNCTIONS(16)
FUNCTIONS(32)
FUNCTIONS(64)

static void (*tsan_enter)(void *pc);
static void (*tsan_leave)(void);

static void find_tsan(void)
{
#define FIND(bits)                                                                          \
    *(void **)&tsan_load_##bits##_f = dlsym(RTLD_DEFAULT, "__tsan_atomic" #bits "_load");   \
    *(void **)&tsan_store_##bits##_f = dlsym(RTLD_DEFAULT, "__tsan_atomic" #bits "_store"); \
    *(void **)&tsan_exchange_##bits##_f = dlsym(RTLD_DEFAULT, "__tsan_atomic" #bits "_compare_exchange_strong");
    FIND(8)
    FIND(16)
    FIND(32)
    FIND(64)
#undef FIND
    *(void **)&tsan_enter = dlsym(RTLD_DEFAULT, "__tsan_func_entry");
    *(void **)&tsan_leave = dlsym(RTLD_DEFAULT, "__tsan_func_exit");
}

/* tsan: the race detector runs and gets the place of the access in the kernel; call leave() afterwards. */
static functions enter(const fa_emu_ptx_run *run, uint32_t size, bool *tsan)
{
#define SET(of, bits)                                           \
    {                                                           \
        of##load_##bits, of##store_##bits, of##exchange_##bits, \
    }
    static const functions plain[] = {SET(, 8), SET(, 16), SET(, 32), SET(, 64)},
                           watched[] = {SET(tsan_, 8), SET(tsan_, 16), SET(tsan_, 32), SET(tsan_, 64)};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const int at = __builtin_ctz(size);
    *tsan = fa_emu_self->launch->image->build->tsan;
    if (*tsan) {
        pthread_once(&once, find_tsan);
        *tsan = tsan_enter != NULL && tsan_load_32_f != NULL;
    }
    if (*tsan) {
        tsan_enter((void *)(uintptr_t)run->pc);
        fa_race_scope(fa_ptx_has(run->instr, FA_PTX_W_CTA));
    }
    return *tsan ? watched[at] : plain[at];
}

static void leave(bool tsan)
{
    if (tsan) {
        fa_race_scope(false);
        tsan_leave();
    }
}

uint64_t fa_emu_ptx_atomic_load(const fa_emu_ptx_run *run, const void *at, uint32_t size, int order)
{
    bool tsan;
    const functions f = enter(run, size, &tsan);
    const uint64_t bits = f.load(at, order);
    leave(tsan);
    return bits;
}

void fa_emu_ptx_atomic_store(const fa_emu_ptx_run *run, void *at, uint32_t size, uint64_t bits, int order)
{
    bool tsan;
    const functions f = enter(run, size, &tsan);
    f.store(at, bits, order);
    leave(tsan);
}

/* The smaller or larger one of each element; of a number and NaN the number. */
static uint64_t pick_floats(fa_ptx_type type, uint64_t x, uint64_t y, bool larger)
{
    const fa_ptx_type one = fa_ptx_element(type);
    const unsigned width = fa_ptx_types[one].bits;
    uint64_t picked = 0;
    for (unsigned shift = 0; shift < fa_ptx_types[type].bits; shift += width) {
        const uint64_t a = x >> shift & fa_ptx_mask(width), b = y >> shift & fa_ptx_mask(width);
        const double of_a = fa_ptx_to_double(a, one), of_b = fa_ptx_to_double(b, one);
        const bool takes_b = isnan(of_a) || (larger ? of_b > of_a : of_b < of_a);
        picked |= (takes_b ? b : a) << shift;
    }
    return picked;
}

static uint64_t pick(fa_ptx_type type, uint64_t x, uint64_t y, bool larger)
{
    const fa_ptx_type_info *info = &fa_ptx_types[type];
    if (info->kind == FA_PTX_F)
        return pick_floats(type, x, y, larger);
    const bool less = info->kind == FA_PTX_S ? (int64_t)fa_ptx_fit(x, info) < (int64_t)fa_ptx_fit(y, info) : x < y;
    return less != larger ? x : y;
}

static uint64_t add_floats(fa_ptx_type type, uint64_t x, uint64_t y)
{
    const fa_ptx_type one = fa_ptx_element(type);
    const unsigned width = fa_ptx_types[one].bits;
    uint64_t sum = 0;
    for (unsigned shift = 0; shift < fa_ptx_types[type].bits; shift += width) {
        const double a = fa_ptx_to_double(x >> shift & fa_ptx_mask(width), one),
                     b = fa_ptx_to_double(y >> shift & fa_ptx_mask(width), one);
        const double exact = type == FA_PTX_F64 ? a + b : fa_ptx_add_odd(a, b);
        sum |= fa_ptx_from_double(exact, one, FA_PTX_NEAREST, false) << shift;
    }
    return sum;
}

static uint64_t combine(const fa_ptx_instr *i, uint64_t old, uint64_t b, uint64_t c)
{
    const fa_ptx_type type = (fa_ptx_type)i->type[0];
    return fa_ptx_has(i, FA_PTX_W_CAS)    ? (old == b ? c : old)
           : fa_ptx_has(i, FA_PTX_W_EXCH) ? b
           : fa_ptx_has(i, FA_PTX_W_INC)  ? (old >= b ? 0 : old + 1)
           : fa_ptx_has(i, FA_PTX_W_DEC)  ? (old == 0 || old > b ? b : old - 1)
           : fa_ptx_has(i, FA_PTX_W_AND_) ? (old & b)
           : fa_ptx_has(i, FA_PTX_W_OR_)  ? (old | b)
           : fa_ptx_has(i, FA_PTX_W_XOR_) ? old ^ b
           : (fa_ptx_has(i, FA_PTX_W_MIN_) || fa_ptx_has(i, FA_PTX_W_MAX_))
               ? pick(type, old, b, fa_ptx_has(i, FA_PTX_W_MAX_))
               : (fa_ptx_types[type].kind == FA_PTX_F ? add_floats(type, old, b) : old + b);
}

uint64_t fa_emu_ptx_atomic(const fa_emu_ptx_run *run, void *at, uint32_t size, uint64_t b, uint64_t c, int order)
{
    bool tsan;
    const functions f = enter(run, size, &tsan);
    const uint64_t mask = fa_ptx_mask(8 * size);
    if (tsan && fa_ptx_has(run->instr, FA_PTX_W_CAS))
        fa_race_checks_guess(at, &b, size);
    uint64_t old = f.load(at, __ATOMIC_RELAXED);
    while (!f.exchange(at, &old, combine(run->instr, old & mask, b & mask, c & mask) & mask, order))
        ;
    leave(tsan);
    return old & mask;
}
