/* The knobs of a user's file and the values that a sweep tries, stated in the file:
 *     // FA_SPACE: m=16,32 n=32,64 warps=4,8
 * or, as a macro that expands to nothing, FA_SPACE(m=16,32 n=32,64). Several add up.
 * What it cannot do without: // FA_NEEDS: packed mha self (fa_params.h has the words). */
#pragma once

#include "input/registry.h"

typedef struct fa_source_space {
    fa_knobs first;    /* the first value of each knob: its default; FA_UNSET where none is stated */
    fa_space values;   /* points into `text` */
    char text[9][128]; /* a knob's values, in the order of fa_space */
    int32_t needs;     /* FA_NEEDS_*, of a line such as FA_NEEDS: packed mha */
    bool launches;     /* the file says how its kernels are launched (launch_lines.h) */
} fa_source_space;

/* FA_USAGE: an unknown knob, a value out of its range or a launch that cannot be read, with the file and its line. */
fa_status fa_source_space_read(const char *path, fa_source_space *space, fa_reason *why);
