/* A compiled kernel: its object file, the constants it exports, and the compiler's report. */
#pragma once

#include "base/file.h"
#include "fa_launch.h"

#define FA_WARNINGS_MAX 8

/* What ptxas reported (-v). Spills and stack are bytes per thread, shared memory is bytes per block. */
typedef struct fa_ptxas {
    bool known;
    char unknown_reason[256]; /* reason, when !known */
    char arch[16];
    int32_t registers, smem_static_bytes, smem_dynamic_bytes, smem_total_bytes;
    int32_t spill_store_bytes, spill_load_bytes, stack_bytes, barriers;
    int32_t warning_count;
    char warnings[FA_WARNINGS_MAX][240]; /* ptxas's warnings, and its remarks on performance */
} fa_ptxas;

typedef struct fa_occupancy {
    int32_t blocks_per_sm, warps_per_sm;
    double fraction; /* of the warps an SM can hold */
} fa_occupancy;

typedef struct fa_module {
    fa_kernel_info info;        /* read back from the object */
    fa_plan plan;               /* likewise, of a file with lines that launch; count 0: one launch of fa_kernel */
    bool has_before, has_after; /* kernels fa_before, fa_after */
    fa_ptxas ptxas;
    fa_occupancy occupancy;
    char path[1024];   /* in the cache: the cubin, the PTX, or the emulator's shared object */
    char ptx_arch[16]; /* "compute_89" when path is PTX, which the driver compiles; else empty */
    fa_digest object_sha256, source_sha256;
    fa_digest code_sha256;  /* of the machine code alone: equal for two configurations when a knob does nothing */
    char same_code_as[160]; /* another configuration that compiled to the same code; empty when none is known */
    char compiler[64];      /* "nvrtc 13.0" */
    char headers[64];       /* "cutlass 4.2.0"; empty: the kernel needs none but our own */
    char options[16384];    /* one a line */
    bool cache_hit;
    double seconds; /* compiling, or reading the cache */
} fa_module;
