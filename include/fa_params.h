/* The contract between the host and a kernel: what a launch passes in (fa_params) and what a compiled
 * module says of itself (fa_kernel_info). Read by gcc, NVRTC, nvcc and the emulator's g++: plain C, fixed sizes.
 *
 * A kernel file provides two symbols:
 *     FA_KERNEL_INFO(.threads = ..., .smem_dynamic_bytes = ...);
 *     extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p);
 * and two more if it likes, fa_before and fa_after: kernels of the same parameters and threads, without dynamic shared
 * memory, that are launched before and after each fa_kernel, and timed with it.
 */
#ifndef FA_PARAMS_H
#define FA_PARAMS_H

/* 2: fa_params.lse and dtype, fa_kernel_info.writes_lse and serves_bf16.
 * 3: features beyond dense forward (all that follows fa_params.dtype) and fa_kernel_info.serves, needs.
 * Sources for ABI 1 and 2 compile as they are, and libraries that were built for ABI 2 run as they are. */
#define FA_ABI 3

typedef int fa_i32;
typedef float fa_f32;
typedef long long fa_i64;

/* How many blocks a launch has. A unit of work is one tile: `m` query rows of one (batch, head), times `splits`.
 * With pack_heads the rows are those of all query heads of one (batch, kv_head). With lengths (start_q) a head has
 * tiles_m = floor((total_q + batch * (m - 1)) / m) tiles, enough for those of all its sequences, and a launch
 * tiles_m * heads * splits blocks (with FA_GRID_KEYS the same of total_kv and n): look up a tile's sequence. With a
 * cluster that does not divide `splits` the tiles of a head fill whole clusters: those past tiles_m are empty. */
enum {
    FA_GRID_TILES = 0,      /* blocks = ceil(seq_q / m) * heads * batch * splits, in grid.x */
    FA_GRID_PERSISTENT = 1, /* blocks = min(that, sm_count * blocks_per_sm) */
    FA_GRID_KEYS = 2,       /* backward: blocks = ceil(seq_kv / n) * heads (pack_heads: kv_heads) * batch * splits */
};

/* Element types of the tensors (--dtype). */
enum { FA_DTYPE_FP16 = 0, FA_DTYPE_BF16 = 1, FA_DTYPE_E4M3 = 2 };

/* Features beyond dense forward. A problem asks for some of them (the macro FA_FEATURES holds them while a kernel is
 * compiled), and a kernel says which it can serve (fa_kernel_info.serves). */
#define FA_FEATURE_VARLEN 0x1      /* --lengths: start_q, start_kv, used_q, used_kv */
#define FA_FEATURE_WINDOW 0x2      /* --window: window_left, window_right */
#define FA_FEATURE_CHUNK 0x4       /* --chunk: chunk */
#define FA_FEATURE_PAGED 0x8       /* --page-size: pages */
#define FA_FEATURE_SOFTCAP 0x10    /* --softcap: softcap */
#define FA_FEATURE_SINK 0x20       /* --sinks: sinks */
#define FA_FEATURE_ALIBI 0x40      /* --alibi: slopes */
#define FA_FEATURE_BIAS 0x80       /* --bias: bias */
#define FA_FEATURE_MASK 0x100      /* --mask tree: mask */
#define FA_FEATURE_DIM_V 0x200     /* --dim-v: dim_v != dim */
#define FA_FEATURE_QK2 0x400       /* q2, k2 */
#define FA_FEATURE_FP8 0x800       /* --dtype e4m3 */
#define FA_FEATURE_FP8_KV 0x1000   /* --kv-dtype e4m3 */
#define FA_FEATURE_BACKWARD 0x2000 /* --op backward */
#define FA_FEATURE_DETERMINISTIC 0x4000
#define FA_FEATURES_WORDS \
    "varlen|window|chunk|paged|softcap|sink|alibi|bias|mask|dim_v|qk2|fp8|fp8_kv|backward|deterministic"

/* What of the dense contract a kernel cannot do without (fa_kernel_info.needs, or a line of its source
 * such as FA_NEEDS: packed mha self). A problem that offers less is refused by name. */
#define FA_NEEDS_PACKED 0x1   /* tensors without gaps, as [batch, heads, seq, dim] */
#define FA_NEEDS_MHA 0x2      /* kv_heads == heads */
#define FA_NEEDS_SELF 0x4     /* seq_q == seq_kv */
#define FA_NEEDS_ALIGNED 0x8  /* tensors and rows that start on 16 bytes */
#define FA_NEEDS_WHOLE_M 0x10 /* seq_q a multiple of m */
#define FA_NEEDS_WHOLE_N 0x20 /* seq_kv a multiple of n */
#define FA_NEEDS_ALL 0x3f
#define FA_NEEDS_WORDS "packed|mha|self|aligned|whole_m|whole_n"

/* CUtensorMap, opaque here: 128 bytes the hardware reads, 64-byte aligned. */
#ifdef __cplusplus
typedef struct alignas(64) fa_tensor_map {
    unsigned char bytes[128];
} fa_tensor_map;
#else
typedef struct fa_tensor_map {
    _Alignas(64) unsigned char bytes[128];
} fa_tensor_map;
#endif

/* One launch. Tensors are of type fa_element (with FP8: see fa_element_q): q [batch, heads, seq_q, dim];
 * k [batch, kv_heads, seq_kv, dim]; v [batch, kv_heads, seq_kv, dim_v]; o [batch, heads, seq_q, dim_v].
 * Strides are in elements; the innermost (dim) stride is 1. Neither they nor the addresses are multiples of more than
 * an element: look before you read 16 bytes at once. Query head h reads K/V head h / (heads / kv_heads).
 * The position of query row i is pos = i + Sk - Sq, with the lengths of its own sequence (seq_kv and seq_q, where all
 * sequences are alike). causal: it sees key j iff j <= pos (bottom-right). A row that sees no key gives 0.
 * Score: scale q.k, then softcap, then bias and ALiBi are added. What follows `dtype` belongs to features
 * (FA_FEATURE_*); the host fills all of it: where a feature is off, with the value named there. */
typedef struct fa_params {
    const void *q, *k, *v;
    void *o;
    fa_i64 q_stride_b, q_stride_h, q_stride_s;
    fa_i64 k_stride_b, k_stride_h, k_stride_s;
    fa_i64 v_stride_b, v_stride_h, v_stride_s;
    fa_i64 o_stride_b, o_stride_h, o_stride_s;
    fa_i32 batch, heads, kv_heads, seq_q, seq_kv, dim;
    fa_i32 causal;
    fa_f32 scale;    /* of q.k; above 0, so the largest q.k of a row has its largest score */
    fa_i32 tiles_m;  /* ceil(seq_q / m); with pack_heads ceil(seq_q * heads / kv_heads / m) */
    fa_i32 tiles;    /* tiles_m * heads * batch (pack_heads: kv_heads): units of work before splits */
    fa_i32 sm_count; /* multiprocessors of the device */
    fa_i32 reserved;
    void *workspace;                          /* zeroed once at load; a kernel leaves its counters zero again */
    fa_i64 workspace_bytes;                   /* what fa_kernel_info asked for */
    fa_tensor_map q_map, k_map, v_map, o_map; /* encoded iff the tma box below is not 0; backward: o_map is of dout */
    /* [batch, heads, seq_q]: the natural logarithm of the sum of e^(scale q.k) over the keys a row sees, -inf for a row
     * that sees none. NULL: not asked for. Strides in elements. */
    fa_f32 *lse;
    fa_i64 lse_stride_b, lse_stride_h, lse_stride_s;
    fa_i32 dtype; /* FA_DTYPE_* of q; of k, v and o too where the next lines do not say otherwise */

    /* ABI 3. Off: dim_v = dim, dtype_kv = dtype_o = dtype */
    fa_i32 dim_v; /* of v and o */
    fa_i32 dtype_kv, dtype_o;
    /* What a row sees, beside causal: keys pos - window_left .. pos + window_right, both ends included; -1: open. The
     * host sets window_right = 0 with causal. chunk: only the keys of floor(pos / chunk). Off: -1, -1 and 0. */
    fa_i32 window_left, window_right;
    fa_i32 chunk;
    fa_i32 page_size; /* rows of a page of k and v; 0: they are not paged */

    /* Sequences of unlike lengths, int32 in device memory. start [batch + 1]: the first row of each sequence; tensors
     * are then [heads, total, dim] and stride_b is unused. used [batch]: rows of a sequence that count; those after
     * them, up to the next start, are poison. seq_q and seq_kv are the largest lengths. Off: NULL. */
    const fa_i32 *start_q, *start_kv, *used_q, *used_kv;
    fa_i64 total_q, total_kv; /* rows stored for one head; off: seq_q, seq_kv */

    /* page_size > 0: k_stride_b and v_stride_b are the strides of a page. The table of sequence b begins at
     * pages + page_start[b], or at pages + b * pages_stride where page_start is NULL; its first
     * ceil(used_kv[b] / page_size) entries are numbers of pages, the others are not to be read. */
    const fa_i32 *pages, *page_start;
    fa_i64 pages_stride;
    fa_i32 num_pages;

    /* Scores and their sum */
    fa_f32 softcap;         /* score = softcap * tanh(scale q.k / softcap); 0: off */
    const fa_f32 *sinks;    /* [heads]: one more logit in a row's denominator and in its lse; not scaled. Off: NULL */
    const fa_f32 *slopes;   /* [batch or 1, heads], ALiBi: - slope * |pos - j|. Off: NULL */
    fa_i64 slopes_stride_b; /* 0: all batches have one row of slopes */
    const void *bias;       /* [batch, heads, seq_q, seq_kv] of the type of o. Off: NULL */
    fa_i64 bias_stride_b, bias_stride_h, bias_stride_q; /* elements, 0 broadcasts; that of keys is 1 */
    /* The tree of a speculative decoder, as bits over the last n = min(mask_keys, Sk) keys of a sequence (mask_keys 0:
     * all); earlier keys are seen. Row i sees key j iff bit i * n + (j - (Sk - n)) is set: bit k is bit k % 8 of byte
     * k / 8, from mask + mask_start[b]. Off: NULL. */
    const unsigned char *mask;
    const fa_i64 *mask_start; /* [batch], bytes */
    fa_i32 mask_keys, reserved3;

    /* FP8: q.k and v are times these. NULL: 1. q [batch, heads]; k, v [batch, kv_heads]. */
    const fa_f32 *q_descale, *k_descale, *v_descale;
    fa_i64 q_descale_stride_b, q_descale_stride_h, kv_descale_stride_b, kv_descale_stride_h;

    /* score = scale (q.k + q2.k2): a part of the head dimension that lies apart. dim2 0: none */
    const void *q2, *k2;
    fa_i64 q2_stride_b, q2_stride_h, q2_stride_s, k2_stride_b, k2_stride_h, k2_stride_s;
    fa_i32 dim2, deterministic;

    /* Backward where dout is not NULL: o and lse are read; dq, dk, dv are written, and dsinks [heads] if not NULL. */
    const void *dout;
    void *dq, *dk, *dv;
    fa_f32 *dsinks;
    fa_i64 grad_stride[4][3]; /* b, h, s of dout, dq, dk, dv */
    fa_i64 reserved4[3];      /* 0; no padding: parameters are compared byte by byte */
} fa_params;

/* What the compiled module says it is; read back from the cubin (or the emulator's object), never assumed. */
typedef struct fa_kernel_info {
    fa_i32 abi; /* FA_ABI */
    /* the knobs this module was compiled with */
    fa_i32 m, n, warps, vec, stages, swizzle, acc_fp16, maxreg, splits, dim, causal;
    fa_i32 features, dim_v; /* FA_FEATURES, FA_DIM_V */
    /* launch */
    fa_i32 threads;                   /* per block */
    fa_i32 smem_dynamic_bytes;        /* per block */
    fa_i32 grid;                      /* FA_GRID_* */
    fa_i32 blocks_per_sm;             /* resident blocks per multiprocessor; _KEYS with these: no more of them */
    fa_i32 cluster;                   /* thread blocks per cluster, 0 or 1: none */
    fa_i64 workspace_bytes_per_block; /* times the tiles*splits of query rows ... */
    fa_i64 workspace_bytes_fixed;     /* ... plus this */
    /* TMA: rows and columns (elements of 16 bits; twice as many of FP8) of one box per tensor, 0: no map. 128-byte
     * swizzle when cols*2 == 128, 64-byte when 64, 32-byte when 32. Maps are rank 4: (dim, seq, heads, batch), zero
     * fill out of bounds. With lengths (start_q) row i of a sequence of n rows that starts at row s of a head is at
     * (.., seq - n + i, head, s + n): what lies past the sequence is out of bounds. seq: the largest length, seq_q or
     * seq_kv, at least 1. An FP8 cache (dtype_kv alone is FP8) off 16 bytes has no maps. */
    fa_i32 tma_q_rows, tma_k_rows, tma_v_rows, tma_o_rows;
    fa_i32 tma_cols;
    fa_i32 nondeterministic; /* 1: repeats may differ in the last bits */
    fa_i32 pack_heads;       /* 1: a tile's m rows are the seq_q * (heads / kv_heads) rows of one (batch, kv_head) */
    fa_i32 writes_lse;       /* 1: this module writes fa_params.lse where it is not NULL; 0: it cannot be asked for */
    fa_i32 serves_bf16;      /* 1: compiled with FA_BF16 it takes BF16 tensors; 0: FP16 alone */
    /* ABI 3 */
    fa_i32 serves;              /* FA_FEATURE_*: what it can serve beyond dense forward */
    fa_i32 needs;               /* FA_NEEDS_* */
    fa_i32 page_rows;           /* with pages: page sizes must be multiples of this; 0: any */
    fa_i32 pre_grid, post_grid; /* blocks of fa_before and fa_after; 0: as fa_kernel, of all keys */
} fa_kernel_info;

#ifdef __cplusplus
#ifndef FA_SPLITS
#define FA_SPLITS 1
#endif
/* The features that the problem asks for: code of the others falls away. Head dimension of V and O. */
#ifndef FA_FEATURES
#define FA_FEATURES 0
#endif
#ifndef FA_DIM_V
#define FA_DIM_V FA_DIM
#endif
/* 1 with --v-in-k: V is the first FA_DIM_V columns of K: v == k, with its strides. */
#ifndef FA_V_IN_K
#define FA_V_IN_K 0
#endif
/* 1 when the run asks for the log-sum-exp (--lse): a kernel may leave the code for it out otherwise. */
#ifndef FA_LSE
#define FA_LSE 0
#endif
/* 1 with --dtype e4m3, and with --kv-dtype e4m3. cuda_fp8.h declares their type. */
#ifndef FA_FP8
#define FA_FP8 0
#endif
#ifndef FA_FP8_KV
#define FA_FP8_KV 0
#endif
/* 1 with --dtype bf16, and with --dtype e4m3, whose O is BF16. fa_element is the type of o and of a bias, and of all
 * tensors without FP8: 16 bits always. cuda_fp16.h and cuda_bf16.h declare them.
 * fa_element_q is the type of q and fa_element_kv that of k and v. With FP8
 *     S = scale * q_descale * k_descale * q.k        O = v_descale * (P v)
 * where q, k, v are the elements; softcap, bias, sinks and the log-sum-exp are of S as it stands here. */
#ifndef FA_BF16
#define FA_BF16 0
#endif
#if FA_BF16
#define fa_element __nv_bfloat16
#else
#define fa_element __half
#endif
#if FA_FP8
#define fa_element_q __nv_fp8_e4m3
#else
#define fa_element_q fa_element
#endif
#if FA_FP8 || FA_FP8_KV
#define fa_element_kv __nv_fp8_e4m3
#else
#define fa_element_kv fa_element
#endif
/* The knobs of this file and the values a sweep tries, for fa_bench to read: FA_SPACE(m=16,32 warps=4,8) */
#define FA_SPACE(...)

/* Exports the constants the module was compiled with. Arguments are designated initialisers, in the order of the
 * struct. */
#define FA_KERNEL_INFO(...)                                                        \
    extern "C" __device__ const fa_kernel_info fa_info = {.abi = FA_ABI,           \
                                                          .m = FA_M,               \
                                                          .n = FA_N,               \
                                                          .warps = FA_WARPS,       \
                                                          .vec = FA_VEC,           \
                                                          .stages = FA_STAGES,     \
                                                          .swizzle = FA_SWIZZLE,   \
                                                          .acc_fp16 = FA_ACC_FP16, \
                                                          .maxreg = FA_MAXREG,     \
                                                          .splits = FA_SPLITS,     \
                                                          .dim = FA_DIM,           \
                                                          .causal = FA_CAUSAL,     \
                                                          .features = FA_FEATURES, \
                                                          .dim_v = FA_DIM_V,       \
                                                          __VA_ARGS__}
#endif

#endif
