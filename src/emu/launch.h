/* Runs a grid of CUDA threads on the CPU, one fibre for each. */
#ifndef FA_EMU_LAUNCH_H
#define FA_EMU_LAUNCH_H

#include "emu/core/grid.h"
#include "emu/core/image.h"
#include "fa_params.h"

/* Runs the grid to its end. FA_ERROR: `error` has the report of the first failure; FA_WRONG: of a data race. */
fa_status fa_emu_run(const fa_emu_image *image, const fa_emu_grid *grid, const fa_params *params, char *error,
                     size_t error_size);
/* Time is over: the launch under way ends with a report of where its threads are, if they wait or run the kernel's own
 * code. False: there is none. Safe in a signal's handler. */
bool fa_emu_expire(void);

#endif
