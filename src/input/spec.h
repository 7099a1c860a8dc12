/* A spec is everything that decides the compiled code: source, knobs, dim, mask, architecture. */
#pragma once

#include "input/registry.h"

typedef struct fa_spec {
    char name[64];              /* registry name as asked for, or the stem of --source, --library */
    char source[1024];          /* path of the .cu, or of the .so of --library; empty for a library baseline */
    const fa_kernel_row *asked; /* the registry row that was asked for; NULL for --source and --library */
    const fa_kernel_row *row;   /* the row that serves it: `asked`, or without tile options a variant, by a rule */
    int32_t rank;               /* of `asked` among the defaults; 0: --kernel names it */
    int32_t rule;               /* that gave row and knobs: its number among those of `asked`, from 1; 0: none did */
    int32_t sm_count;           /* the multiprocessors that the rules counted with */
    fa_kind kind;
    fa_knobs stated; /* of --source: the first value of each knob in its FA_SPACE, the others FA_UNSET */
    int32_t needs;   /* of --source: FA_NEEDS_*, by a line of the file */
    fa_knobs set;    /* the knobs that the user set, the others FA_UNSET */
    fa_knobs knobs;  /* all set: the user's, else those of the matching rule, else the row's */
    bool launches;   /* of --source: its lines say how its kernels are launched; it is compiled for one shape: */
    int32_t batch, heads, kv_heads, seq_q, seq_kv;
    int32_t dim, dim_v;
    int32_t features; /* FA_FEATURE_*: what the problem asks for */
    bool v_in_k;
    bool causal;
    bool lse;       /* the kernel is asked for the log-sum-exp */
    fa_dtype dtype; /* of Q; of K and V see `features` */
    bool arch_set;  /* by --arch */
    char arch[16];  /* "sm_89", "sm_90a", ... */
    fa_compiler compiler;
    fa_list include, define; /* of the command line */
} fa_spec;

/* The target without a GPU: --arch, else sm_89, or what the emulator takes for a kernel that needs more. */
const char *fa_spec_arch(const fa_options *options);
/* What the options ask for on a machine without a GPU. FA_USAGE names the option. */
fa_status fa_spec_make(const fa_options *options, const fa_problem *problem, fa_spec *spec, fa_reason *why);
/* The other candidate, of --vs: its own kernel and knobs, otherwise the same. */
fa_status fa_spec_make_vs(const fa_options *options, const fa_problem *problem, fa_spec *spec, fa_reason *why);
/* The target becomes this device ("sm_90"; with the "a" feature set where that exists) unless --arch was given, and
 * the rules select the tile for this number of multiprocessors. */
fa_status fa_spec_for_device(const fa_problem *problem, const char *device_arch, int32_t sm_count, fa_spec *spec,
                             fa_reason *why);
/* Without --kernel, of features and without tile options: the next kernel that has a rule for the problem, for when the
 * one before does not serve it. False: there is none. */
bool fa_spec_next(const fa_problem *problem, fa_spec *spec);

/* -DFA_M=32 -DFA_N=64 ... : the knobs as the compiler sees them, the same for NVRTC, nvcc and g++. Returns the count.
 */
#define FA_SPEC_DEFINES_MAX 28
typedef struct fa_define {
    char text[40];
} fa_define;
size_t fa_spec_defines(const fa_spec *spec, fa_define defines[FA_SPEC_DEFINES_MAX]);

/* Limits of an architecture, CUDA C++ Programming Guide, table of technical specifications per compute capability. */
typedef struct fa_arch_limits {
    int32_t cc;               /* 89 for sm_89 */
    int32_t smem_block_bytes; /* opt-in maximum per block */
    int32_t smem_sm_bytes;    /* per multiprocessor */
    int32_t registers_sm, warps_sm, blocks_sm, threads_block;
    int32_t sm_count; /* of the best-known part; selects default tiles when there is no device */
} fa_arch_limits;
int32_t fa_arch_cc(const char *arch); /* 90 of "sm_90", "sm_90a" */
/* The architectures that have a row, for messages. */
const char *fa_arch_words(void);
fa_status fa_arch_limits_of(const char *arch, fa_arch_limits *limits, fa_reason *why);
