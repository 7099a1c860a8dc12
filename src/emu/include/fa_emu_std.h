/* cuda::std by the names of the host's C++ library. */
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cuda
{
namespace std
{
using namespace ::std;
}
} // namespace cuda
