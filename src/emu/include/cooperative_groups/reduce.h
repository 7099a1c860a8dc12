/* cg::reduce: tiles exchange in a butterfly, coalesced groups rank by rank; every thread has the result. */
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups
{

#define FA_EMU_CG_OPERATOR(name, expression)                         \
    template <typename fa_T = void>                                  \
    struct name {                                                    \
        fa_T operator()(fa_T a, fa_T b) const { return expression; } \
    };                                                               \
    template <>                                                      \
    struct name<void> {                                              \
        template <typename fa_T>                                     \
        fa_T operator()(fa_T a, fa_T b) const                        \
        {                                                            \
            return expression;                                       \
        }                                                            \
    };
FA_EMU_CG_OPERATOR(plus, a + b)
FA_EMU_CG_OPERATOR(less, b < a ? b : a)
FA_EMU_CG_OPERATOR(greater, a < b ? b : a)
FA_EMU_CG_OPERATOR(bit_and, a &b)
FA_EMU_CG_OPERATOR(bit_or, a | b)
FA_EMU_CG_OPERATOR(bit_xor, a ^ b)
#undef FA_EMU_CG_OPERATOR

template <unsigned fa_N, typename fa_P, typename fa_T, typename fa_F>
static inline fa_T reduce(const thread_block_tile<fa_N, fa_P> &group, fa_T value, fa_F op, FA_EMU_HERE)
{
    for (unsigned mask = fa_N / 2; mask > 0; mask /= 2)
        value = op(value, group.shfl_xor(value, mask, FA_EMU_THERE));
    return value;
}
template <typename fa_T, typename fa_F>
static inline fa_T reduce(const coalesced_group &group, fa_T value, fa_F op, FA_EMU_HERE)
{
    fa_T all = group.shfl(value, 0, FA_EMU_THERE);
    for (unsigned rank = 1; rank < group.size(); rank++)
        all = op(all, group.shfl(value, (int)rank, FA_EMU_THERE));
    return all;
}

} // namespace cooperative_groups
