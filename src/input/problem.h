/* The attention problem: shapes, what each row sees, what happens to its scores; validated, with its FLOP count. */
#pragma once

#include "input/options.h"
#include "input/pages.h"

/* Shapes in elements. q: [batch, heads, seq_q, dim]; k: [batch, kv_heads, seq_kv, dim]; v: [batch, kv_heads, seq_kv,
 * dim_v]; o: [batch, heads, seq_q, dim_v]. With lengths the batches are sequences that lie one behind
 * the other: tensors are [1, heads, rows, dim], and seq_q and seq_kv are the largest lengths. The features that a
 * zeroed problem has are those of dense forward. */
typedef struct fa_problem {
    int32_t batch, heads, kv_heads, seq_q, seq_kv, dim;
    bool causal;    /* bottom-right aligned: row i sees key j iff j <= pos, pos = i + seq_kv - seq_q of its sequence */
    float scale;    /* multiplies Q K^T; default 1/sqrt(dim) */
    fa_dtype dtype; /* of Q; of K, V and O see fa_problem_dtype_kv, fa_problem_dtype_o */
    bool fp8_kv;    /* K and V are E4M3 whatever Q is */
    int32_t dim_v;  /* fa_problem_dim_v reads it; 0: dim */
    bool v_in_k;    /* V is the first dim_v columns of K, in the same memory */
    bool windowed;  /* keys pos - window_left .. pos + window_right, both ends included; -1: open */
    int32_t window_left, window_right;
    int32_t chunk; /* only keys of floor(pos / chunk); 0: off */
    float softcap; /* score = softcap * tanh(score / softcap); 0: off */
    bool sinks, alibi, bias;
    bool backward;             /* --op backward: dQ, dK, dV (and dsinks) of Q, K, V, O, the log-sum-exp and dO */
    bool deterministic;        /* backward whose repeats must be bitwise equal */
    bool tree;                 /* --mask tree: of the last seq_q keys a row sees its own and its ancestors' */
    const fa_lengths *lengths; /* NULL: all sequences are seq_q and seq_kv long */
    const fa_pages *pages;     /* NULL: K and V are not paged */
} fa_problem;

/* FA_USAGE when kv_heads does not divide heads, dim is no multiple of 8, ... The caller frees what it
 * points to: fa_problem_free. */
fa_status fa_problem_make(const fa_options *options, fa_problem *problem, fa_reason *why);
void fa_problem_free(fa_problem *problem);

static inline int32_t fa_problem_dim_v(const fa_problem *problem)
{
    return problem->dim_v != 0 ? problem->dim_v : problem->dim;
}
/* Of K and V: FP8 where Q or the cache is. */
static inline fa_dtype fa_problem_dtype_kv(const fa_problem *problem)
{
    return problem->fp8_kv ? FA_DTYPE_E4M3 : problem->dtype;
}
/* Of O and a bias: 16 bits always. */
static inline fa_dtype fa_problem_dtype_o(const fa_problem *problem)
{
    return problem->dtype == FA_DTYPE_E4M3 ? FA_DTYPE_BF16 : problem->dtype;
}
/* K and V have descales; Q has where it is FP8, too. */
static inline bool fa_problem_has_descales(const fa_problem *problem)
{
    return fa_problem_dtype_kv(problem) == FA_DTYPE_E4M3;
}
int32_t fa_problem_features(const fa_problem *problem); /* FA_FEATURE_*: the features that it asks for */
#define FA_FEATURES_TEXT 200
/* The options that ask for these features: "--window, --sinks". */
const char *fa_features_text(int32_t features, char text[FA_FEATURES_TEXT]);

/* Batches, and rows of a head, as they are stored: with lengths one batch of all rows, gaps included; of K and V in
 * pages a batch is a page. */
int32_t fa_problem_stored_batch(const fa_problem *problem);
int32_t fa_problem_stored_batch_kv(const fa_problem *problem);
int32_t fa_problem_stored_q(const fa_problem *problem);
int32_t fa_problem_stored_kv(const fa_problem *problem);
int64_t fa_problem_rows(const fa_problem *problem);   /* stored query rows over all heads and batches */
size_t fa_problem_q_count(const fa_problem *problem); /* stored elements of Q */
size_t fa_problem_o_count(const fa_problem *problem); /* of O */
size_t fa_problem_k_count(const fa_problem *problem); /* of K */
size_t fa_problem_v_count(const fa_problem *problem); /* of V */

/* A stored query row, and the lengths of its sequence. */
typedef struct fa_row {
    int32_t batch, head, row;
    int32_t seq_q, seq_kv;
    bool used; /* false: in a gap between sequences, where nothing may be read or written */
} fa_row;
/* flat: (batch * heads + head) * stored rows + stored row. */
fa_row fa_problem_row(const fa_problem *problem, int64_t flat);
int64_t fa_problem_flat(const fa_problem *problem, int32_t batch, int32_t head, int32_t row); /* the way back */
/* The stored row, over all batches and heads, that holds a key. */
int64_t fa_problem_key_row(const fa_problem *problem, int32_t batch, int32_t kv_head, int32_t key);
/* The key that a stored row holds: batch, head (a K/V head), row and seq_kv; `used` is false where it holds none. */
fa_row fa_problem_key_at(const fa_problem *problem, int64_t flat);
int32_t fa_problem_seq_q(const fa_problem *problem, int32_t batch);
int32_t fa_problem_seq_kv(const fa_problem *problem, int32_t batch);

/* Keys [first, end) of a sequence; empty where end == first. */
typedef struct fa_keys {
    int32_t first, end;
} fa_keys;
/* What row `row` of sequence `batch` sees: causal, window and chunk. With a tree some of these keys are hidden. */
fa_keys fa_problem_keys(const fa_problem *problem, int32_t batch, int32_t row);
/* The same of a row at `pos` of a sequence with seq_kv keys. */
fa_keys fa_problem_keys_at(const fa_problem *problem, int64_t pos, int32_t seq_kv);
/* Whether a key of that range is seen: the tree's part. */
bool fa_problem_sees(const fa_problem *problem, int32_t batch, int32_t row, int32_t key);
/* One key that the row sees, drawn with `random`; -1: it sees none. */
int32_t fa_problem_some_key(const fa_problem *problem, int32_t batch, int32_t row, uint64_t random);
bool fa_problem_row_is_empty(const fa_problem *problem, int32_t batch, int32_t row); /* sees no key */
int64_t fa_problem_pairs(const fa_problem *problem); /* visible (query, key) pairs, over all batches and heads */
double fa_problem_flop(const fa_problem *problem);   /* 2 * (dim + dim_v) * pairs; backward 2.5 times as many */
/* Q, K, V read once, O written once; backward all of them and dO read, three gradients written. Gaps are not read. */
double fa_problem_bytes(const fa_problem *problem);
