/* cg::inclusive_scan and cg::exclusive_scan, rank by rank. */
#pragma once

#include "reduce.h"

namespace cooperative_groups
{

template <typename fa_G, typename fa_T, typename fa_F>
static inline fa_T inclusive_scan(const fa_G &group, fa_T value, fa_F op, FA_EMU_HERE)
{
    fa_T sum = value;
    for (unsigned delta = 1; delta < group.size(); delta *= 2) {
        const fa_T other = group.shfl_up(sum, delta, FA_EMU_THERE);
        if (group.thread_rank() >= delta)
            sum = op(other, sum);
    }
    return sum;
}
template <typename fa_G, typename fa_T>
static inline fa_T inclusive_scan(const fa_G &group, fa_T value, FA_EMU_HERE)
{
    return inclusive_scan(group, value, plus<fa_T>(), FA_EMU_THERE);
}
template <typename fa_G, typename fa_T, typename fa_F>
static inline fa_T exclusive_scan(const fa_G &group, fa_T value, fa_F op, FA_EMU_HERE)
{
    const fa_T sum = group.shfl_up(inclusive_scan(group, value, op, FA_EMU_THERE), 1, FA_EMU_THERE);
    return group.thread_rank() == 0 ? fa_T() : sum;
}
template <typename fa_G, typename fa_T>
static inline fa_T exclusive_scan(const fa_G &group, fa_T value, FA_EMU_HERE)
{
    return exclusive_scan(group, value, plus<fa_T>(), FA_EMU_THERE);
}

} // namespace cooperative_groups
