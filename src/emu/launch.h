/* Runs a grid of CUDA threads on the CPU, one fibre for each. */
#pragma once

#include "device/findings.h"
#include "emu/core/image.h"
#include "fa_params.h"

/* Runs the grid to its end. Else `error` says why: FA_WRONG where the kernel is to blame, and the findings are added to
 * `found`; FA_NOT_RUN for what is not modelled; FA_INFEASIBLE: no GPU launches such a grid; FA_TIMEOUT. */
fa_status fa_emu_run(const fa_emu_image *image, const fa_emu_grid *grid, const fa_params *params, fa_findings *found,
                     char *error, size_t error_size);
/* Time is over: the launch under way ends with a report of where its threads are, if they wait or run the kernel's own
 * code. False: there is none. Safe in a signal's handler. */
bool fa_emu_expire(void);
