/* The contract between the host and a kernel: what a launch passes in (fa_params) and what a compiled
 * module says of itself (fa_kernel_info). Read by gcc, NVRTC, nvcc and the emulator's g++: plain C, fixed sizes.
 *
 * A kernel file provides exactly two symbols:
 *     FA_KERNEL_INFO(.threads = ..., .smem_dynamic_bytes = ...);
 *     extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p);
 */
#ifndef FA_PARAMS_H
#define FA_PARAMS_H

/* 2: fa_params.lse and dtype, fa_kernel_info.writes_lse and serves_bf16. Sources for ABI 1 compile as they are. */
#define FA_ABI 2

typedef int fa_i32;
typedef float fa_f32;
typedef long long fa_i64;

/* How many blocks a launch has. A unit of work is one tile: `m` query rows of one (batch, head), times `splits`.
 * With pack_heads the rows are those of all query heads of one (batch, kv_head). */
enum {
    FA_GRID_TILES = 0,      /* blocks = ceil(seq_q / m) * heads * batch * splits, in grid.x */
    FA_GRID_PERSISTENT = 1, /* blocks = min(that, sm_count * blocks_per_sm) */
};

/* Element types of the tensors (--dtype). */
enum { FA_DTYPE_FP16 = 0, FA_DTYPE_BF16 = 1 };

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

/* One launch. Tensors are of type fa_element: q, o [batch, heads, seq_q, dim]; k, v [batch, kv_heads, seq_kv, dim].
 * Strides are in elements; the innermost (dim) stride is 1. Neither they nor the addresses are multiples of more than
 * an element: look before you read 16 bytes at once. Query head h reads K/V head h / (heads / kv_heads).
 * causal: query row i sees key j iff j <= i + seq_kv - seq_q (bottom-right); a row that sees no key gives 0. */
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
    fa_tensor_map q_map, k_map, v_map, o_map; /* encoded iff the matching tma box below is not 0 */
    /* [batch, heads, seq_q]: the natural logarithm of the sum of e^(scale q.k) over the keys a row sees, -inf for a row
     * that sees none. NULL: not asked for. Strides in elements. */
    fa_f32 *lse;
    fa_i64 lse_stride_b, lse_stride_h, lse_stride_s;
    fa_i32 dtype;        /* FA_DTYPE_* of q, k, v and o */
    fa_i32 reserved2[7]; /* 0; no padding: parameters are compared byte by byte */
} fa_params;

/* What the compiled module says it is; read back from the cubin (or the emulator's object), never assumed. */
typedef struct fa_kernel_info {
    fa_i32 abi; /* FA_ABI */
    /* the knobs this module was compiled with */
    fa_i32 m, n, warps, vec, stages, swizzle, acc_fp16, maxreg, splits, dim, causal;
    /* launch */
    fa_i32 threads;                   /* per block */
    fa_i32 smem_dynamic_bytes;        /* per block */
    fa_i32 grid;                      /* FA_GRID_* */
    fa_i32 blocks_per_sm;             /* FA_GRID_PERSISTENT: resident blocks per multiprocessor */
    fa_i32 cluster;                   /* thread blocks per cluster, 0 or 1: none */
    fa_i64 workspace_bytes_per_block; /* times the tiles*splits of the launch ... */
    fa_i64 workspace_bytes_fixed;     /* ... plus this */
    /* TMA: rows and columns (elements) of one box per tensor, 0: no map. 128-byte swizzle when cols*2 == 128,
     * 64-byte when 64, 32-byte when 32. Maps are rank 4: (dim, seq, heads, batch), zero fill out of bounds. */
    fa_i32 tma_q_rows, tma_k_rows, tma_v_rows, tma_o_rows;
    fa_i32 tma_cols;
    fa_i32 nondeterministic; /* 1: repeats may differ in the last bits */
    fa_i32 pack_heads;       /* 1: a tile's m rows are the seq_q * (heads / kv_heads) rows of one (batch, kv_head) */
    fa_i32 writes_lse;       /* 1: this module writes fa_params.lse where it is not NULL; 0: it cannot be asked for */
    fa_i32 serves_bf16;      /* 1: compiled with FA_BF16 it takes BF16 tensors; 0: FP16 alone */
} fa_kernel_info;

#ifdef __cplusplus
#ifndef FA_SPLITS
#define FA_SPLITS 1
#endif
/* 1 when the run asks for the log-sum-exp (--lse): a kernel may leave the code for it out otherwise. */
#ifndef FA_LSE
#define FA_LSE 0
#endif
/* 1 with --dtype bf16. fa_element is the type of the tensors; cuda_bf16.h declares both. */
#ifndef FA_BF16
#define FA_BF16 0
#endif
#if FA_BF16
#define fa_element __nv_bfloat16
#else
#define fa_element __half
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
                                                          __VA_ARGS__}
#endif

#endif
