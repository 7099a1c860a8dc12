/* The kernels as data: rows of kernels/kernels.def. */
#pragma once

#include "input/problem.h"

typedef enum { FA_KIND_HAND, FA_KIND_LIBRARY } fa_kind;

/* Comma-separated values that a sweep tries per knob; NULL: the default only. */
typedef struct fa_space {
    const char *m, *n, *warps, *vec, *stages, *swizzle, *acc, *splits, *maxreg;
} fa_space;

typedef struct fa_traits {
    int32_t min_arch;       /* 70, 80, 90: compute capability times 10 */
    bool arch_specific;     /* needs the "a" feature set of min_arch (sm_90a) */
    int32_t is_default;     /* rank among the kernels of a run without --kernel, from 1; 0: none of them */
    bool wmma, mma, wgmma;  /* tensor-core instructions the SASS must show */
    bool emu_not_run;       /* not emulated; `emu` answers not_run */
    bool nondeterministic;  /* repeats may differ in the last bits */
    bool backward;          /* computes gradients, for --op backward; the others do not */
    bool fp8;               /* takes --dtype e4m3 alone */
    bool pack_heads;        /* tiles hold the query heads of a K/V head: fa_kernel_info.pack_heads */
    bool is_reference;      /* the library whose result is the second reference of a check */
    const char *headers;    /* the library of headers that it needs ("cutlass"), of scripts/setup.sh; NULL: none */
    const char *variant_of; /* the kernel whose rules select this one, and which lists it */
} fa_traits;

typedef struct fa_kernel_row {
    const char *name, *idea;
    fa_kind kind;
    fa_knobs knobs; /* defaults, all set */
    fa_space space;
    fa_traits traits;
} fa_kernel_row;

/* The tile of a run without tile options, by problem: FA_RULE rows of kernels.def; the first that matches decides. With
 * tile options rules of other rows do not match, and the options replace knobs of the tile that is left. If
 * it has a key_cost, it competes with the matching rules right after it that have one: the least key_cost times
 * fa_busiest_keys (input/schedule.h) wins. `name` is the kernel asked for. fill: tiles of 64 query rows, over all heads
 * and batches, per multiprocessor, in percent. */
typedef struct fa_rule {
    const char *name;         /* NULL ends the list */
    int32_t max_dim;          /* matches dim <= max_dim */
    int32_t causal;           /* 0, 1, or -1 for both */
    int32_t max_fill_percent; /* matches fill <= this, or -1 for any */
    int32_t max_rows;         /* matches seq_q * heads / kv_heads <= this; 0 for any */
    int32_t max_seq;          /* matches seq_q <= this; 0 for any */
    int32_t min_group;        /* matches heads / kv_heads >= this */
    int32_t min_keys;         /* matches seq_kv >= this */
    int32_t min_arch;         /* matches targets from this one on (70, 80, 90); 0 for any */
    int32_t max_arch;         /* matches targets up to this one; 0 for any */
    int32_t max_dim_v;        /* matches dim_v <= this; 0: max_dim */
    int32_t max_seen;         /* matches where a row has this many keys at most, or a window or chunk does; 0 for any */
    int32_t features;         /* FA_FEATURE_*: matches problems that ask for none but these */
    int32_t asks;             /* FA_FEATURE_*: matches problems that ask for all of these; 0 for any */
    int32_t key_cost;         /* 0: decides. Otherwise what a key costs this tile, beside other such rules */
    fa_knobs knobs;
    const char *variant; /* the row that serves the problem: `name` or a variant of it. One that computes gradients
                            matches --op backward, any other one does not; one for FP8 matches
                            --dtype e4m3, which then matches none of the kernel's others */
} fa_rule;
const fa_rule *fa_registry_rules(void);
const fa_kernel_row *fa_registry_serves(const fa_rule *rule); /* the row that it selects */
/* For FP8, or without it: it is served by the kernel's variant for it, where there is one; that takes nothing else. */
bool fa_registry_takes(const fa_rule *rule, bool fp8);

size_t fa_registry_count(void);
const fa_kernel_row *fa_registry_at(size_t index);
/* Of a run without --kernel, by rank, from 1 on: the kernel whose rules choose. NULL: no such rank. */
const fa_kernel_row *fa_registry_default(bool backward, int32_t rank);
/* FA_USAGE when there is none of this name; the reason offers similar ones. */
fa_status fa_registry_find(const char *name, const fa_kernel_row **row, fa_reason *why);
