/* awbarrier: what cuda::barrier was before. */
#ifndef FA_EMU_AWBARRIER_H
#define FA_EMU_AWBARRIER_H

#include "cuda_awbarrier_primitives.h"

namespace nvcuda
{
namespace experimental
{
typedef cuda::barrier<cuda::thread_scope_block> awbarrier;
}
} // namespace nvcuda

#endif
