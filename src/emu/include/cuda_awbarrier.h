/* awbarrier: what cuda::barrier was before. */
#pragma once

#include "cuda_awbarrier_primitives.h"

namespace nvcuda
{
namespace experimental
{
typedef cuda::barrier<cuda::thread_scope_block> awbarrier;
}
} // namespace nvcuda
