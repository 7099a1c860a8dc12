// cuda::std containers, cuda::atomic and cuda::atomic_ref.
#include <cuda/std/array>
#include <cuda/std/tuple>
#include <cuda/std/limits>
#include <cuda/std/cstdint>
#include <cuda/std/utility>
#include <cuda/std/type_traits>
#include <cuda/std/bit>
#include <cuda/std/optional>
#include <cuda/std/bitset>
#include <cuda/std/chrono>
#include <cuda/std/complex>
#include <cuda/std/concepts>
#include <cuda/std/initializer_list>
#include <cuda/std/iterator>
#include <cuda/std/ratio>
#include <cuda/std/variant>
#include <cuda/atomic>
#include <cuda/cmath>
#include <cuda/functional>

#include "ordinary.cuh"

CHECKS()
{
    cuda::std::array<int, 3> a{1, 2, 3};
    EXPECT(a[2] == 3 && cuda::std::numeric_limits<float>::max() > 1e38f);
    uint32_t u = 3;
    int64_t l = 4;
    EXPECT(u + l == 7);
    cuda::std::tuple<int, float> tp{1, 2.f};
    EXPECT(cuda::std::get<0>(tp) == 1);
    cuda::std::pair<int, int> pr(1, 2);
    EXPECT(pr.second == 2);
    size_t n = sizeof(a);
    EXPECT(n == 12 && cuda::std::bit_cast<unsigned>(1.0f) == 0x3f800000);
    EXPECT(cuda::std::move(u) == 3 && cuda::std::forward<int>(3) == 3);
    EXPECT(cuda::std::complex<float>(1, 2).imag() == 2 && cuda::std::bitset<8>(5).count() == 2);
    using either = cuda::std::variant<int, float>;
    EXPECT(either(2.0f).index() == 1 && cuda::std::chrono::nanoseconds(3).count() == 3);
    EXPECT(cuda::ceil_div(7, 2) == 4 && cuda::round_up(7, 4) == 8 && cuda::round_down(7, 4) == 4 &&
           cuda::ilog2(9) == 3);
    EXPECT(cuda::maximum<float>()(1, 2) == 2 && cuda::minimum<>()(1, 2) == 1 &&
           cuda::proclaim_return_type<int>([](int x) { return x; })(3) == 3);
    cuda::std::optional<int> o;
    EXPECT(!o);
    __shared__ cuda::atomic<int, cuda::thread_scope_block> at;
    if (t == 0)
        at.store(0);
    __syncthreads();
    at.fetch_add(1, cuda::memory_order_relaxed);
    __syncthreads();
    EXPECT(at.load() == THREADS);
    __shared__ int plain;
    if (t == 0)
        plain = 0;
    __syncthreads();
    cuda::atomic_ref<int, cuda::thread_scope_block> ref(plain);
    ref.fetch_add(2);
    __syncthreads();
    EXPECT(ref.load(cuda::std::memory_order_acquire) == 2 * THREADS);
    cuda::atomic<unsigned> own = 5;
    EXPECT(++own == 6 && own-- == 6 && (own += 3) == 8 && (own |= 1) == 9 && (own = 4) == 4 && own == 4);
    unsigned expected = 3;
    EXPECT(!own.compare_exchange_strong(expected, 7) && expected == 4 && own.exchange(2) == 4 && own.fetch_max(9) == 2);
}
