/* A library of templates is built for the head dimensions DIMS (-DDIMS=64,128): which they are, and the call of the one
 * that a problem needs. */
#ifndef FA_EXAMPLE_DIMS_CUH
#define FA_EXAMPLE_DIMS_CUH

#include <cutlass/numeric_types.h>

#include <utility>

#include "fa_params.h"

#ifndef DIMS
#define DIMS 64, 128
#endif

static bool is_built_for(int dim)
{
    bool built = false;
    for (int one : {DIMS})
        built = built || one == dim;
    return built;
}

/* forward.operator()<DIM>() for the problem's dim. NULL, or what went wrong. */
template <class Forward>
static const char *by_dim(const fa_params &p, const Forward &forward)
{
    const char *failed = "not built for this head dimension";
    const auto try_dim = [&]<int DIM>() {
        if (p.dim == DIM)
            failed = forward.template operator()<DIM>();
    };
    [&]<int... dims>(std::integer_sequence<int, dims...>) { (try_dim.template operator()<dims>(), ...); }
    (std::integer_sequence<int, DIMS>{});
    return failed;
}

/* forward.operator()<Element, DIM>() for the problem's element type and dim. */
template <class Forward>
static const char *by_type_and_dim(const fa_params &p, const Forward &forward)
{
    return by_dim(p, [&]<int DIM>() {
        return p.dtype == FA_DTYPE_BF16 ? forward.template operator()<cutlass::bfloat16_t, DIM>()
                                        : forward.template operator()<cutlass::half_t, DIM>();
    });
}

#endif
