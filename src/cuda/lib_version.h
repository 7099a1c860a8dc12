/* Which vendor library a baseline would use on this machine. */
#ifndef FA_LIB_VERSION_H
#define FA_LIB_VERSION_H

#include "input/registry.h"

/* "cuBLAS 13.1.0", "cuDNN 9.19.0". FA_NOT_RUN when there is none. */
fa_status fa_library_version(fa_kind kind, char text[64], fa_reason *why);

#endif
