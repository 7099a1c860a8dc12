// Templates and lambdas, concepts of C++20, <cuda/std/...>.
#include <cuda/std/cstdint>
#include <cuda/std/type_traits>
#include <cuda/std/utility>

#include <array>

#include "ordinary.cuh"

template <typename T, typename... Rest>
__device__ T total(T first, Rest... rest)
{
    if constexpr (sizeof...(rest) == 0)
        return first;
    else
        return first + total(rest...);
}
template <int N, typename F>
__device__ void unroll(F &&body)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        body(i);
}

CHECKS()
{
    int sum = 0;
    for (int i : std::array<int, 2>{1, -1})
        sum += i;
    unroll<4>([&](int i) { sum += i; });
    auto square = [](auto x) { return x * x; };
    EXPECT(sum == 6 && square(3) == 9 && square(0.5f) == 0.25f && total(1, 2, 3) == 6);
    static_assert(cuda::std::is_same_v<cuda::std::remove_reference_t<int &>, int>, "");
    cuda::std::uint32_t word = 5;
    EXPECT(cuda::std::forward<cuda::std::uint32_t>(word) == 5);
}
