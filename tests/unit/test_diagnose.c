/* Made-up outputs and what the judge says of them, word for word; where each rule begins to fail; what a seed draws.
 * The expected values are made up too, so that nothing here hangs on a mathematical library. */
#include "check/diagnose.h"
#include "check/draw.h"
#include "check/lse.h"
#include "check/rules.h"
#include "input/layout.h"
#include "unit.h"

#include <math.h>

static double noise(uint64_t i) /* -1 to 1 */
{
    i = (i + 1) * 0x9E3779B97F4A7C15u;
    i = (i ^ (i >> 31)) * 0xD6E8FEB86659FD93u;
    return (double)(int64_t)(i ^ (i >> 32)) / 9223372036854775808.0;
}

/* An expected result, an output that equals it, and room to spoil either. */
typedef struct scene {
    fa_problem problem;
    int32_t tile_m;
    fa_reference reference;
    uint16_t *output;
    size_t count; /* elements of the output */
} scene;

/* Every `step`th row is expected; the baseline is off by up to `error` times the value's size. `own`: how much of a row
 * is its own, and not common to all rows. */
static scene open_scene(fa_problem problem, int32_t tile_m, int64_t step, double size, double error, double own)
{
    scene s = {.problem = problem, .tile_m = tile_m, .count = fa_problem_q_count(&problem)};
    const int64_t rows = (int64_t)s.count / problem.dim;
    s.output = fa_alloc(s.count * sizeof *s.output);
    for (size_t i = 0; i < s.count; i++)
        s.output[i] =
            fa_float_to_half((float)(size * (own * noise(i) + (1.0 - own) * noise(i % (size_t)problem.dim + 31))));
    fa_reference *r = &s.reference;
    r->unit = 1.0;
    r->row_count = (rows + step - 1) / step;
    const size_t count = (size_t)r->row_count * (size_t)problem.dim;
    r->rows = fa_alloc((size_t)r->row_count * sizeof *r->rows);
    r->exact = fa_alloc(count * sizeof *r->exact);
    r->baseline = fa_alloc(count * sizeof *r->baseline);
    r->sway = fa_alloc((size_t)r->row_count * sizeof *r->sway);
    r->lse = fa_alloc((size_t)r->row_count * sizeof *r->lse);
    r->baseline_lse = fa_alloc((size_t)r->row_count * sizeof *r->baseline_lse);
    for (int64_t i = 0; i < r->row_count; i++) {
        r->rows[i] = i * step;
        for (int32_t d = 0; d < problem.dim; d++) {
            const uint16_t half = s.output[r->rows[i] * problem.dim + d];
            r->exact[i * problem.dim + d] = (double)fa_half_to_float(half);
            const double off = error * size * noise((uint64_t)(i * problem.dim + d) + 7777);
            r->baseline[i * problem.dim + d] = fa_float_to_half((float)((double)fa_half_to_float(half) + off));
        }
    }
    return s;
}

static void close_scene(scene *s)
{
    fa_reference_free(&s->reference);
    free(s->output);
}

enum {
    ALL,
    ONE_ROW,
    TWO_ROWS,
    ONE_HEAD,
    ONE_HEAD_TILE,
    ONE_HEAD_TILES,
    TAIL,
    TILES,
    TWO_HEADS,
    SOME,
    LAST_ROW,
    SUBSETS
};
enum { POISON, ZEROS, NONFINITE, SCALED, SCALED_EACH, MOVED, SWAPPED, ALIKE, COLUMNS, COLUMN, NEARLY, NOISE, FAULTS };
enum { /* what comes close to one of these, on either side */
       TINY = FAULTS,
       ALMOST_ALIKE,
       UNLIKE,
       GRADED,
       GRADED_LESS,
       ALMOST_MOVED,
       MOVED_BUT_ONE,
       ALMOST_SCALED,
       SCALED_NOT_QUITE,
       HALF_POISON,
       WIDE_COLUMNS,
       NOT_QUITE_MOVED,
       CLOSE_ONES
};

static bool chosen(const scene *s, int subset, int64_t flat)
{
    const int64_t seq = s->problem.seq_q, row = flat % seq, head = flat / seq, tile = row / s->tile_m;
    const bool is[SUBSETS] = {[ALL] = true,
                              [ONE_ROW] = flat == seq,
                              [TWO_ROWS] = flat == 0 || flat == 3,
                              [ONE_HEAD] = head == 1,
                              [ONE_HEAD_TILE] = head == 0 && tile == 1,
                              [ONE_HEAD_TILES] = head == 0 && tile <= 1 && row % 2 == 0,
                              [TAIL] = tile == (seq - 1) / s->tile_m,
                              [TILES] = tile == 1,
                              [TWO_HEADS] = head < 2,
                              [SOME] = flat % 5 == 0,
                              [LAST_ROW] = row == seq - 1};
    return is[subset];
}

static uint16_t times(uint16_t half, double factor)
{
    return fa_float_to_half((float)(factor * (double)fa_half_to_float(half)));
}

/* With noise of some size. */
static uint16_t blurred(uint16_t half, float factor, float size, int64_t at)
{
    return fa_float_to_half(factor * fa_half_to_float(half) + size * (float)noise((uint64_t)at));
}

static uint16_t spoiled(const scene *s, const uint16_t *right, int fault, int64_t flat, int32_t d)
{
    const int64_t dim = s->problem.dim, rows = (int64_t)s->count / dim, at = flat * dim + d;
    const uint16_t own = right[at], moved = right[(flat + 3) % rows * dim + d];
    const uint16_t any = fa_float_to_half((float)noise((uint64_t)at + 99)), minus = times(own, -1.0);
    /* of GRADED: in columns 4 to 6, and less than a tenth of that in the others */
    const float graded = d >= 9 ? 0.0f : d >= 4 && d <= 6 ? 1.0f : fault == GRADED ? 0.07f : 0.13f;
    const uint16_t is[CLOSE_ONES] = {[POISON] = 0xFFFF,
                                     [ZEROS] = d % 2 ? 0x8000 : 0,
                                     [NONFINITE] = d % 2 ? 0x7C00 : 0xFE00,
                                     [SCALED] = times(own, 1.25),
                                     [SCALED_EACH] = times(own, 1.25 + 0.25 * (double)(flat % 4)),
                                     [MOVED] = moved,
                                     [SWAPPED] = right[(flat + s->problem.seq_q) % rows * dim + d],
                                     [ALIKE] = right[d],
                                     [COLUMNS] = d >= 2 && d <= 9 ? minus : own,
                                     [COLUMN] = d == dim - 1 ? fa_float_to_half(0.75f) : own,
                                     [NEARLY] = times(own, 1.01),
                                     [NOISE] = any,
                                     [TINY] = d % 2 ? 0x8001 : 1,
                                     [ALMOST_ALIKE] = blurred(right[d], 1.0f, 0.004f, at),
                                     [UNLIKE] = blurred(right[d], 1.0f, 0.02f, at),
                                     [GRADED] = fa_float_to_half(fa_half_to_float(own) + graded),
                                     [GRADED_LESS] = fa_float_to_half(fa_half_to_float(own) + graded),
                                     [ALMOST_MOVED] = blurred(moved, 1.0f, 0.08f, at),
                                     [MOVED_BUT_ONE] = flat % 8 == 7 ? any : moved,
                                     [ALMOST_SCALED] = blurred(own, 1.5f, 0.08f, at),
                                     [SCALED_NOT_QUITE] = blurred(own, 1.5f, 0.12f, at),
                                     [HALF_POISON] = d == dim - 1 ? own : 0xFFFF,
                                     [WIDE_COLUMNS] = d < dim * 3 / 4 + (flat % 2 == 0) ? minus : own,
                                     [NOT_QUITE_MOVED] = blurred(moved, 1.0f, 0.17f, at)};
    return fault < CLOSE_ONES ? is[fault] : any;
}

static void say_verdict(golden *g, const fa_verdict *v)
{
    golden_say(
        g, "%s %lld rows %lld mismatches %lld nonfinite, %.5g %.5g %.5g, baseline %.5g %.5g %.5g%s, %d.%d.%d.%d %s\n",
        v->passed ? "pass" : "fail", (long long)v->rows_checked, (long long)v->mismatches, (long long)v->nonfinite,
        v->max_abs_err, v->rmse, v->worst_row_rel_l2, v->baseline_max_abs_err, v->baseline_rmse,
        v->baseline_worst_row_rel_l2, v->baseline_fails ? " fails" : "", v->worst.batch, v->worst.head, v->worst.row,
        v->worst.col, v->failure);
}

/* Against a library that gives the expected values. */
static fa_verdict judge_library(const scene *s, const fa_verdict *exact)
{
    FREED float *other = fa_alloc(s->count * sizeof *other);
    for (int64_t i = 0; i < s->reference.row_count * s->problem.dim; i++)
        other[s->reference.rows[i / s->problem.dim] * s->problem.dim + i % s->problem.dim] =
            (float)s->reference.exact[i];
    return fa_judge_library(&s->problem, other, s->output, s->tile_m, 1e-3, 1e-3, exact);
}

static void say_library(golden *g, const scene *s, const fa_verdict *exact)
{
    const fa_verdict v = judge_library(s, exact);
    golden_say(g, "    library %s: ", v.name);
    say_verdict(g, &v);
}

static fa_verdict judge(const scene *s)
{
    return fa_judge(&s->problem, &s->reference, s->output, s->tile_m, 1e-3, 1e-3);
}

static void spoil_and_say(golden *g, scene *s, const uint16_t *right, int fault, int subset)
{
    for (size_t i = 0; i < s->count; i++) {
        const int64_t flat = (int64_t)i / s->problem.dim;
        s->output[i] =
            chosen(s, subset, flat) ? spoiled(s, right, fault, flat, (int32_t)(i % (size_t)s->problem.dim)) : right[i];
    }
    const fa_verdict v = judge(s);
    golden_say(g, "%d %d: ", fault, subset);
    say_verdict(g, &v);
    if (subset == SOME)
        say_library(g, s, &v);
}

TEST(faults_are_described)
{
    golden g = {0};
    const struct {
        fa_problem problem;
        int32_t tile_m;
        int64_t step;
    } scenes[] = {{{2, 2, 1, 13, 40, 16, false, 0.25f}, 4, 1}, {{1, 3, 1, 140, 40, 24, true, 0.25f}, 64, 3},
                  {{2, 4, 4, 1, 9, 32, false, 0.25f}, 16, 1},  {{1, 1, 1, 8, 9, 16, false, 0.25f}, 8, 1},
                  {{1, 2, 1, 12, 9, 16, false, 0.25f}, 4, 1},  {{2, 3, 1, 12, 9, 16, false, 0.25f}, 8, 1}};
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        CLEANUP(close_scene) scene s = open_scene(scenes[i].problem, scenes[i].tile_m, scenes[i].step, 1.0, 1e-3, 1.0);
        FREED uint16_t *right = fa_alloc(s.count * sizeof *right);
        memcpy(right, s.output, s.count * sizeof *right);
        for (int rest = 0; rest < 2; rest++) { /* the first scene shows words; what is left of it is a digest, too */
            if (rest)
                golden_say(&g, "scene %zu: ", i);
            const size_t from = g.used;
            for (int fault = FAULTS; fault < CLOSE_ONES && i == 0; fault++)
                for (int subset = 0; subset < SUBSETS; subset += 4)
                    if (rest == (subset > 0))
                        spoil_and_say(&g, &s, right, fault, subset);
            for (int fault = 0; fault < FAULTS; fault++)
                for (int subset = 0; subset < SUBSETS; subset++)
                    if ((i == 0 && (fault + subset) % 6 == 3 * rest) ||
                        (rest && ((i == 4 && subset == TAIL) || (i == 5 && fault == NOISE) ||
                                  (i > 0 && i < 5 && (fault + 5 * subset) % 6 == (int)i))))
                        spoil_and_say(&g, &s, right, fault, subset);
            if (rest)
                golden_fold(&g, from);
        }
    }
    /* rows that are much alike */
    CLEANUP(close_scene) scene s = open_scene(scenes[4].problem, scenes[4].tile_m, 1, 1.0, 1e-3, 0.1);
    FREED uint16_t *right = fa_alloc(s.count * sizeof *right);
    memcpy(right, s.output, s.count * sizeof *right);
    for (int fault = 0; fault < CLOSE_ONES; fault++)
        if (fault == MOVED || fault == ALIKE || fault == ALMOST_MOVED || fault == UNLIKE)
            spoil_and_say(&g, &s, right, fault, TILES);
    golden_compare(&g, "faults.txt");
}

/* "zeros" and the like are said of rows that are so in every column. */
TEST(a_pattern_holds_for_whole_rows)
{
    const struct {
        uint16_t value;
        const char *words;
    } cases[] = {{0, "zeros"}, {0xFFFF, "never written"}, {0x7C00, "NaN or infinity"}};
    CLEANUP(close_scene) scene s = open_scene((fa_problem){1, 1, 1, 8, 9, 16, false, 0.25f}, 8, 1, 1.0, 1e-3, 1.0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int spared = -1; spared < 16; spared++) {
            for (int at = 32; at < 64; at++) /* rows 2 and 3 */
                s.output[at] = at % 16 == spared ? fa_float_to_half((float)s.reference.exact[at]) : cases[i].value;
            const fa_verdict v = judge(&s);
            assert_false(v.passed);
            assert_int_equal(strstr(v.failure, cases[i].words) != NULL, spared < 0);
        }
}

/* Two wrong rows with the same values are alike in one head; those of two heads are not compared. */
TEST(rows_of_one_head_are_alike)
{
    for (int other_head = 0; other_head < 2; other_head++) {
        CLEANUP(close_scene) scene s = open_scene((fa_problem){1, 2, 2, 8, 9, 16, false, 0.25f}, 8, 1, 1.0, 1e-3, 1.0);
        const int rows[] = {2, other_head ? 11 : 5};
        for (int i = 0; i < 2; i++)
            for (int d = 0; d < 16; d++)
                s.output[rows[i] * 16 + d] = fa_float_to_half((float)noise((uint64_t)d + 5555));
        const fa_verdict v = judge(&s);
        assert_int_equal(strstr(v.failure, "are alike") != NULL, !other_head);
    }
}

/* Where the right rows are much alike, wrong ones must be so far more: here they are not. */
TEST(rows_that_should_be_alike_are_not_accused)
{
    CLEANUP(close_scene) scene s = open_scene((fa_problem){1, 1, 1, 8, 9, 16, false, 0.25f}, 8, 1, 1.0, 1e-3, 0.01);
    for (int row = 2; row < 5; row++)
        for (int d = 0; d < 16; d++)
            s.output[row * 16 + d] = fa_float_to_half(
                (float)(0.9 * noise((uint64_t)d + 5555) + 0.002 * noise((uint64_t)(16 * row + d) + 333)));
    const fa_verdict v = judge(&s);
    holds(v.failure, "values follow no simple rule");
}

/* BF16 is eight times as coarse, and so is the slack of its largest error. */
TEST(the_slack_is_that_of_the_type)
{
    for (fa_dtype dtype = FA_DTYPE_FP16; dtype <= FA_DTYPE_BF16; dtype++) {
        CLEANUP(close_scene) scene s = open_scene((fa_problem){1, 1, 1, 8, 9, 16, false, 0.25f}, 8, 1, 1.0, 1e-3, 1.0);
        s.problem.dtype = dtype;
        for (size_t i = 0; i < s.count; i++) {
            s.output[i] = s.reference.baseline[i] = fa_element_of_float(dtype, (float)s.reference.exact[i]);
            s.reference.exact[i] = (double)fa_element_to_float(dtype, s.output[i]);
        }
        s.output[7] = fa_element_of_float(dtype, (float)s.reference.exact[7] + 0.5f);
        const fa_verdict v = fa_judge(&s.problem, &s.reference, s.output, s.tile_m, 10, 10);
        holds(v.failure, dtype == FA_DTYPE_BF16 ? "BF16 baseline's 0 + 8e-05)" : "FP16 baseline's 0 + 1e-05)");
    }
}

/* Row r is off by r steps in every element, up or down: only the mean is too large, and the rows above it are named. */
TEST(rows_above_the_mean_are_marked)
{
    golden g = {0};
    const fa_problem problem = {2, 2, 1, 13, 40, 16, false, 0.25f};
    const double steps[] = {1.5e-5, 2e-5, 3e-5};
    for (int i = 0; i < 7; i++) {
        CLEANUP(close_scene) scene s = open_scene(problem, i % 2 ? 4 : 64, 1, 0.01, 0.02, 1.0);
        for (size_t at = 0; at < s.count; at++) {
            const double row = (double)(at / 16),
                         off = i == 6 ? 1.5e-4 + 0.5e-5 * row : steps[i / 2] * row / (i % 2 ? 1.0 : 3.0);
            s.output[at] = fa_float_to_half((float)(s.reference.exact[at] + (at % 2 ? off : -off)));
        }
        const fa_verdict v = judge(&s);
        say_verdict(&g, &v);
        const fa_verdict exact = {.rows_checked = 52 - i % 2,
                                  .baseline_max_abs_err = 2e-4,
                                  .baseline_rmse = i < 4 ? 3e-5 : 1e-4,
                                  .baseline_fails = i == 5};
        say_library(&g, &s, &exact);
    }
    golden_compare(&g, "marks.txt");
}

enum { ONE_ELEMENT, EVERY_ELEMENT, A_ROW, A_LARGE_ELEMENT, WAYS };

/* The output moves away from the expected values by `by`, in one of the ways. */
static void move(scene *s, int way, double by)
{
    const double *exact = s->reference.exact;
    const int64_t dim = s->problem.dim, count = s->reference.row_count * dim;
    int64_t largest = 0;
    for (int64_t i = 1; i < count; i++)
        largest = fabs(exact[i]) > fabs(exact[largest]) ? i : largest;
    for (int64_t i = 0; i < count; i++) {
        const bool moved = way == EVERY_ELEMENT || (way == A_ROW && i / dim == 1) ||
                           (way == ONE_ELEMENT && i == dim + 1) || (way == A_LARGE_ELEMENT && i == largest);
        s->output[i] = fa_float_to_half((float)(exact[i] + (moved ? i % 2 ? by : -by : 0.0)));
    }
}

static bool passes(const scene *s, bool library)
{
    if (!library)
        return judge(s).passed;
    const int64_t rows = s->reference.row_count - (s->tile_m == 32);
    const fa_verdict exact = {.rows_checked = rows, .baseline_max_abs_err = 2e-4, .baseline_rmse = 3e-5};
    return judge_library(s, &exact).passed;
}

/* How far the output may lie from the expected values: the largest distance that passes. */
static double limit_of(scene *s, int way, bool library)
{
    double low = 0.0, high = 1.0;
    for (int step = 0; step < 30; step++) {
        const double middle = 0.5 * (low + high);
        move(s, way, middle);
        *(passes(s, library) ? &low : &high) = middle;
    }
    return low;
}

TEST(limits_are_where_they_were_set)
{
    golden g = {0};
    const fa_problem few = {1, 2, 2, 9, 40, 16, false, 0.25f}, many = {1, 2, 1, 200, 40, 32, false, 0.25f};
    const double errors[] = {0.0, 1e-6, 2e-4, 8e-3}, sizes[] = {1.0, 0.01, 1e-6};
    for (int i = 0; i < 2; i++)
        for (int size = 0; size < 3; size++)
            for (int error = 0; error < 4; error++)
                for (int way = 0; way < WAYS; way++) {
                    CLEANUP(close_scene)
                    scene s = open_scene(i ? many : few, error == 2 ? 32 : 64, 1, sizes[size], errors[error], 1.0);
                    s.reference.exact[s.problem.dim + 1] = 0.0; /* where FP16 is finest */
                    s.reference.baseline[s.problem.dim + 1] = 0;
                    if (way == 0)
                        golden_say(&g, "%s size %g error %g", i ? "many" : "few", sizes[size], errors[error]);
                    golden_say(&g, "; way %d: cpu %.4g library %.4g%s", way, limit_of(&s, way, false),
                               limit_of(&s, way, true), way == WAYS - 1 ? "\n" : "");
                }
    golden_compare(&g, "limits.txt");
}

static void say_lse(golden *g, const scene *s, const float *lse, bool acc_fp16)
{
    const fa_lse_verdict v = fa_judge_lse(&s->problem, &s->reference, lse, acc_fp16);
    golden_say(g, "%s %lld rows %lld mismatches %lld nonfinite %.4g baseline %.4g, %d.%d.%d %s\n",
               v.passed ? "pass" : "fail", (long long)v.rows_checked, (long long)v.mismatches, (long long)v.nonfinite,
               v.max_abs_err, v.baseline_max_abs_err, v.worst.batch, v.worst.head, v.worst.row, v.failure);
}

TEST(log_sums_are_judged)
{
    golden g = {0};
    for (int64_t step = 1; step <= 3; step += 2) {
        CLEANUP(close_scene)
        scene s = open_scene((fa_problem){2, 3, 1, 9, 5, 16, true, 0.25f}, 8, step, 1.0, 1e-3, 1.0);
        const int64_t rows = (int64_t)s.count / 16;
        FREED float *lse = fa_alloc((size_t)rows * sizeof *lse);
        for (int64_t i = 0; i < rows; i++)
            lse[i] = i % 9 < 4 ? -INFINITY : (float)(8.0 * noise((uint64_t)i));
        for (int64_t i = 0; i < s.reference.row_count; i++) {
            s.reference.lse[i] = (double)lse[s.reference.rows[i]];
            s.reference.baseline_lse[i] = s.reference.lse[i] + 3e-3 * noise((uint64_t)i);
        }
        for (int acc = 0; acc < 2; acc++) {
            golden_say(&g, "a row in %d, FP%d sums: ", (int)step, acc ? 16 : 32);
            const size_t from = g.used;
            say_lse(&g, &s, lse, acc);
            const float wrong[] = {NAN, INFINITY, -INFINITY, 0.0f, -1e30f};
            for (int64_t row = 0; row < rows; row += 2) { /* row 4 of a head is the first that sees a key */
                const float right = lse[row];
                lse[row] = wrong[row / 2 % 5];
                say_lse(&g, &s, lse, acc);
                lse[row] = right + (isfinite(right) ? 0.5f : 0.0f);
                say_lse(&g, &s, lse, acc);
                lse[row] = right;
            }
            golden_fold(&g, from);
            double low = 0.0, high = 0.1;
            const double at = s.reference.lse[2 * 9 / step - 1];
            for (int i = 0; i < 40; i++) {
                s.reference.lse[2 * 9 / step - 1] = at + 0.5 * (low + high);
                *(fa_judge_lse(&s.problem, &s.reference, lse, acc).passed ? &low : &high) = 0.5 * (low + high);
            }
            s.reference.lse[2 * 9 / step - 1] = at;
            golden_say(&g, "limit at %.4g: %.4g\n", at, low);
        }
    }
    golden_compare(&g, "log_sums.txt");
}

TEST(merging_keeps_the_worse_and_adds_up)
{
    golden g = {0};
    for (int i = 0; i < 64; i++) {
        const double errors[] = {0.1, 0.2, NAN, 0.05};
        const double error = errors[i >> 4 & 3];
        fa_verdict a = {.name = "a", .passed = i & 1, .mismatches = 3, .nonfinite = 5, .max_abs_err = error};
        fa_verdict b = {.name = "b", .passed = i & 2, .mismatches = 30, .nonfinite = 50, .max_abs_err = 0.1};
        fa_lse_verdict c = {.failure = "c", .passed = i & 1, .mismatches = 3, .nonfinite = 5, .max_abs_err = error};
        fa_lse_verdict d = {.failure = "d", .passed = i & 2, .mismatches = 30, .nonfinite = 50, .max_abs_err = 0.1};
        a.rows_checked = i & 4 ? 10 : 0, a.baseline_fails = i & 8;
        b.rows_checked = 100, b.baseline_fails = i & 1;
        c.rows_checked = 10, c.done = i & 4;
        d.rows_checked = 100, d.done = !(i & 8);
        fa_verdict_merge(&a, &b);
        fa_lse_verdict_merge(&c, &d);
        golden_say(&g, "%d: %s %s %lld %lld %lld %g %d; %d%s %s %lld %lld %lld %g%s", i, a.name,
                   a.passed ? "pass" : "fail", (long long)a.rows_checked, (long long)a.mismatches,
                   (long long)a.nonfinite, isnan(a.max_abs_err) ? -1.0 : a.max_abs_err, a.baseline_fails, c.done,
                   c.failure, c.passed ? "pass" : "fail", (long long)c.rows_checked, (long long)c.mismatches,
                   (long long)c.nonfinite, isnan(c.max_abs_err) ? -1.0 : c.max_abs_err, i % 4 == 3 ? "\n" : " | ");
    }
    golden_fold(&g, 0);
    golden_compare(&g, "merges.txt");
}

TEST(a_draw_says_its_lengths)
{
    char text[FA_DRAW_TEXT];
    const char *const words[3] = {"seed 3 (uniform, scale x 2, bshd)",
                                  "seed 3 (uniform, scale x 2, bshd, shorter sequences)",
                                  "seed 3 (uniform, scale x 2, bshd, lengths in reverse order)"};
    for (int32_t lengths = 0; lengths < 5; lengths++) {
        const fa_draw draw = {
            .seed = 3, .dist = FA_DIST_UNIFORM, .strides = FA_STRIDES_BSHD, .factor = 2.0f, .lengths = lengths};
        fa_draw_describe(&draw, text);
        assert_string_equal(text, words[lengths == 0 ? 0 : 2 - lengths % 2]);
    }
}

/* Neither a larger scale nor another V, which right gradients of FP16 do not survive. */
TEST(draws_of_gradients)
{
    const fa_options options = {.seed = 7, .seeds = 9, .dist = FA_DIST_NORMAL};
    const fa_problem p = {1, 2, 2, 5, 9, 32, false, 0.2f, .backward = true};
    for (int32_t index = 0; index < 9; index++) {
        const fa_draw draw = fa_draw_of(&options, &p, index);
        const bool asked = index == 0 || index == 8;
        assert_int_equal(draw.as_asked, asked);
        assert_true(draw.v_power == 0 && draw.lengths == 0 && draw.factor <= 3.0f);
        assert_int_equal(draw.flat, !asked && index % 3 == 0);
        if (asked || index % 3 == 0)
            continue;
        assert_int_equal(draw.dist, index % 3 == 1 ? FA_DIST_SHARP : FA_DIST_LOW);
        assert_int_equal(draw.strides, index % 3 == 1 ? FA_STRIDES_PADDED : FA_STRIDES_BSHD);
        assert_true(draw.factor == 1.0f);
    }
}

/* Q comes from a seed of its own, except where it is made for the keys. */
TEST(queries_of_a_draw_are_of_their_seed)
{
    fa_problem p = {1, 2, 2, 3, 9, 16, false, 0.25f};
    const fa_dist dists[] = {FA_DIST_NORMAL, FA_DIST_NEEDLE, FA_DIST_CLIFF};
    for (int way = 0; way < 6; way++) {
        const int i = way % 3;
        p.dtype = way < 3 ? FA_DTYPE_FP16 : FA_DTYPE_E4M3;
        const fa_draw draw = {.seed = 1, .q_seed = 2, .dist = (int32_t)dists[i], .factor = 1.0f};
        CLEANUP(fa_tensors_free) fa_tensors t = fa_draw_tensors(&draw, &p);
        CLEANUP(fa_tensors_free) fa_tensors first = fa_tensors_make(&p, dists[i], 1);
        CLEANUP(fa_tensors_free) fa_tensors second = fa_tensors_make(&p, dists[i], 2);
        assert_memory_equal(t.q, (i == 0 ? second : first).q, t.q_count * sizeof *t.q);
        if (way >= 3)
            assert_memory_equal(t.scores.q_descale, (i == 0 ? second : first).scores.q_descale, 2 * sizeof(float));
        assert_true(memcmp(first.q, second.q, t.q_count * sizeof *t.q) != 0);
        assert_memory_equal(t.k, first.k, t.k_count * sizeof *t.k);
        assert_memory_equal(t.v, first.v, t.k_count * sizeof *t.v);
        assert_true(i > 0 || memcmp(first.k, second.k, t.k_count * sizeof *t.k) != 0);
    }
}

/* With seed 4 those of even heads in K and of odd ones in V, whose descales make up for it. */
TEST(half_of_the_heads_in_fp8_are_subnormal)
{
    for (int v_in_k = 0; v_in_k < 2; v_in_k++) {
        const fa_problem p = {1, 4, 4, 1, 5, 32, false, 0.2f, .dtype = FA_DTYPE_E4M3, .v_in_k = v_in_k};
        const fa_draw asked = {.seed = 4, .q_seed = 4, .dist = FA_DIST_NORMAL, .factor = 1.0f},
                      drawn = {.seed = 4, .q_seed = 4, .dist = FA_DIST_NORMAL, .factor = 1.0f, .flat = true};
        CLEANUP(fa_tensors_free) fa_tensors t = fa_draw_tensors(&drawn, &p);
        CLEANUP(fa_tensors_free) fa_tensors same = fa_draw_tensors(&asked, &p);
        for (int head = 0; head < 4; head++) {
            const float of_k = t.scores.k_descale[head] / same.scores.k_descale[head],
                        of_v = t.scores.v_descale[head] / same.scores.v_descale[head];
            assert_true(of_k == (!v_in_k && head % 2 == 0 ? 512.0f : 1.0f));
            assert_true(of_v == (!v_in_k && head % 2 == 1 ? 512.0f : 1.0f));
            assert_true(!v_in_k || t.scores.v_descale[head] == t.scores.k_descale[head]);
            assert_true((t.q[head * 32] == 0) == (head == 2)); /* every fifth query */
            for (int i = head * 5 * 32; i < (head + 1) * 5 * 32 && !v_in_k; i++) {
                const float got = fa_element_to_float(FA_DTYPE_E4M3, t.v[i]) * of_v;
                assert_true(fabsf(got - fa_element_to_float(FA_DTYPE_E4M3, same.v[i])) <= (head % 2 ? 0.5f : 0.0f));
            }
        }
    }
}

TEST(v_in_k_follows_what_a_draw_makes_of_k)
{
    const fa_problem p = {1, 2, 2, 1, 9, 24, false, 0.2f, .dim_v = 16, .v_in_k = true};
    const fa_draw draw = {.seed = 1, .q_seed = 1, .dist = FA_DIST_NORMAL, .factor = 1.0f, .flat = true};
    CLEANUP(fa_tensors_free) fa_tensors t = fa_draw_tensors(&draw, &p);
    int32_t equal = 0; /* keys of a head like its first */
    for (int32_t row = 0; row < 2 * 9; row++) {
        assert_memory_equal(t.v + row * 16, t.k + row * 24, 16 * sizeof *t.v);
        equal += row % 9 > 0 && memcmp(t.k + row * 24, t.k + row / 9 * 9 * 24, 24 * sizeof *t.k) == 0;
    }
    assert_int_equal(equal, 8);
}

TEST(draws_and_inputs_are_those_of_the_seed)
{
    golden g = {0};
    const fa_problem problems[] = {{2, 4, 2, 5, 70, 24, true, 0.2f},    {1, 3, 3, 40, 33, 128, false, 2.0f},
                                   {1, 2, 2, 3, 300, 16, false, 1e-5f}, {1, 1, 1, 3, 9, 16, true, 0.02f},
                                   {3, 2, 1, 2, 40, 72, true, 4000.0f}, {1, 1, 1, 3, 9, 16, false, 0.375f},
                                   {1, 1, 1, 3, 9, 16, false, 0.75f},   {1, 1, 1, 3, 9, 16, false, 1e-8f},
                                   {1, 1, 1, 3, 9, 16, false, 0.09f}, /* slopes at the ends of FP16 */
                                   {1, 1, 1, 3, 9, 16, false, 10300.0f}};
    for (int i = 0; i < 10; i++) {
        fa_options options = {.seed = 42 + 1000 * i, .seeds = 16, .dist = FA_DIST_UNIFORM};
        if (i > 0)
            golden_say(&g, "problem %d: ", i);
        const size_t from = g.used;
        for (int32_t index = 0; index < 16; index++) {
            const fa_draw draw = fa_draw_of(&options, &problems[i], index);
            char text[FA_DRAW_TEXT];
            fa_draw_describe(&draw, text);
            golden_say(&g, "%s %d %d %g%s", text, draw.dist, draw.strides, (double)draw.factor,
                       index % 4 == 3 ? "\n" : "; ");
        }
        if (i > 0)
            golden_fold(&g, from);
    }
    for (int dist = 0; dist <= FA_DIST_CLIFF; dist++) {
        uint64_t q = 0, k = 0, v = 0; /* of all problems */
        for (int i = 0; i < 20; i++) {
            CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&problems[i / 2], (fa_dist)dist, 1 + i % 2);
            q = golden_digest(q, t.q, t.q_count * sizeof *t.q);
            k = golden_digest(k, t.k, t.k_count * sizeof *t.k);
            v = golden_digest(v, t.v, t.v_count * sizeof *t.v);
        }
        golden_say(&g, "dist %d: %016llx %016llx %016llx\n", dist, (unsigned long long)q, (unsigned long long)k,
                   (unsigned long long)v);
    }
    golden_compare(&g, "draws.txt");
}

static void say_layout(golden *g, const fa_layout *l)
{
    golden_say(g, "%d strides %lld %lld %lld, %lld blocks %lld apart of %zu, span %zu, dense %zu", (int)l->strides,
               (long long)l->stride_b, (long long)l->stride_h, (long long)l->stride_s, (long long)l->blocks,
               (long long)l->block_pitch, l->block_count, fa_layout_span(l), fa_layout_dense(l));
    const size_t dense = fa_layout_dense(l);
    FREED uint16_t *tensor = fa_alloc(dense * (size_t)l->blocks * sizeof *tensor);
    FREED uint16_t *image = fa_alloc(l->block_count * sizeof *image), *back = fa_alloc(dense * (size_t)l->blocks * 2);
    for (size_t i = 0; i < dense * (size_t)l->blocks; i++)
        tensor[i] = (uint16_t)(i * 40503u);
    uint64_t digest = 0;
    size_t first = 0, changed = 0, sum = 0;
    for (int64_t block = 0; block < l->blocks; block++) {
        fa_layout_scatter(l, block, tensor, 0xABCD, image);
        digest = golden_digest(digest, image, l->block_count * sizeof *image);
        fa_layout_gather(l, block, image, back);
        assert_int_equal(fa_layout_gaps_changed(l, block, image, 0xABCD, &first), 0);
        for (size_t i = l->block_count; i-- > 0;) /* each element in turn, from the last one */
            if (image[i] == 0xABCD)
                image[i] = 1;
        changed += fa_layout_gaps_changed(l, block, image, 0xABCD, &first);
        sum += first;
    }
    assert_memory_equal(back, tensor, dense * (size_t)l->blocks * sizeof *tensor);
    golden_say(g, "; image %016llx, %zu in gaps, the first at %zu\n", (unsigned long long)digest, changed, sum);
}

TEST(layouts_are_those_of_the_word)
{
    golden g = {0};
    const fa_problem problems[] = {{3, 4, 2, 5, 7, 16, false, 0.25f},
                                   {1, 6, 3, 5, 7, 24, false, 0.25f},
                                   {1, 1, 1, 6, 9, 16, false, 0.25f},
                                   {1, 1, 1, 1, 2, 8, false, 0.25f}};
    for (int i = 0; i < 4; i++)
        for (int strides = 0; strides <= FA_STRIDES_ODD; strides++) {
            golden_say(&g, "problem %d, strides %d: ", i, strides);
            const size_t from = g.used;
            for (int tensor = 0; tensor < FA_TENSORS; tensor++) {
                const fa_layout l = fa_layout_of(&problems[i], (fa_strides)strides, 44, tensor);
                say_layout(&g, &l);
            }
            golden_fold(&g, from);
        }
    golden_compare(&g, "layouts.txt");
}
