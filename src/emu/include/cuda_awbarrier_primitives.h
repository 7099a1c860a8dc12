/* Barrier objects by the toolkit's C functions, on mbarrier. */
#pragma once

#include "cuda/barrier"

typedef cuda::barrier<cuda::thread_scope_block> __mbarrier_t;
typedef uint64_t __mbarrier_token_t;

static inline uint32_t __mbarrier_maximum_count() { return (uint32_t)__mbarrier_t::max(); }
static inline void __mbarrier_init(__mbarrier_t *b, uint32_t expected, FA_EMU_HERE) { init(b, expected, FA_EMU_THERE); }
static inline void __mbarrier_inval(__mbarrier_t *b, FA_EMU_HERE)
{
    const fa_emu_place fa_emu_caller = {FA_EMU_THERE};
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"((unsigned)__cvta_generic_to_shared(b)) : "memory");
}
static inline __mbarrier_token_t __mbarrier_arrive(__mbarrier_t *b, FA_EMU_HERE) { return b->arrive(1, FA_EMU_THERE); }
#define __mbarrier_test_wait __mbarrier_try_wait
#define __mbarrier_test_wait_parity __mbarrier_try_wait_parity
static inline bool __mbarrier_try_wait(__mbarrier_t *b, __mbarrier_token_t token, uint32_t = 0, FA_EMU_HERE)
{
    return b->try_wait(token, FA_EMU_THERE);
}
static inline bool __mbarrier_try_wait_parity(__mbarrier_t *b, bool parity, uint32_t = 0, FA_EMU_HERE)
{
    return b->try_wait_parity(parity, FA_EMU_THERE);
}
