/* The command line as data. One table, options.def, drives parsing, validation, --help and what the record repeats. */
#pragma once

#include "base/status.h"
#include "input/element.h"

#define FA_UNSET (-1)
#define FA_UNSET_REAL (-1.0)
#define FA_DEFAULT_KERNEL NULL /* the registry row that is marked as default */

typedef enum { FA_DEVICE_AUTO, FA_DEVICE_CUDA, FA_DEVICE_EMU } fa_device_choice;
typedef enum { FA_COMPILER_NVRTC, FA_COMPILER_NVCC } fa_compiler;
#define FA_SCHEDULE_WORDS "ascending|descending|random|greedy"
typedef enum {
    FA_SCHEDULE_ASCENDING,
    FA_SCHEDULE_DESCENDING,
    FA_SCHEDULE_RANDOM,
    FA_SCHEDULE_GREEDY,
    FA_SCHEDULES,
} fa_schedule;
typedef enum { FA_SANITIZE_NONE, FA_SANITIZE_ADDRESS, FA_SANITIZE_UNDEFINED, FA_SANITIZE_THREAD } fa_sanitize;
typedef enum { FA_TIMING_AUTO, FA_TIMING_GRAPH, FA_TIMING_EVENT, FA_TIMING_NONE } fa_timing_method;
typedef enum { FA_L2_WARM, FA_L2_COLD } fa_l2;
typedef enum { FA_L2_PERSIST_NONE, FA_L2_PERSIST_KV } fa_l2_persist;

/* --dist: docs/correctness.md. */
#define FA_DIST_WORDS "normal|uniform|outlier|sharp|rising|falling|needle|constant-v|coded|low|cliff|mean"
typedef enum {
    FA_DIST_NORMAL,     /* N(0,1) */
    FA_DIST_UNIFORM,    /* U(-1,1) */
    FA_DIST_OUTLIER,    /* N(0,1), one element in 1000 times 10 */
    FA_DIST_SHARP,      /* N(0,1), Q times 4 */
    FA_DIST_RISING,     /* logits rise with the key: a rescale at every tile */
    FA_DIST_FALLING,    /* logits fall with the key: no rescale after the first tile */
    FA_DIST_NEEDLE,     /* one key dominates, V codes the key index */
    FA_DIST_CONSTANT_V, /* O must equal V */
    FA_DIST_CODED,      /* V carries batch and head */
    FA_DIST_LOW,        /* N(0,1), but the logits of every row lie near -128 */
    FA_DIST_CLIFF,      /* logits of +-20000, far apart; one key has all of the weight, V codes its index */
    FA_DIST_MEAN,       /* V has a mean of 1: sums that lose low bits drift */
} fa_dist;

/* --strides: how tensors lie in memory (input/layout.h). */
#define FA_STRIDES_WORDS "packed|padded|bshd|far|odd"
typedef enum {
    FA_STRIDES_PACKED, /* [batch, heads, seq, dim] without gaps */
    FA_STRIDES_PADDED, /* the same order with gaps after rows, heads and batches, other ones for each tensor */
    FA_STRIDES_BSHD,   /* [batch, seq, heads, dim] without gaps */
    FA_STRIDES_FAR,    /* packed, but batches (of one batch: heads, of one head: rows) lie 2^31 elements apart in all */
    FA_STRIDES_ODD,    /* one stride is no multiple of 8 elements: which, and of which tensors, the seed says */
} fa_strides;

#define FA_OP_WORDS "forward|backward"
enum { FA_OP_FORWARD, FA_OP_BACKWARD };

#define FA_PAGE_WORDS "nhd|hnd"
enum { FA_PAGE_NHD, FA_PAGE_HND };

#define FA_MASK_WORDS "none|tree"
enum { FA_MASK_NONE, FA_MASK_TREE };

/* --check: which results an output is compared with; a set. */
#define FA_REFERENCE_WORDS "cpu|cublas|plain"
enum { FA_REFERENCE_CPU = 1 << 0, FA_REFERENCE_CUBLAS = 1 << 1, FA_REFERENCE_PLAIN = 1 << 2 };

/* Tile knobs. FA_UNSET before the registry row has filled in its defaults. acc: 0 fp32, 1 fp16. */
typedef struct fa_knobs {
    int32_t m, n, warps, vec, stages, swizzle, acc, splits, maxreg;
} fa_knobs;

/* --vs NAME or NAME:knob=value,... : a kernel of the registry, the knobs that are set, lse=0 or lse=1, dtype=fp16
 * or dtype=bf16. --vs source:FILE.cu or source:FILE.cu:knob=value,... : a file like that of --source. --vs
 * library:FILE.so: of --library. */
typedef struct fa_vs {
    char name[64];       /* empty: no --vs; "source", "library": a file */
    const char *library; /* the file after "library:", or NULL */
    char source[1024];
    fa_knobs knobs;
    int32_t lse;   /* 0 or 1; FA_UNSET: as the options say */
    int32_t dtype; /* FA_UNSET: as the options say */
} fa_vs;

/* The values of an option that may be given again, in order. */
#define FA_LIST_MAX 24
typedef struct fa_list {
    const char *at[FA_LIST_MAX];
    int32_t count;
} fa_list;

typedef struct fa_options {
    const char *kernel, *source, *library;
    fa_list include, define;
    fa_knobs knob;
    int32_t batch, heads, kv_heads, seq, seq_kv, dim, dim_v;
    const char *lengths; /* among the sizes: see `sized` */
    int32_t op, misalign, strides, dtype, kv_dtype, chunk, mask, page_size, page_layout;
    const char *window;
    double scale, softcap;
    int32_t device, gpu, compiler, schedule, sanitize;
    const char *arch, *load, *dump, *json, *cubin, *runs, *preset, *definition, *workload;
    int32_t check; /* FA_REFERENCE_* */
    fa_vs vs;
    double atol, rtol, warmup_ms, rest_ms, max_time, beat, timeout;
    int32_t jobs, seeds, seed, dist, timing, l2, l2_persist, min_samples;
    bool list_kernels, race, causal, lse, sinks, v_in_k, alibi, bias, deterministic, compile_only, select, bound,
        no_bound, quiet, verbose, stream, version, help, doctor, no_ptxas;
    bool several;   /* an option has several values: the field has its default, see input/grid.h */
    bool sized;     /* an option of the problem's size was given */
    bool batch_set; /* --batch was */
    bool seeds_set; /* --seeds was */
    bool valued;    /* the workload brings values of Q, K or V */
    bool small;     /* none was, and a sanitizer runs: see fa_runs_make */
    int32_t line;   /* of the file of --runs; 0: the command line is the run */
} fa_options;

/* The rows of options.def, for parsing. */
typedef enum {
    KIND_GROUP,
    KIND_INT,
    KIND_REAL,
    KIND_WORD,
    KIND_SET,
    KIND_TEXT,
    KIND_LIST,
    KIND_VS,
    KIND_FLAG
} option_kind;

typedef struct option_row {
    option_kind kind;
    const char *name, *help;
    size_t offset;
    double min, max, fallback; /* KIND_INT, KIND_REAL, KIND_WORD, KIND_SET */
    const char *text;          /* KIND_WORD: the words; KIND_GROUP: the title; else the metavariable */
    const char *words;         /* KIND_SET */
    const char *text_fallback; /* KIND_TEXT */
} option_row;
const option_row *fa_option_rows(size_t *count);
/* NULL: there is no option of that name. */
const option_row *fa_option_find(const char *name, size_t length);

/* One option as people read it. */
typedef struct fa_option_facts {
    const char *group, *name, *help;
    char value[128];    /* range, words or metavariable; empty: a flag */
    char fallback[128]; /* " (default)", or empty */
    double min, max;    /* of a number; else 0, 0 */
} fa_option_facts;
/* Every option in the order of --help. */
void fa_options_each(void (*see)(void *to, const fa_option_facts *facts), void *to);

/* Word number `index` of a '|'-separated list, into `out`. */
const char *fa_word(const char *words, int index, char out[32]);
