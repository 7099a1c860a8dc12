/* A function that is compiled twice: for CPUs with AVX2, FMA and F16C, too. "arch=haswell" would mean that one CPU. */
#pragma once

#if defined(__x86_64__)
#define FA_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define FA_CLONES
#endif
