/* Operations of a warp, computed for a group of lanes when the last lane has arrived. */
#pragma once

#include "emu/core/state.h"

/* Computes the operation that the lanes in `group` wait in. False: it is invalid, and that is reported. */
bool fa_emu_compute(fa_emu_worker *worker, uint32_t warp, uint32_t group);
