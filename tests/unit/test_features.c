/* Features beyond dense forward: what a row sees, how lengths lie, and FP64 attention by a loop of its own. */
#include "check/draw.h"
#include "check/reference.h"
#include "input/needs.h"
#include "unit.h"

#include <math.h>

static fa_reason why;

/* From the words of DESIGN.md section 13, one pair at a time. */
static bool sees(const fa_problem *p, int32_t batch, int64_t i, int64_t j)
{
    const int64_t pos = i + fa_problem_seq_kv(p, batch) - fa_problem_seq_q(p, batch);
    if (p->causal && j > pos)
        return false;
    if (p->windowed &&
        ((p->window_left >= 0 && j < pos - p->window_left) || (p->window_right >= 0 && j > pos + p->window_right)))
        return false;
    if (p->chunk > 0 && (int64_t)floor((double)j / p->chunk) != (int64_t)floor((double)pos / p->chunk))
        return false;
    return !p->tree || (j <= pos && fa_problem_sees(p, batch, (int32_t)i, (int32_t)j));
}

static const char *const lines[] = {"--seq 37 --seq-kv 65",
                                    "--seq 40 --seq-kv 129 --causal",
                                    "--seq 90 --seq-kv 33 --causal",
                                    "--seq 1 --seq-kv 300 --causal",
                                    "--seq 9 --seq-kv 5 --window 3,1",
                                    "--seq 5 --seq-kv 30 --window 0,0 --causal",
                                    "--seq 20 --window 100,100",
                                    "--seq 20 --seq-kv 7 --window -1,2",
                                    "--seq 20 --seq-kv 33 --window 4,-1",
                                    "--seq 20 --window 4,9 --causal",
                                    "--seq 40 --seq-kv 9 --chunk 4",
                                    "--seq 9 --seq-kv 40 --chunk 7 --causal",
                                    "--seq 30 --chunk 7 --window 4,2",
                                    "--seq 16 --seq-kv 50 --mask tree",
                                    "--seq 16 --seq-kv 5 --mask tree --window 3,0",
                                    "--lengths 17,0,3:40,40:3,5:0,0:5,1 --causal --window 9,0",
                                    "--lengths 17,0,3:40,40:3,5:0,1 --mask tree",
                                    "--lengths 3:40,7:0,5:9 --page-size 4 --causal",
                                    "--seq 5 --seq-kv 33 --page-size 16 --page-layout hnd --window 9,0",
                                    "--seq 2 --seq-kv 9 --page-size 1",
                                    "--lengths draw --batch 11 --seq 30 --seq-kv 50 --chunk 8 --strides padded"};

TEST(keys_and_pairs_match_a_count)
{
    for (size_t l = 0; l < sizeof lines / sizeof *lines; l++) {
        CLEANUP(fa_problem_free) fa_problem p = problem_of(lines[l]);
        int64_t pairs = 0;
        for (int32_t b = 0; b < p.batch; b++)
            for (int32_t i = 0; i < fa_problem_seq_q(&p, b); i++) {
                const fa_keys keys = fa_problem_keys(&p, b, i);
                int64_t seen = 0;
                for (int32_t j = 0; j < fa_problem_seq_kv(&p, b); j++) {
                    const bool within = j >= keys.first && j < keys.end && fa_problem_sees(&p, b, i, j);
                    if (within != sees(&p, b, i, j))
                        fail_msg("%s: sequence %d row %d key %d", lines[l], b, i, j);
                    seen += within;
                }
                pairs += seen;
                assert_int_equal(fa_problem_row_is_empty(&p, b, i), seen == 0);
                const int32_t some = fa_problem_some_key(&p, b, i, 12345);
                assert_true(seen == 0 ? some == -1 : sees(&p, b, i, some));
            }
        if (fa_problem_pairs(&p) != pairs * p.heads)
            fail_msg("%s: %lld pairs, counted %lld", lines[l], (long long)fa_problem_pairs(&p),
                     (long long)(pairs * p.heads));
    }
}

/* A tree: a row sees itself and what its parent sees, one parent among the few rows before it. */
TEST(a_tree_is_a_tree)
{
    fa_problem p = problem_of("--seq 40 --seq-kv 50 --mask tree --batch 3");
    bool branches = false, differ = false;
    for (int32_t b = 0; b < p.batch; b++)
        for (int32_t i = 0; i < 40; i++) {
            int32_t parent = i - 1;
            differ |= i > 0 && fa_problem_sees(&p, b, i, i + 9) != fa_problem_sees(&p, 0, i, i + 9);
            assert_true(fa_problem_sees(&p, b, i, i + 10));
            while (parent >= 0 && !fa_problem_sees(&p, b, i, parent + 10))
                parent--;
            branches |= parent != i - 1;
            for (int32_t j = 0; j < 10 + i; j++)
                assert_int_equal(fa_problem_sees(&p, b, i, j),
                                 j < 10 || (parent >= 0 && fa_problem_sees(&p, b, parent, j)));
        }
    assert_true(branches && differ);
}

TEST(rows_are_found_and_found_again)
{
    CLEANUP(fa_problem_free) fa_problem p = problem_of("--lengths 3,0,5:2,1 --heads 2 --strides padded");
    int64_t used = 0;
    for (int64_t flat = 0; flat < fa_problem_rows(&p); flat++) {
        const fa_row at = fa_problem_row(&p, flat);
        assert_int_equal(fa_problem_flat(&p, at.batch, at.head, at.row), flat);
        assert_int_equal(at.seq_q, p.lengths->q[at.batch]);
        used += at.used;
    }
    assert_int_equal(used, 2 * 9);
    assert_true(fa_problem_rows(&p) > used);
    const fa_problem dense = problem_of("--batch 3 --heads 2 --seq 4");
    for (int64_t flat = 0; flat < 3 * 2 * 4; flat++) {
        const fa_row at = fa_problem_row(&dense, flat);
        assert_int_equal(fa_problem_flat(&dense, at.batch, at.head, at.row), flat);
    }
}

/* Every key has a page of its own, in no order, and free pages lie between; a draw shares some. */
TEST(pages_hold_every_key_once)
{
    fa_problem p = problem_of("--lengths 3:40,7:0,5:33,1:4 --page-size 4 --kv-heads 2 --heads 4");
    int ascending = 0, held = 0;
    for (int32_t b = 0; b < p.batch; b++)
        for (int32_t j = 0; j < p.lengths->kv[b]; j++)
            for (int32_t h = 0; h < 2; h++) {
                const fa_row at = fa_problem_key_at(&p, fa_problem_key_row(&p, b, h, j));
                assert_true(at.used && at.batch == b && at.head == h && at.row == j);
            }
    for (int64_t flat = 0; flat < (int64_t)p.pages->count * 2 * 4; flat++)
        held += fa_problem_key_at(&p, flat).used;
    assert_int_equal(held, 2 * (40 + 33 + 4));
    assert_int_equal(p.pages->start[4], 10 + 9 + 1);
    assert_true(p.pages->count >= 3 * 20);
    for (int32_t entry = 1; entry < 20; entry++)
        ascending += p.pages->table[entry] == p.pages->table[entry - 1] + 1;
    assert_true(ascending < 5);
    const fa_draw draw = {.lengths = 1, .seed = 5};
    fa_problem two = problem_of("--seq-kv 40 --page-size 8 --batch 2"), drawn = fa_draw_problem(&draw, &two);
    assert_int_equal(drawn.pages->table[0], drawn.pages->table[drawn.pages->start[1]]);
    assert_int_equal(drawn.pages->count, two.pages->count);
    fa_draw_problem_free(&two, &drawn);
    fa_problem_free(&two);
    fa_problem_free(&p);
}

TEST(draws_have_every_kind_of_length)
{
    for (int seed = 0; seed < 20; seed++) {
        char line[80];
        snprintf(line, sizeof line, "--lengths draw --batch 8 --seq 100 --seq-kv 70 --seed %d", seed);
        CLEANUP(fa_problem_free) fa_problem p = problem_of(line);
        int zero = 0, one = 0, most = 0;
        for (int32_t b = 0; b < 8; b++) {
            zero += p.lengths->q[b] == 0;
            one += p.lengths->q[b] == 1;
            most += p.lengths->q[b] == 100;
            assert_in_range(p.lengths->kv[b], 0, 70);
        }
        assert_true(zero >= 1 && one >= 1 && most >= 1);
        for (int32_t variant = 1; variant <= 2; variant++) {
            fa_lengths other;
            fa_lengths_vary(p.lengths, variant, &other);
            assert_int_equal(other.q_start[8], p.lengths->q_start[8]);
            assert_int_equal(other.kv_start[8], p.lengths->kv_start[8]);
            assert_true(memcmp(other.q, p.lengths->q, 8 * sizeof *other.q) != 0);
            const fa_draw draw = fa_draw_of(&(fa_options){.seeds = 4}, &p, variant);
            fa_problem drawn = fa_draw_problem(&draw, &p);
            assert_memory_equal(drawn.lengths->q, other.q, 8 * sizeof *other.q);
            assert_int_equal(drawn.seq_kv, fa_lengths_largest(other.kv, 8));
            fa_draw_problem_free(&p, &drawn);
            for (int32_t b = 0; b < 8; b++)
                assert_true(other.q_start[b] + other.q[b] <= other.q_start[b + 1] &&
                            other.kv_start[b] + other.kv[b] <= other.kv_start[b + 1]);
        }
    }
}

/* What lies between sequences is poison, in Q, K and V; rows of a sequence are numbers. */
TEST(gaps_are_poisoned)
{
    static const char *const given[] = {"--lengths 3:4,0:2,2:5", "--lengths 3:4,2:5 --page-size 4",
                                        "--seq 3 --seq-kv 5 --page-size 4", "--seq 3 --seq-kv 5"};
    for (size_t l = 0; l < sizeof given / sizeof *given; l++) {
        char line[100];
        snprintf(line, sizeof line, "--batch 2 --heads 2 --dim 16 %s", given[l]);
        CLEANUP(fa_problem_free) fa_problem p = problem_of(line);
        CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_NORMAL, 3);
        const uint16_t *const of[3] = {t.q, t.k, t.v};
        const size_t rows[3] = {t.q_count / 16, t.k_count / 16, t.k_count / 16};
        for (int tensor = 0; tensor < 3; tensor++)
            for (size_t i = 0; i < rows[tensor]; i++) {
                const bool used =
                    tensor == 0 ? fa_problem_row(&p, (int64_t)i).used : fa_problem_key_at(&p, (int64_t)i).used;
                for (int d = 0; d < 16; d++)
                    assert_int_equal(of[tensor][i * 16 + (size_t)d] == FA_POISON, !used);
            }
    }
}

/* Other lengths in the same pages, laid out as asked and in another order. */
TEST(draws_keep_the_size_of_pages)
{
    static const char *const layouts[] = {"nhd", "hnd"};
    for (int hnd = 0; hnd < 2; hnd++) {
        char line[100];
        snprintf(line, sizeof line, "--lengths 3:40,2:50 --page-size 4 --page-layout %s", layouts[hnd]);
        CLEANUP(fa_problem_free) fa_problem p = problem_of(line);
        const fa_draw draw = {.seed = 5, .lengths = 2}, first = {.seed = 5, .lengths = 1}, asked = {.seed = 5};
        const fa_problem same = fa_draw_problem(&asked, &p);
        assert_true(same.lengths == p.lengths && same.pages == p.pages);
        fa_problem drawn = fa_draw_problem(&first, &p);
        assert_true(drawn.lengths != p.lengths && drawn.pages != p.pages);
        fa_draw_problem_free(&p, &drawn);
        drawn = fa_draw_problem(&draw, &p);
        assert_true(drawn.pages->size == 4 && drawn.pages->nhd == !hnd && drawn.pages->count == p.pages->count);
        assert_true(memcmp(drawn.pages->table, p.pages->table, 8 * sizeof *p.pages->table) != 0);
        assert_true(drawn.lengths->kv[0] == 50 || drawn.lengths->kv[1] == 40 || drawn.lengths->q[0] == 2);
        fa_draw_problem_free(&p, &drawn);
    }
}

/* An element of Q ('q'), K or V times its descale, or of a bias. */
static long double element(const fa_problem *p, const fa_tensors *t, char of, const fa_row *at, uint16_t bits)
{
    const float *all = of == 'q' ? t->scores.q_descale : of == 'k' ? t->scores.k_descale : t->scores.v_descale;
    const bool fp8 = of != 'b' && (p->dtype == FA_DTYPE_E4M3 || (of != 'q' && p->fp8_kv));
    const int32_t heads = of == 'q' ? p->heads : p->kv_heads, head = of == 'q' ? at->head : at->head * heads / p->heads;
    const fa_dtype wide = p->dtype == FA_DTYPE_FP16 ? FA_DTYPE_FP16 : FA_DTYPE_BF16;
    return (long double)fa_element_to_float(fp8 ? FA_DTYPE_E4M3 : wide, bits) *
           (fp8 ? (long double)all[at->batch * heads + head] : 1.0L);
}

/* O and the log-sum-exp of a row in long double. */
static long double plain_row(const fa_problem *p, const fa_tensors *t, const fa_row *at, int64_t flat, long double *o)
{
    const int32_t dim_v = fa_problem_dim_v(p), kv_head = at->head / (p->heads / p->kv_heads);
    long double sum = p->sinks ? expl((long double)t->scores.sinks[at->head]) : 0;
    memset(o, 0, (size_t)dim_v * sizeof *o);
    for (int32_t j = 0; j < at->seq_kv; j++) {
        long double s = 0;
        if (!sees(p, at->batch, at->row, j))
            continue;
        for (int32_t d = 0; d < p->dim; d++)
            s += element(p, t, 'q', at, t->q[flat * p->dim + d]) *
                 element(p, t, 'k', at, t->k[fa_problem_key_row(p, at->batch, kv_head, j) * p->dim + d]);
        s *= (long double)p->scale;
        s = p->softcap > 0 ? (long double)p->softcap * tanhl(s / (long double)p->softcap) : s;
        s += p->bias ? element(p, t, 'b', at, fa_score_tensors_bias(&t->scores, p, at, j)) : 0;
        if (p->alibi)
            s -= (long double)fa_slope(&t->scores, p, at->batch, at->head) *
                 fabsl((long double)at->row + at->seq_kv - at->seq_q - j);
        const long double weight = expl(s);
        sum += weight;
        for (int32_t d = 0; d < dim_v; d++)
            o[d] += weight * element(p, t, 'v', at, t->v[fa_problem_key_row(p, at->batch, kv_head, j) * dim_v + d]);
    }
    bool empty = true;
    for (int32_t j = 0; j < at->seq_kv; j++)
        empty = empty && !sees(p, at->batch, at->row, j);
    for (int32_t d = 0; d < dim_v; d++)
        o[d] = empty ? 0 : o[d] / sum;
    return logl(sum);
}

TEST(the_reference_is_attention)
{
    static const char *const more[] = {"",
                                       " --softcap 2",
                                       " --sinks",
                                       " --alibi",
                                       " --bias",
                                       " --dim-v 24",
                                       " --softcap 3 --sinks --alibi --bias --dtype bf16 --dim-v 40",
                                       " --dtype e4m3 --bias --dim-v 48",
                                       " --kv-dtype e4m3 --sinks"};
    for (size_t l = 0; l < sizeof lines / sizeof *lines; l++)
        for (size_t m = 0; m < sizeof more / sizeof *more; m++) {
            char line[300];
            snprintf(line, sizeof line, "--batch 2 --heads 4 --kv-heads 2 --dim 32 %s%s", lines[l], more[m]);
            CLEANUP(fa_problem_free) fa_problem p = problem_of(line);
            CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, (fa_dist)m, 3 + m);
            CLEANUP(fa_reference_free) fa_reference r = fa_reference_make(&p, &t, 16, false, 3);
            for (int64_t i = 0; i < r.row_count; i++) {
                long double want[512];
                const fa_row at = fa_problem_row(&p, r.rows[i]);
                const long double lse = plain_row(&p, &t, &at, r.rows[i], want);
                const int32_t dim_v = fa_problem_dim_v(&p);
                assert_true(at.used);
                if (!(fabsl(lse - (long double)r.lse[i]) <= 1e-12L || lse == (long double)r.lse[i]))
                    fail_msg("%s: row %lld: log-sum-exp %.17g", line, (long long)r.rows[i], r.lse[i]);
                for (int32_t d = 0; d < dim_v; d++)
                    if (!(fabsl((long double)r.exact[i * dim_v + d] - want[d]) <=
                          (want[d] == 0 ? 0 : 1e-12L * (1 + fabsl(want[d])))))
                        fail_msg("%s: row %lld col %d: %.17g, expected %.17Lg", line, (long long)r.rows[i], d,
                                 r.exact[i * dim_v + d], want[d]);
            }
        }
}

/* Slopes of the paper for 8 heads, and of the authors' code for 12. */
TEST(slopes_are_those_of_the_paper)
{
    const fa_problem eight = problem_of("--heads 8 --alibi"), twelve = problem_of("--heads 12 --alibi");
    CLEANUP(fa_score_tensors_free) fa_score_tensors t = fa_score_tensors_make(&eight, 1);
    for (int h = 0; h < 8; h++)
        assert_true(t.slopes[h] == ldexpf(1, -1 - h) && t.slopes[8 + h] == ldexpf(1, -2 - h) && !t.one_row_of_slopes);
    CLEANUP(fa_score_tensors_free) fa_score_tensors more = fa_score_tensors_make(&twelve, 1);
    assert_true(more.slopes[7] == ldexpf(1, -8));
    for (int h = 8; h < 12; h++)
        assert_true(fabs((double)more.slopes[h] - exp2(-0.5 - (h - 8))) < 1e-7);
}

TEST(needs_are_read_and_checked)
{
    static const struct {
        const char *needs, *line, *says; /* NULL: it serves it */
    } cases[] = {{"packed", "", NULL},
                 {"packed", "--strides bshd", "packed tensors: not --strides bshd"},
                 {"mha", "--kv-heads 2", "not 2 for 8"},
                 {"self", "--seq-kv 100", "not 100 and 512"},
                 {"self", "--lengths 5,7:8", "not 8 and 7"},
                 {"aligned", "--strides padded", NULL},
                 {"aligned", "--strides odd", "not --strides odd"},
                 {"aligned", "--misalign 3", "not --misalign"},
                 {"whole_m, whole_n", "--seq 128", NULL},
                 {"whole_m", "--seq 130", "multiples of m (64): not 130"},
                 {"whole_n", "--lengths 64:32,64:33", "multiples of n (32): not 33"}};
    const fa_knobs knobs = {.m = 64, .n = 32};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fa_options options;
        fa_problem problem;
        int32_t needs = 0;
        assert_int_equal(fa_needs_read(cases[i].needs, &needs, &why), FA_PASS);
        assert_int_equal(parse_words(cases[i].line, &options, &why), FA_PASS);
        assert_int_equal(fa_problem_make(&options, &problem, &why), FA_PASS);
        const fa_status status = fa_needs_check(needs, "mine", &options, &problem, &knobs, &why);
        if (status != (cases[i].says == NULL ? FA_PASS : FA_INFEASIBLE) ||
            (cases[i].says != NULL && strstr(why.text, cases[i].says) == NULL))
            fail_msg("%s, %s: %s", cases[i].needs, cases[i].line, why.text);
        fa_problem_free(&problem);
    }
    int32_t needs = 0;
    ends_with(fa_needs_read("packed heaps", &needs, &why), FA_USAGE, &why, "not 'heaps'");
}

/* Each option asks for one feature; what changes nothing asks for none. */
TEST(options_ask_for_features)
{
    static const struct {
        const char *line;
        int32_t features;
    } cases[] = {{"--causal", 0},
                 {"--window -1,-1", 0},
                 {"--window -1,3 --causal", 0},
                 {"--window -1,3", FA_FEATURE_WINDOW},
                 {"--window 0,-1", FA_FEATURE_WINDOW},
                 {"--chunk 5 --causal", FA_FEATURE_CHUNK},
                 {"--softcap 5", FA_FEATURE_SOFTCAP},
                 {"--sinks", FA_FEATURE_SINK},
                 {"--alibi", FA_FEATURE_ALIBI},
                 {"--bias", FA_FEATURE_BIAS},
                 {"--mask tree --seq 8", FA_FEATURE_MASK},
                 {"--dim-v 32", FA_FEATURE_DIM_V},
                 {"--dim-v 64", 0},
                 {"--lengths 3:8,0:5", FA_FEATURE_VARLEN},
                 {"--page-size 16", FA_FEATURE_PAGED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEANUP(fa_problem_free) fa_problem p = problem_of(cases[i].line);
        if (fa_problem_features(&p) != cases[i].features)
            fail_msg("%s asks for %#x", cases[i].line, (unsigned)fa_problem_features(&p));
    }
}

TEST(features_are_said_as_options)
{
    char text[FA_FEATURES_TEXT];
    assert_string_equal(fa_features_text(0, text), "");
    assert_string_equal(fa_features_text(FA_FEATURE_WINDOW, text), "--window");
    assert_string_equal(fa_features_text(FA_FEATURE_DIM_V | FA_FEATURE_VARLEN | FA_FEATURE_BACKWARD, text),
                        "--lengths, --dim-v, --op backward");
    CLEANUP(fa_problem_free) fa_problem p = problem_of("--seq 2 --seq-kv 9 --page-size 1");
    assert_true(p.pages != NULL && p.pages->size == 1);
}

TEST(limits_are_where_they_are_said_to_be)
{
    static const char *const taken[] = {"--window 1048576,1048576",      "--window -1,-1", "--mask tree --seq 4096",
                                        "--op backward --deterministic", "--lse --bias",   "--softcap 1e-6"};
    static const char *const refused[] = {"--window 1048577,0",     "--window 0,1048577",
                                          "--window -2,0",          "--window 0,-2",
                                          "--mask tree --seq 4097", "--page-layout hnd",
                                          "--deterministic",        "--op backward --lse",
                                          "--op backward --bias",   "--op backward --page-size 16",
                                          "--op backward --atol 1", "--op backward --dtype e4m3",
                                          "--softcap 9e-7",         "--dtype e4m3 --dim-v 24"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        CLEANUP(fa_problem_free) fa_problem p = problem_of(taken[i]);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        fa_options options;
        fa_problem problem;
        assert_int_equal(parse_words(refused[i], &options, &why), FA_PASS);
        if (fa_problem_make(&options, &problem, &why) != FA_USAGE)
            fail_msg("%s is taken", refused[i]);
    }
}
