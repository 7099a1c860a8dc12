/* The numbers of cuda_abi.def as NVIDIA's header has them. The values of cuda/api_values.def and the signatures of
 * cuda/api.def are checked by compiling. */
#include "cuda_abi.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

#define FA_CU(name, symbol, arguments) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(name), CUresult arguments), #name);
#define FA_CU_OPTIONAL FA_CU
#include "cuda/api.def"
#define FA_CU_ENUM(type)
#define FA_CU_VALUE(name, value) _Static_assert((name) == (value), #name);
#define FA_CU_END(type)
#include "cuda/api_values.def"

const abi_value cuda_abi_theirs[] = {
#define FA_VALUE(what) {#what, (long long)(what)},
#include "cuda_abi.def"
};
const size_t cuda_abi_theirs_count = sizeof cuda_abi_theirs / sizeof *cuda_abi_theirs;
#else
const abi_value cuda_abi_theirs[] = {{"", 0}};
const size_t cuda_abi_theirs_count = 0;
#endif
