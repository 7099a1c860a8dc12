/* Paths as ptxas and nvcc take them: without quotes, backslashes and control characters. */
#ifndef FA_COMPILE_PATHS_H
#define FA_COMPILE_PATHS_H

char *fa_path_to_show(const char *path); /* to be put between quotes: '_' for each such character; malloc'd */

/* A path to the same file or folder; by /proc where its own has such a character, good while this process runs. The
 * text is kept as long. A "-I" before it stays. */
const char *fa_path_to_open(const char *path);

#endif
