/* The version of fa_bench: the one place. The Makefile, the man page and the tarball read it here. */
#pragma once

#define FA_VERSION "0.1.0"
