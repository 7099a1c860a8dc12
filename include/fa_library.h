/* The contract between fa_bench and a library that it benchmarks: fa_bench --library FILE.so
 *
 * The shared object exports two functions, fa_library_info and fa_forward. Host code behind them may launch whatever it
 * likes, through the CUDA runtime or the driver API. Plain C, fixed sizes. Examples: examples/library/.
 *
 * Names that begin with fa_ belong to fa_bench: make every other function static, or compile with -fvisibility=hidden.
 */
#ifndef FA_LIBRARY_H_PUBLIC
#define FA_LIBRARY_H_PUBLIC

#include "fa_params.h"

#define FA_LIBRARY_ABI FA_ABI

/* What fa_bench is about to ask of the library. */
typedef struct fa_library_question {
    fa_i32 abi;               /* FA_LIBRARY_ABI of this fa_bench */
    fa_i32 arch;              /* of the GPU: 90 for sm_90; without a GPU that of --arch */
    fa_i32 alignment_bytes;   /* every tensor starts on a multiple of this: 256, or 2, 4, 8 with --misalign */
    fa_i32 lse;               /* 1: the log-sum-exp is asked for (--lse): fa_params.lse of a launch is not NULL */
    const fa_params *problem; /* shapes, strides, element type, mask, scale, sm_count (0: no GPU); pointers are NULL */
    fa_i32 features;          /* FA_FEATURE_*: what the problem asks for beyond dense forward */
    fa_i32 reserved;
    /* With FA_FEATURE_VARLEN, on the host: rows that count of each sequence, [problem->batch]. Else NULL. */
    const fa_i32 *lengths_q, *lengths_kv;
} fa_library_question;

/* What the library answers. Comes zeroed. Texts are ASCII and end with 0. */
typedef struct fa_library_answer {
    fa_i32 abi;              /* FA_LIBRARY_ABI that the library was compiled with */
    fa_i32 nondeterministic; /* 1: repeats may differ in the last bits */
    fa_i32 writes_lse;       /* 1: it writes fa_params.lse where that is not NULL; 0: it cannot be asked for */
    fa_i32 serves_bf16;      /* 1: it also takes BF16 (problem->dtype); 0: FP16 alone */
    fa_i64 workspace_bytes;  /* fa_bench allocates them, zeroes them once, and passes them in fa_params */
    char name[64];           /* "FlashAttention 3"; empty: the name of the file */
    char version[64];        /* "2.8.3"; empty: not known */
    char refusal[512];       /* why the problem cannot be served; empty: it can */
    /* ABI 3 */
    fa_i32 serves; /* FA_FEATURE_* */
    fa_i32 needs;  /* FA_NEEDS_* */
} fa_library_answer;

#ifdef __cplusplus
extern "C" {
#endif

/* Says what the library is and whether it serves the problem. Also called on machines without a GPU, and before there
 * is a CUDA context: it must not touch one. */
__attribute__((visibility("default"))) void fa_library_info(const fa_library_question *question,
                                                            fa_library_answer *answer);

/* Puts one attention-forward on `stream` (a cudaStream_t, which is a CUstream) and returns without waiting. NULL: done;
 * otherwise why not, in words that stay valid.
 * The calling thread has the GPU's primary context current, the one that the CUDA runtime uses too; no cudaSetDevice is
 * needed. The first call may allocate and initialise; later calls may be captured into a CUDA graph, so they must not
 * allocate, wait, or use another stream unless it is joined to this one by events. Nothing may be kept between calls
 * that depends on the tensors: their contents and addresses change. */
__attribute__((visibility("default"))) const char *fa_forward(const fa_params *params, void *stream);

#ifdef __cplusplus
}
#endif

#endif
