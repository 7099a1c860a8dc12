/* The code that launches a user's kernels as the lines FA_LAUNCH and FA_BUFFER of its file say (input/launch_lines.h):
 * an entry point for each launch and each copy of a tensor, and the plan of them (include/fa_launch.h). */
#pragma once

#include "compile/host_code.h"
#include "input/launch_lines.h"

/* Macros: from the first text on kernels are device functions; behind the second __global__ means what it meant. */
const char *fa_launch_source_wrap(bool emulator, bool begins);
/* What follows the text of the file, which begins with #include "fa_launch.h". `shown`: the file, as a literal can hold
 * it. In `files` the kernels are looked for: their __launch_bounds__ and __cluster_dims__ are the entry points'. */
void fa_launch_source_put(FILE *out, const fa_launch_lines *lines, const char *shown, const fa_cuda_file *files,
                          size_t count);
