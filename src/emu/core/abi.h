/* The interface between the emulator (C, in fa_bench) and the kernel's shared object (C++, through include/fa_emu.h):
 * the identity of a CUDA thread, and the operation it waits in. Read by both compilers. */
#pragma once

#include <stdint.h>

#define FA_EMU_ABI 7
#define FA_EMU_WARP 32
#define FA_EMU_POLLS 32

/* Rendezvous kinds. BARRIER: the block. The others: lanes of a warp; from LDMATRIX on all 32 at one line (.aligned). */
typedef enum fa_emu_kind {
    FA_EMU_BARRIER,
    FA_EMU_YIELD,
    FA_EMU_SYNCWARP,
    FA_EMU_ACTIVEMASK,
    FA_EMU_SHUFFLE,
    FA_EMU_VOTE,
    FA_EMU_MATCH,
    FA_EMU_REDUCE,
    FA_EMU_PHASE, /* waits for a phase of a barrier object or for registers; each lane alone */
    FA_EMU_LDMATRIX,
    FA_EMU_STMATRIX,
    FA_EMU_WMMA,
    FA_EMU_CONVERGE, /* all 32 lanes must be here, with nothing to exchange: WMMA load, store, fill */
    FA_EMU_PTX,      /* inline mma, movmatrix and wgmma */
    FA_EMU_EXIT,     /* the thread ends here; it awaits nothing */
} fa_emu_kind;
#define FA_EMU_FIRST_ALIGNED FA_EMU_LDMATRIX

typedef enum { FA_EMU_SHFL_IDX, FA_EMU_SHFL_UP, FA_EMU_SHFL_DOWN, FA_EMU_SHFL_XOR } fa_emu_shuffle_mode;
typedef enum { FA_EMU_VOTE_BALLOT, FA_EMU_VOTE_ANY, FA_EMU_VOTE_ALL, FA_EMU_VOTE_UNI } fa_emu_vote_mode;
typedef enum { FA_EMU_MATCH_ANY, FA_EMU_MATCH_ALL } fa_emu_match_mode;
typedef enum {
    FA_EMU_REDUCE_ADD,
    FA_EMU_REDUCE_MIN_S,
    FA_EMU_REDUCE_MAX_S,
    FA_EMU_REDUCE_MIN_U,
    FA_EMU_REDUCE_MAX_U,
    FA_EMU_REDUCE_AND,
    FA_EMU_REDUCE_OR,
    FA_EMU_REDUCE_XOR,
} fa_emu_reduce_mode;
/* WMMA m16n16k16 of halves and bfloats; which of its fragment types a map belongs to, and bits of a multiplication. */
typedef enum { FA_EMU_FRAG_A, FA_EMU_FRAG_B, FA_EMU_FRAG_ACC_F32, FA_EMU_FRAG_ACC_F16, FA_EMU_FRAG_TYPES } fa_emu_frag;
#define FA_EMU_WMMA_C_F16 1
#define FA_EMU_WMMA_D_F16 2
#define FA_EMU_WMMA_BF16 4    /* the inputs */
#define FA_EMU_FRAG_AB_LEN 16 /* halves a lane holds of A or B: every element is held twice, as on the hardware */
#define FA_EMU_FRAG_ACC_LEN 8
/* Other WMMA shapes and types: op.mode is the type of the inputs plus 1, op.arg the shape. */
typedef enum { FA_EMU_WMMA_F16, FA_EMU_WMMA_BF, FA_EMU_WMMA_TF32, FA_EMU_WMMA_S8, FA_EMU_WMMA_U8 } fa_emu_wmma_type;
#define FA_EMU_WMMA_SATURATE 8
#define FA_EMU_WMMA_INTEGER(type) ((type) >= FA_EMU_WMMA_S8)
#define FA_EMU_WMMA_SHAPE(m, n, k) ((m) << 16 | (n) << 8 | (k))
/* The element of A or B in slot lane * length + i: also drawn from the seed, through the table of the same operand. */
static inline uint32_t fa_emu_wmma_element(const uint16_t *map, uint32_t slot, uint32_t elements)
{
    return (slot * (2u * map[0] + 1) + map[1]) % elements; /* a power of two: each element has one slot */
}

typedef enum { FA_EMU_BAR_NONE, FA_EMU_BAR_COUNT, FA_EMU_BAR_AND, FA_EMU_BAR_OR } fa_emu_bar_mode;

/* One lane's part of an operation; lives on the waiting thread's stack. */
typedef struct fa_emu_op {
    int32_t kind, mode;
    const char *name, *file; /* the name in the kernel, and its line */
    int32_t line;
    uint32_t mask;   /* lanes named; ~0 for aligned operations */
    int32_t arg;     /* shuffle: lane or delta; barrier: id; ldmatrix: matrices, negative when transposed */
    int32_t width;   /* shuffle: width; barrier: threads, 0: all running ones; wmma: layout bits */
    uint64_t value;  /* in: shuffle, vote, match, reduce; predicate of a barrier */
    uint64_t result; /* out */
    const void *a, *b, *c;
    void *d;
} fa_emu_op;

/* A line of the kernel. */
typedef struct fa_emu_place {
    const char *file;
    int32_t line;
} fa_emu_place;

/* One asm statement of the kernel: its text, its operands in order, and what the interpreter made of it. */
typedef struct fa_emu_ptx_site {
    const char *text;
    fa_emu_place at;
    int32_t operands;
    const void *program;
} fa_emu_ptx_site;

typedef struct fa_emu_uint3 {
    unsigned x, y, z;
} fa_emu_uint3;

struct fa_emu_thread;

typedef struct fa_emu_api {
    void (*wait)(fa_emu_op *op);   /* rendezvous; returns when it is complete */
    void (*arrive)(fa_emu_op *op); /* counts at a barrier without waiting */
    /* `bytes` are copied and the rest of `size` zeroed, at the wait that covers the group; poisoned until then. */
    void (*cp_async)(void *dst, const void *src, int32_t size, int32_t bytes, const char *file, int32_t line);
    void (*cp_async_commit)(void);
    void (*cp_async_wait)(int32_t groups_left, int32_t everything);
    void (*fail)(const char *kind, const char *what, const char *file, int32_t line); /* never returns */
    /* at: the place that a report names: the site, or its caller where that is known. places: where the operands lie
     * that a later statement may write (wgmma), or NULL. pc, frame: the kernel's. */
    void (*ptx)(fa_emu_ptx_site *site, const fa_emu_place *at, uint64_t *values, void *const *places, const void *pc,
                const void *frame);
    /* Shared memory of the cluster's blocks: the place in block `rank` that corresponds to `p`; the rank of the block
     * that `p` belongs to, or -1; the address of `p` (FA_EMU_CLUSTER_SHIFT), or 0. */
    void *(*map_rank)(const void *p, uint32_t rank);
    int32_t (*rank_of)(const void *p);
    uint32_t (*cluster_address)(const void *p);
} fa_emu_api;

/* A running CUDA thread. The core points the object's slot `now` at it before every switch. */
typedef struct fa_emu_thread {
    fa_emu_uint3 thread, block, block_dim, grid_dim;
    unsigned char *smem; /* dynamic shared memory of the block, exactly smem_bytes */
    uint32_t smem_bytes, lane, warp;
    uint32_t cluster_rank, cluster_size;
    uint32_t polls; /* atomic accesses; every FA_EMU_POLLS-th lets other threads run */
    const fa_emu_api *api;
    /* Element (row * 16 + col) that lane l holds at index i of a fragment: map[type][l * len + i]. */
    const uint16_t *wmma_map[FA_EMU_FRAG_TYPES];
} fa_emu_thread;

struct fa_params;

/* Thread-local variables of the object: the running CUDA thread; threadIdx, blockIdx, blockDim, gridDim. */
typedef struct fa_emu_slots {
    fa_emu_thread **now;
    fa_emu_uint3 *thread, *block, *block_dim, *grid_dim;
} fa_emu_slots;

/* Symbols of the object: `fa_emu_call` runs fa_kernel on the calling fibre; `fa_emu_slot` gives the calling OS thread's
 * slots; `fa_emu_build` says how it was built. */
typedef fa_emu_slots fa_emu_slot_fn(void);
typedef void fa_emu_call_fn(const struct fa_params *params);
typedef struct fa_emu_build {
    int32_t abi;
    int32_t asan, tsan;
    char *static_smem_begin, *static_smem_end; /* __shared__ variables */
} fa_emu_build_info;

/* Shared memory as the 32-bit addresses of PTX, below 2^18 as on the hardware: the block's variables, a gap, its
 * dynamic part. The low 10 bits are those of the generic pointer, so that alignment is the same in both. */
#define FA_EMU_SHARED_FIRST 0x400u
#define FA_EMU_SHARED_GAP 0x400u        /* at least; half of it counts to either side */
#define FA_EMU_SHARED_REACH 0x00800000u /* how far behind the dynamic part an address may still point */
/* In a cluster an address has the block's rank plus 1 above the place (on an H100 the rank); 0: the block's own. */
#define FA_EMU_CLUSTER_SHIFT 24

static inline uint32_t fa_emu_static_address(const fa_emu_build_info *build)
{
    return FA_EMU_SHARED_FIRST + ((uint32_t)(uintptr_t)build->static_smem_begin & 0x3ff);
}

static inline uint32_t fa_emu_static_bytes(const fa_emu_build_info *build)
{
    return (uint32_t)(build->static_smem_end - build->static_smem_begin);
}

static inline uint32_t fa_emu_dynamic_address(const void *smem, const fa_emu_build_info *build)
{
    const uint32_t end = fa_emu_static_address(build) + fa_emu_static_bytes(build);
    return ((end + FA_EMU_SHARED_GAP + 0x3ff) & ~0x3ffu) + ((uint32_t)(uintptr_t)smem & 0x3ff);
}

static inline uint32_t fa_emu_shared_address(const void *p, const void *smem, const fa_emu_build_info *build)
{
    const uintptr_t at = (uintptr_t)p, variables = (uintptr_t)build->static_smem_begin, half = FA_EMU_SHARED_GAP / 2;
    const uint32_t bytes = fa_emu_static_bytes(build);
    if (bytes > 0 && at - variables + half < bytes + 2 * half)
        return fa_emu_static_address(build) + (uint32_t)(at - variables);
    return fa_emu_dynamic_address(smem, build) + (uint32_t)(at - (uintptr_t)smem);
}

/* Null: no address of shared memory. */
static inline unsigned char *fa_emu_shared_place(uint32_t address, const void *smem, const fa_emu_build_info *build)
{
    const uint32_t begin = fa_emu_static_address(build), dynamic = fa_emu_dynamic_address(smem, build);
    const uint32_t bytes = fa_emu_static_bytes(build);
    if (address < FA_EMU_SHARED_FIRST / 2 || address > dynamic + FA_EMU_SHARED_REACH)
        return (unsigned char *)0;
    if (bytes > 0 && address < begin + bytes + FA_EMU_SHARED_GAP / 2)
        return (unsigned char *)((uintptr_t)build->static_smem_begin + (uintptr_t)(intptr_t)(int32_t)(address - begin));
    return (unsigned char *)((uintptr_t)smem + (uintptr_t)(intptr_t)(int32_t)(address - dynamic));
}

static inline int fa_emu_is_shared(const void *p, const void *smem, uint32_t smem_bytes, const fa_emu_build_info *build)
{
    const char *at = (const char *)p;
    return (at >= (const char *)smem && at < (const char *)smem + smem_bytes) ||
           (at >= build->static_smem_begin && at < build->static_smem_end);
}
