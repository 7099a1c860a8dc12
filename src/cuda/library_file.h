/* A shared object of --library (include/fa_library.h) as a library candidate. */
#ifndef FA_LIBRARY_FILE_H
#define FA_LIBRARY_FILE_H

#include "cuda/library.h"

/* The file's path is spec->source. It is loaded once and stays loaded, as its CUDA runtime may have work to do until
 * the process ends. */
extern const fa_library fa_file_library;

#endif
