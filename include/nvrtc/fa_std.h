/* The parts of the C++ library that device code uses, for NVRTC, which has no headers of its own: names of std:: from
 * the toolkit's cuda::std. */
#ifndef FA_NVRTC_STD_H
#define FA_NVRTC_STD_H

#if __has_include(<cuda/std/algorithm>)
#include <cuda/std/algorithm>
#elif __has_include(<cuda/std/__algorithm/max.h>)
#include <cuda/std/__algorithm/max.h>
#include <cuda/std/__algorithm/min.h>
#endif
#include <cuda/std/cassert>
#include <cuda/std/cfloat>
#include <cuda/std/climits>
#include <cuda/std/cmath>
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#include <cuda/std/functional>
#include <cuda/std/limits>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>

/* Macros of the toolkit's <cmath>: CUTLASS has enumerators of these names. */
#undef FP_NAN
#undef FP_INFINITE
#undef FP_ZERO
#undef FP_SUBNORMAL
#undef FP_NORMAL

/* Constants of <float.h> and <math.h> that NVRTC does not know. */
#ifndef FLT_MAX
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_EPSILON __DBL_EPSILON__
#endif
#ifndef M_PI
#define M_PI 3.14159265358979323846
#define M_SQRT2 1.41421356237309504880
#define M_LOG2E 1.44269504088896340736
#define M_LN2 0.69314718055994530942
#define M_E 2.71828182845904523536
#endif

namespace std
{
using namespace cuda::std;
}

/* The names that a file may use after "using namespace std", without those that NVRTC has built in. */
namespace fa_std_names
{
using cuda::std::conditional_t;
using cuda::std::decay_t;
using cuda::std::declval;
using cuda::std::enable_if_t;
using cuda::std::false_type;
using cuda::std::forward;
using cuda::std::get;
using cuda::std::index_sequence;
using cuda::std::integral_constant;
using cuda::std::is_floating_point;
using cuda::std::is_integral;
using cuda::std::is_same;
using cuda::std::is_same_v;
using cuda::std::make_index_sequence;
using cuda::std::make_pair;
using cuda::std::make_tuple;
using cuda::std::max;
using cuda::std::min;
using cuda::std::move;
using cuda::std::numeric_limits;
using cuda::std::pair;
using cuda::std::remove_cv_t;
using cuda::std::remove_reference_t;
using cuda::std::swap;
using cuda::std::true_type;
using cuda::std::tuple;
} // namespace fa_std_names

#endif
