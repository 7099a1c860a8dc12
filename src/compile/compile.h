/* From a spec to a module on disk and what the compiler said of it. NVRTC in process, or nvcc; no GPU, no driver. */
#ifndef FA_COMPILE_H
#define FA_COMPILE_H

#include "base/digest.h"
#include "fa_params.h"
#include "input/spec.h"

#define FA_WARNINGS_MAX 8

/* What ptxas said (-v). Bytes are per thread for spills and stack, per block for shared memory. */
typedef struct fa_ptxas {
    bool known;
    char unknown_reason[256]; /* why not, when !known */
    char arch[16];
    int32_t registers, smem_static_bytes, smem_dynamic_bytes, smem_total_bytes;
    int32_t spill_store_bytes, spill_load_bytes, stack_bytes, barriers;
    int32_t warning_count;
    char warnings[FA_WARNINGS_MAX][240]; /* the ones that cost speed, and all others ptxas gave */
} fa_ptxas;

typedef struct fa_occupancy {
    int32_t blocks_per_sm, warps_per_sm;
    double fraction; /* of the warps an SM can hold */
} fa_occupancy;

typedef struct fa_module {
    fa_kernel_info info; /* read back from the object */
    fa_ptxas ptxas;
    fa_occupancy occupancy;
    char path[1024];   /* the cubin, the PTX, or the emulator's shared object, in the cache */
    char ptx_arch[16]; /* "compute_89" when path is PTX, which the driver compiles; else empty */
    fa_digest object_sha256, source_sha256;
    fa_digest code_sha256;  /* of the machine code alone: equal for two configurations when a knob does nothing */
    char same_code_as[160]; /* another configuration that compiled to this very code, empty when none is known */
    char compiler[64];      /* "nvrtc 13.0" */
    char options[1024];
    bool cache_hit;
    double seconds; /* compiling, or reading the cache */
} fa_module;

/* FA_INFEASIBLE: a static_assert of the kernel (its sentence), or shared memory, registers or threads over the arch's limit (bytes).
 * FA_COMPILE_ERROR: the compiler's lines. FA_NOT_RUN: no compiler. */
fa_status fa_compile_cuda(const fa_spec *spec, fa_module *module, fa_reason *why);
/* The same file through g++ and the shim of src/emu/, for the emulator. */
fa_status fa_compile_emu(const fa_spec *spec, fa_sanitize sanitize, fa_module *module, fa_reason *why);

/* Whether a device needs the PTX of a target: a cubin runs on its own generation only (CUDA C++ Programming Guide, "Binary
 * Compatibility"), PTX on all later ones, but for targets with an "a". */
bool fa_needs_ptx(const char *arch, const char *device_arch);
/* Puts the PTX of the spec's architecture in the module's path; the figures stay those of the cubin compiled before. */
fa_status fa_compile_ptx(const fa_spec *spec, fa_module *module, fa_reason *why);

/* A .cu that is no attention kernel (the bench's own device code): path of its cubin in the cache. */
fa_status fa_compile_file(const char *source, const char *arch, char cubin_path[1024], fa_reason *why);

/* What an architecture holds at once of a kernel with these needs. */
fa_occupancy fa_occupancy_of(const fa_arch_limits *limits, int32_t threads, int32_t registers, int32_t smem_bytes);

/* Grid, block and workspace of a launch: pure arithmetic on what the module says of itself. */
typedef struct fa_launch {
    uint32_t grid, threads, smem_dynamic_bytes, cluster;
    int32_t tiles_m, tiles;
    int64_t workspace_bytes;
} fa_launch;
/* grid is 0 when the problem needs more blocks than a launch can have (2^31 - 1). */
fa_launch fa_launch_of(const fa_kernel_info *info, const fa_problem *problem, int32_t sm_count);

#endif
