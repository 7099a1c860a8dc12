/* What kernels share: the shared-memory declaration, the unit of work of a block, and PTX behind named functions.
 * On the emulator (FA_EMU) the same names come from src/emu/include/fa_emu.h. */
#ifndef FA_PRIMS_CUH
#define FA_PRIMS_CUH

#include "../include/fa_params.h"

#include <cuda_fp16.h>

/* Dynamic shared memory of the block as `type *name`, 16-byte aligned (kernels align further themselves). */
#ifndef FA_EMU
#define FA_SHARED(type, name)                              \
    extern __shared__ __align__(16) unsigned char fa_smem[]; \
    type *name = reinterpret_cast<type *>(fa_smem)
#endif

#endif
