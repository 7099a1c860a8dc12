/* Runs a grid of CUDA threads on the CPU, one fibre for each. */
#ifndef FA_EMU_LAUNCH_H
#define FA_EMU_LAUNCH_H

#include "emu/core/grid.h"
#include "emu/core/image.h"
#include "fa_params.h"

/* Runs the grid to its end. FA_ERROR: `error` has the report of the first failure; FA_WRONG: of a data race. */
fa_status fa_emu_run(const fa_emu_image *image, const fa_emu_grid *grid, const fa_params *params, char *error,
                     size_t error_size);

#endif
