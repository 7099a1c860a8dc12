#include "input/problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum {
    FAR_MOST = 4096,  /* parts of a tensor that lie apart, each with guards of its own */
    TREE_MOST = 4096, /* query rows of a tree */
    TREE_REACH = 4,   /* a node's parent is one of so many rows before it, or the root */
};

/* "L,R" as a whole: each a number, or -1. */
static fa_status read_window(const char *text, fa_problem *problem, fa_reason *why)
{
    int used = 0;
    long left = -2, right = -2;
    problem->windowed = true;
    if (strspn(text, "0123456789-,") != strlen(text) || sscanf(text, "%7ld,%7ld%n", &left, &right, &used) != 2 ||
        text[used] != '\0' || left < -1 || right < -1 || left > 1048576 || right > 1048576)
        return fa_refuse(why, FA_USAGE, "--window takes LEFT,RIGHT, each up to 1048576 keys or -1: open, not '%.60s'",
                         text);
    problem->window_left = (int32_t)left;
    problem->window_right = (int32_t)right;
    return FA_PASS;
}

static fa_status use_lengths(const fa_options *options, fa_problem *problem, fa_reason *why)
{
    fa_lengths *lengths = fa_alloc(sizeof *lengths);
    const fa_status status = fa_lengths_make(options, lengths, why);
    if (status != FA_PASS) {
        free(lengths);
        return status;
    }
    problem->lengths = lengths;
    problem->batch = lengths->count;
    problem->seq_q = fa_lengths_largest(lengths->q, lengths->count);
    problem->seq_kv = fa_lengths_largest(lengths->kv, lengths->count);
    return FA_PASS;
}

static void use_pages(const fa_options *options, fa_problem *problem)
{
    int32_t *keys = fa_alloc((size_t)problem->batch * sizeof *keys);
    for (int32_t b = 0; b < problem->batch; b++)
        keys[b] = fa_problem_seq_kv(problem, b);
    problem->pages = fa_pages_make(options->page_size, options->page_layout == FA_PAGE_NHD, problem->batch, keys, 0,
                                   false, (uint64_t)options->seed);
    free(keys);
}

/* What there are no gradients of, or nobody trains with. */
static fa_status validate_backward(const fa_options *options, const fa_problem *problem, fa_reason *why)
{
    const char *with = options->page_size > 0             ? "--page-size"
                       : problem->v_in_k                  ? "--v-in-k"
                       : problem->bias                    ? "--bias"
                       : fa_problem_has_descales(problem) ? "e4m3: its tensors have 16 bits"
                       : problem->tree                    ? "--mask tree"
                       : options->lse                     ? "--lse, which asks for an output of the forward"
                       : options->atol != FA_UNSET_REAL || options->rtol != FA_UNSET_REAL
                           ? "--atol and --rtol: its rules are those of docs/backward.md"
                           : NULL;
    if (problem->deterministic && !problem->backward)
        return fa_refuse(why, FA_USAGE, "--deterministic asks for gradients: give --op backward, too");
    return problem->backward && with != NULL ? fa_refuse(why, FA_USAGE, "--op backward does not go with %s", with)
                                             : FA_PASS;
}

static fa_status validate(const fa_options *options, const fa_problem *problem, fa_reason *why)
{
    FA_TRY(validate_backward(options, problem, why));
    if (problem->dim % 8 != 0)
        return fa_refuse(why, FA_USAGE, "--dim takes a multiple of 8 from 16 to 576, not '%d'", problem->dim);
    if (problem->dim_v % 8 != 0)
        return fa_refuse(why, FA_USAGE, "--dim-v takes a multiple of 8 from 16 to 512, not '%d'", problem->dim_v);
    if (problem->dtype == FA_DTYPE_E4M3 && (problem->dim % 16 != 0 || problem->dim_v % 16 != 0))
        return fa_refuse(why, FA_USAGE, "--dtype e4m3 takes multiples of 16 for --dim and --dim-v");
    if (options->softcap > 0.0 && options->softcap < 1e-6) /* FP32 kernels divide by it */
        return fa_refuse(why, FA_USAGE, "--softcap takes 0 or a number from 1e-6 to 10000, not '%g'", options->softcap);
    if (options->page_layout != FA_PAGE_NHD && options->page_size == 0)
        return fa_refuse(why, FA_USAGE, "--page-layout hnd asks for pages: give --page-size, too");
    if (problem->v_in_k && problem->dim_v > problem->dim)
        return fa_refuse(why, FA_USAGE, "--v-in-k takes a --dim-v of at most --dim (%d), not '%d'", problem->dim,
                         problem->dim_v);
    if (problem->heads % problem->kv_heads != 0)
        return fa_refuse(why, FA_USAGE, "--kv-heads takes a divisor of --heads (%d), not '%d'", problem->heads,
                         problem->kv_heads);
    if (problem->tree && problem->seq_q > TREE_MOST)
        return fa_refuse(why, FA_USAGE, "--mask tree takes at most %d query rows", TREE_MOST);
    const int32_t blocks = fa_problem_stored_batch(problem) > 1 ? problem->batch
                           : problem->heads > 1                 ? problem->heads
                                                                : fa_problem_stored_q(problem);
    if (options->strides == FA_STRIDES_FAR && (blocks > FAR_MOST || fa_problem_stored_kv(problem) > FAR_MOST))
        return fa_refuse(why, FA_USAGE, "--strides far takes at most %d batches, heads or rows", FAR_MOST);
    return FA_PASS;
}

fa_status fa_problem_make(const fa_options *options, fa_problem *problem, fa_reason *why)
{
    *problem = (fa_problem){
        .batch = options->batch,
        .heads = options->heads,
        .kv_heads = options->kv_heads == FA_UNSET ? options->heads : options->kv_heads,
        .seq_q = options->seq,
        .seq_kv = options->seq_kv == FA_UNSET ? options->seq : options->seq_kv,
        .dim = options->dim,
        .dim_v = options->dim_v == FA_UNSET ? options->dim : options->dim_v,
        .v_in_k = options->v_in_k,
        .causal = options->causal,
        .dtype = options->dtype,
        .fp8_kv = options->kv_dtype == FA_KV_DTYPE_E4M3,
        .chunk = options->chunk,
        .softcap = (float)options->softcap,
        .sinks = options->sinks,
        .alibi = options->alibi,
        .bias = options->bias,
        .tree = options->mask == FA_MASK_TREE,
        .backward = options->op == FA_OP_BACKWARD,
        .deterministic = options->deterministic,
    };
    problem->scale = options->scale == FA_UNSET_REAL ? (float)(1.0 / sqrt(options->dim)) : (float)options->scale;
    if (options->window != NULL)
        FA_TRY(read_window(options->window, problem, why));
    if (options->lengths != NULL)
        FA_TRY(use_lengths(options, problem, why));
    const fa_status status = validate(options, problem, why);
    if (status != FA_PASS)
        fa_problem_free(problem);
    else if (options->page_size > 0)
        use_pages(options, problem);
    return status;
}

void fa_problem_free(fa_problem *problem)
{
    free((void *)(uintptr_t)problem->lengths);
    fa_pages_free((fa_pages *)(uintptr_t)problem->pages);
    problem->lengths = NULL;
    problem->pages = NULL;
}

int32_t fa_problem_features(const fa_problem *p)
{
    const bool window = p->windowed && (p->window_left >= 0 || (p->window_right >= 0 && !p->causal));
    return (p->lengths != NULL ? FA_FEATURE_VARLEN : 0) | (p->pages != NULL ? FA_FEATURE_PAGED : 0) |
           (window ? FA_FEATURE_WINDOW : 0) | (p->chunk > 0 ? FA_FEATURE_CHUNK : 0) |
           (p->softcap > 0 ? FA_FEATURE_SOFTCAP : 0) | (p->sinks ? FA_FEATURE_SINK : 0) |
           (p->backward ? FA_FEATURE_BACKWARD : 0) | (p->deterministic ? FA_FEATURE_DETERMINISTIC : 0) |
           (p->alibi ? FA_FEATURE_ALIBI : 0) | (p->bias ? FA_FEATURE_BIAS : 0) | (p->tree ? FA_FEATURE_MASK : 0) |
           (fa_problem_dim_v(p) != p->dim ? FA_FEATURE_DIM_V : 0) |
           (p->dtype == FA_DTYPE_E4M3 ? FA_FEATURE_FP8
            : p->fp8_kv               ? FA_FEATURE_FP8_KV
                                      : 0);
}

const char *fa_features_text(int32_t features, char text[FA_FEATURES_TEXT])
{
    static const char *const options[] = {"--lengths",       "--window",      "--chunk",        "--page-size",
                                          "--softcap",       "--sinks",       "--alibi",        "--bias",
                                          "--mask",          "--dim-v",       "q2, k2",         "--dtype e4m3",
                                          "--kv-dtype e4m3", "--op backward", "--deterministic"};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (features >> i & 1)
            used += (size_t)snprintf(text + used, FA_FEATURES_TEXT - used, "%s%s", used > 0 ? ", " : "", options[i]);
    return text;
}

int32_t fa_problem_stored_batch(const fa_problem *problem) { return problem->lengths != NULL ? 1 : problem->batch; }

int32_t fa_problem_stored_batch_kv(const fa_problem *problem)
{
    return problem->pages != NULL ? problem->pages->count : fa_problem_stored_batch(problem);
}

int32_t fa_problem_stored_q(const fa_problem *problem)
{
    return problem->lengths != NULL ? problem->lengths->q_start[problem->lengths->count] : problem->seq_q;
}

int32_t fa_problem_stored_kv(const fa_problem *problem)
{
    if (problem->pages != NULL)
        return problem->pages->size;
    return problem->lengths != NULL ? problem->lengths->kv_start[problem->lengths->count] : problem->seq_kv;
}

int64_t fa_problem_rows(const fa_problem *problem)
{
    return (int64_t)fa_problem_stored_batch(problem) * problem->heads * fa_problem_stored_q(problem);
}

static size_t kv_rows(const fa_problem *problem)
{
    return (size_t)fa_problem_stored_batch_kv(problem) * (size_t)problem->kv_heads *
           (size_t)fa_problem_stored_kv(problem);
}

size_t fa_problem_q_count(const fa_problem *p) { return (size_t)fa_problem_rows(p) * (size_t)p->dim; }
size_t fa_problem_o_count(const fa_problem *p) { return (size_t)fa_problem_rows(p) * (size_t)fa_problem_dim_v(p); }
size_t fa_problem_k_count(const fa_problem *p) { return kv_rows(p) * (size_t)p->dim; }
size_t fa_problem_v_count(const fa_problem *p) { return kv_rows(p) * (size_t)fa_problem_dim_v(p); }

int32_t fa_problem_seq_q(const fa_problem *problem, int32_t batch)
{
    return problem->lengths != NULL ? problem->lengths->q[batch] : problem->seq_q;
}

int32_t fa_problem_seq_kv(const fa_problem *problem, int32_t batch)
{
    return problem->lengths != NULL ? problem->lengths->kv[batch] : problem->seq_kv;
}

fa_row fa_problem_row(const fa_problem *problem, int64_t flat)
{
    const int64_t stored = fa_problem_stored_q(problem), head_row = flat / stored;
    fa_row at = {.batch = (int32_t)(head_row / problem->heads),
                 .head = (int32_t)(head_row % problem->heads),
                 .row = (int32_t)(flat % stored)};
    if (problem->lengths != NULL) {
        const fa_lengths *lengths = problem->lengths;
        at.batch = fa_lengths_sequence(lengths->q_start, lengths->count, at.row);
        at.row -= lengths->q_start[at.batch];
    }
    at.seq_q = fa_problem_seq_q(problem, at.batch);
    at.seq_kv = fa_problem_seq_kv(problem, at.batch);
    at.used = at.row < at.seq_q;
    return at;
}

int64_t fa_problem_flat(const fa_problem *problem, int32_t batch, int32_t head, int32_t row)
{
    const int64_t stored = fa_problem_stored_q(problem);
    if (problem->lengths != NULL)
        return head * stored + problem->lengths->q_start[batch] + row;
    return ((int64_t)batch * problem->heads + head) * stored + row;
}

int64_t fa_problem_key_row(const fa_problem *problem, int32_t batch, int32_t kv_head, int32_t key)
{
    const int64_t stored = fa_problem_stored_kv(problem), kv_heads = problem->kv_heads;
    const fa_pages *pages = problem->pages;
    if (pages != NULL)
        return (pages->table[pages->start[batch] + key / pages->size] * kv_heads + kv_head) * stored +
               key % pages->size;
    if (problem->lengths != NULL)
        return kv_head * stored + problem->lengths->kv_start[batch] + key;
    return (batch * kv_heads + kv_head) * stored + key;
}

fa_row fa_problem_key_at(const fa_problem *problem, int64_t flat)
{
    const int64_t stored = fa_problem_stored_kv(problem);
    fa_row at = {.batch = (int32_t)(flat / stored / problem->kv_heads),
                 .head = (int32_t)(flat / stored % problem->kv_heads),
                 .row = (int32_t)(flat % stored)};
    if (problem->pages != NULL) {
        const int32_t entry = problem->pages->owner[at.batch];
        if (entry < 0)
            return at;
        at.batch = fa_pages_sequence(problem->pages, entry);
        at.row += (entry - problem->pages->start[at.batch]) * problem->pages->size;
    } else if (problem->lengths != NULL) {
        const fa_lengths *lengths = problem->lengths;
        at.batch = fa_lengths_sequence(lengths->kv_start, lengths->count, at.row);
        at.row -= lengths->kv_start[at.batch];
    }
    at.seq_q = fa_problem_seq_q(problem, at.batch);
    at.seq_kv = fa_problem_seq_kv(problem, at.batch);
    at.used = at.row < at.seq_kv;
    return at;
}

static int64_t largest(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

fa_keys fa_problem_keys_at(const fa_problem *p, int64_t pos, int32_t seq_kv)
{
    int64_t first = 0, end = p->causal || p->tree ? least(seq_kv, pos + 1) : seq_kv;
    if (p->windowed && p->window_left >= 0)
        first = largest(first, pos - p->window_left);
    if (p->windowed && p->window_right >= 0)
        end = least(end, pos + p->window_right + 1);
    if (p->chunk > 0) {
        const int64_t begin = pos - ((pos % p->chunk) + p->chunk) % p->chunk; /* pos may be negative: round down */
        first = largest(first, begin);
        end = least(end, begin + p->chunk);
    }
    return end > first ? (fa_keys){(int32_t)first, (int32_t)end} : (fa_keys){0, 0};
}

fa_keys fa_problem_keys(const fa_problem *problem, int32_t batch, int32_t row)
{
    const int32_t seq_kv = fa_problem_seq_kv(problem, batch);
    return fa_problem_keys_at(problem, (int64_t)row + seq_kv - fa_problem_seq_q(problem, batch), seq_kv);
}

/* The row above `row` in the tree of a sequence; -1: what came before the tree. */
static int32_t parent_of(int32_t batch, int32_t row)
{
    const uint64_t random = fa_random_mix(((uint64_t)batch << 32 | (uint32_t)row) + FA_RANDOM_STEP);
    const int32_t parent = row - 1 - (int32_t)(random % TREE_REACH);
    return parent < -1 ? -1 : parent;
}

bool fa_problem_sees(const fa_problem *problem, int32_t batch, int32_t row, int32_t key)
{
    const int32_t before = fa_problem_seq_kv(problem, batch) - fa_problem_seq_q(problem, batch);
    if (!problem->tree || key < before)
        return true;
    int32_t node = row;
    while (node > key - before)
        node = parent_of(batch, node);
    return node == key - before;
}

int32_t fa_problem_some_key(const fa_problem *problem, int32_t batch, int32_t row, uint64_t random)
{
    const fa_keys keys = fa_problem_keys(problem, batch, row);
    if (keys.first == keys.end)
        return -1;
    const int32_t count = keys.end - keys.first, key = keys.first + (int32_t)(random % (uint64_t)count);
    for (int32_t i = 0; i < count; i++) {
        const int32_t other = keys.first + (key - keys.first + i) % count;
        if (fa_problem_sees(problem, batch, row, other))
            return other;
    }
    return -1;
}

bool fa_problem_row_is_empty(const fa_problem *problem, int32_t batch, int32_t row)
{
    const fa_keys keys = fa_problem_keys(problem, batch, row);
    return keys.first == keys.end || (problem->tree && fa_problem_some_key(problem, batch, row, 0) < 0);
}

/* Visible pairs of one head of a sequence. */
static int64_t pairs_of(const fa_problem *problem, int32_t batch)
{
    const int64_t seq_q = fa_problem_seq_q(problem, batch), seq_kv = fa_problem_seq_kv(problem, batch);
    int64_t pairs = 0;
    if (!problem->causal && !problem->windowed && !problem->tree && problem->chunk == 0)
        return seq_q * seq_kv;
    for (int32_t row = 0; row < seq_q; row++) {
        const fa_keys keys = fa_problem_keys(problem, batch, row);
        const int32_t before = (int32_t)(seq_kv - seq_q);
        if (!problem->tree) {
            pairs += keys.end - keys.first;
            continue;
        }
        pairs += largest(0, least(keys.end, before) - keys.first);
        for (int32_t node = row; node >= 0; node = parent_of(batch, node))
            pairs += node + before >= keys.first && node + before < keys.end;
    }
    return pairs;
}

int64_t fa_problem_pairs(const fa_problem *problem)
{
    int64_t pairs = 0;
    if (problem->lengths == NULL && !problem->tree)
        return pairs_of(problem, 0) * problem->heads * problem->batch;
    for (int32_t batch = 0; batch < problem->batch; batch++)
        pairs += pairs_of(problem, batch);
    return pairs * problem->heads;
}

double fa_problem_flop(const fa_problem *problem)
{
    const double products = problem->backward ? 2.5 : 1.0; /* five in place of two */
    return products * 2.0 * (problem->dim + fa_problem_dim_v(problem)) * (double)fa_problem_pairs(problem);
}

double fa_problem_bytes(const fa_problem *problem)
{
    double q_rows = 0, kv_rows_used = 0;
    const int q_bytes = fa_dtype_bytes(problem->dtype), kv_bytes = fa_dtype_bytes(fa_problem_dtype_kv(problem));
    for (int32_t batch = 0; batch < problem->batch; batch++) {
        q_rows += fa_problem_seq_q(problem, batch);
        kv_rows_used += fa_problem_seq_kv(problem, batch);
    }
    const double dim_v = fa_problem_dim_v(problem), kv_dims = problem->dim + (problem->v_in_k ? 0.0 : dim_v);
    if (problem->backward) /* Q, O, dO and dQ; K, V, dK and dV; the log-sum-exp */
        return 2.0 * (q_rows * problem->heads * (2.0 * (problem->dim + dim_v) + 2.0) +
                      kv_rows_used * problem->kv_heads * 2.0 * kv_dims);
    return q_rows * problem->heads * (q_bytes * problem->dim + 2.0 * dim_v) +
           kv_rows_used * problem->kv_heads * kv_bytes * kv_dims;
}
