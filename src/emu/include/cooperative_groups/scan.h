/* cg::inclusive_scan and cg::exclusive_scan, rank by rank. */
#ifndef FA_EMU_CG_SCAN_H
#define FA_EMU_CG_SCAN_H

#include "reduce.h"

namespace cooperative_groups
{

template <typename G, typename T, typename F>
static inline T inclusive_scan(const G &group, T value, F op, FA_EMU_HERE)
{
    T sum = value;
    for (unsigned delta = 1; delta < group.size(); delta *= 2) {
        const T other = group.shfl_up(sum, delta, FA_EMU_THERE);
        if (group.thread_rank() >= delta)
            sum = op(other, sum);
    }
    return sum;
}
template <typename G, typename T>
static inline T inclusive_scan(const G &group, T value, FA_EMU_HERE)
{
    return inclusive_scan(group, value, plus<T>(), FA_EMU_THERE);
}
template <typename G, typename T, typename F>
static inline T exclusive_scan(const G &group, T value, F op, FA_EMU_HERE)
{
    const T sum = group.shfl_up(inclusive_scan(group, value, op, FA_EMU_THERE), 1, FA_EMU_THERE);
    return group.thread_rank() == 0 ? T() : sum;
}
template <typename G, typename T>
static inline T exclusive_scan(const G &group, T value, FA_EMU_HERE)
{
    return exclusive_scan(group, value, plus<T>(), FA_EMU_THERE);
}

} // namespace cooperative_groups

#endif
