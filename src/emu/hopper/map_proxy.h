/* Tensor maps that the kernel changes: PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy", and the fences
 * fence.proxy.tensormap::generic. */
#pragma once

#include "emu/ptx/state.h"

void fa_emu_ptx_tensormap(const fa_emu_ptx_run *run);
void fa_emu_ptx_map_fence(const fa_emu_ptx_run *run);
