/* The checker checked: good kernels are never rejected, wrong ones always, and the words say where and how. */
#include "check/errors.h"
#include "check/rules.h"
#include "simulate.h"
#include "unit.h"

#include <math.h>
#include <omp.h>

/* The reference of all rows, or of every `step`th. */
static bench open_sampled(fa_problem problem, fa_dist dist, uint64_t seed, bool acc_fp16, int64_t step)
{
    bench b = {
        .problem = problem, .tensors = fa_tensors_make(&problem, dist, seed), .count = fa_problem_q_count(&problem)};
    b.reference = reference_of(&problem, &b.tensors, step, acc_fp16);
    b.output = fa_alloc(b.count * sizeof *b.output);
    return b;
}

static bench open_bench(fa_problem problem, fa_dist dist, uint64_t seed, bool acc_fp16)
{
    return open_sampled(problem, dist, seed, acc_fp16, 1);
}

static fa_verdict judge(const bench *b)
{
    const double rule = fa_rule_tolerance(b->problem.dtype);
    return fa_judge(&b->problem, &b->reference, b->output, 64, rule, rule);
}

static fa_verdict judge_fault(bench *b, sim_fault fault)
{
    sim_flash(&b->problem, &b->tensors, &b->reference, 64, fault, b->output);
    return judge(b);
}

static void expect_words(const fa_verdict *verdict, const char *words)
{
    holds(verdict->failure, words);
    assert_false(verdict->passed);
}

static fa_verdict fails(const bench *b, const char *words)
{
    const fa_verdict v = judge(b);
    expect_words(&v, words);
    return v;
}

/* Then the output is the good one again. */
static fa_verdict named(bench *b, const uint16_t *good, const char *words)
{
    const fa_verdict v = fails(b, words);
    memcpy(b->output, good, b->count * sizeof *good);
    return v;
}

/* On a busy machine, waiting for threads would take longer than the tests. */
int unit_setup(void **state)
{
    omp_set_num_threads(1);
    return 0;
}

/* Every rule follows the type's unit roundoff: of BF16 2^-8. */
TEST(good_kernels_pass)
{
    const fa_problem shapes[] = {
        shape(1, 1, 1, 1, 1, 16, false),   shape(1, 1, 1, 1, 2, 16, false),     shape(1, 2, 1, 1, 5, 16, false),
        shape(1, 1, 1, 2, 3, 64, true),    shape(1, 1, 1, 15, 17, 16, true),    shape(2, 2, 1, 63, 64, 32, true),
        shape(1, 2, 2, 65, 33, 80, true),  shape(1, 2, 1, 17, 129, 128, false), shape(1, 8, 2, 1, 199, 128, false),
        shape(1, 1, 1, 5, 255, 256, true), shape(1, 1, 1, 2, 8192, 16, true)};
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++)
        for (int dist = 0; dist <= FA_DIST_CLIFF; dist++) {
            fa_problem problem = shapes[i / 2];
            problem.dtype = i % 2 ? FA_DTYPE_BF16 : FA_DTYPE_FP16;
            const uint64_t seeds = problem.seq_kv <= 17 && i % 2 == 0 ? 12 : 1;
            for (uint64_t seed = 0; seed < seeds; seed++) {
                CLEANUP(close_bench) bench b = open_bench(problem, (fa_dist)dist, i % 2 ? 3 : seed, false);
                for (sim_fault kind = SIM_GOOD; kind <= SIM_GOOD_SUM_P16; kind++) {
                    const fa_verdict v = judge_fault(&b, kind);
                    if (!v.passed)
                        fail_msg("shape %zu dist %d seed %d kind %d: %s", i, dist, (int)seed, (int)kind, v.failure);
                    assert_string_equal(v.failure, "");
                }
            }
        }
}

/* Whatever the scale makes of the scores, up to far beyond FP16. */
TEST(a_constant_fails_everywhere_and_good_kernels_do_not)
{
    const float values[] = {0.0f, 1.0f, -0.25f};
    for (int dtype = FA_DTYPE_FP16; dtype <= FA_DTYPE_BF16; dtype++)
        for (int dist = 0; dist <= FA_DIST_CLIFF; dist++)
            for (int power = -6; power <= 6; power++) {
                fa_problem problem = shape(1, 2, 1, 63, 63, 16, power % 2 != 0);
                problem.scale = powf(10.0f, (float)power);
                problem.dtype = dtype;
                CLEANUP(close_bench) bench b = open_bench(problem, (fa_dist)dist, 7, false);
                for (int kind = SIM_GOOD - 3; kind <= SIM_GOOD_SUM_P16; kind++) {
                    for (size_t i = 0; kind < 0 && i < b.count; i++)
                        b.output[i] = fa_element_of_float(dtype, values[kind + 3]);
                    const fa_verdict v = kind < 0 ? judge(&b) : judge_fault(&b, (sim_fault)kind);
                    if (v.passed != (kind >= 0))
                        fail_msg("type %d dist %d scale 1e%d kind %d: %s rmse %g %g\n", dtype, dist, power, kind,
                                 v.passed ? "passes" : v.failure, v.rmse, v.baseline_rmse);
                }
            }
}

typedef struct wrong_case {
    sim_fault fault;
    fa_problem problem;
    fa_dist dist;
} wrong_case;

TEST(wrong_kernels_fail)
{
    const fa_problem plain = shape(1, 2, 2, 20, 200, 32, false), causal = shape(1, 4, 2, 66, 66, 32, true),
                     wide = shape(2, 4, 2, 9, 129, 32, false);
    const fa_problem corner = shape(1, 2, 1, 40, 150, 32, true), longer = shape(1, 1, 1, 2, 8192, 16, false);
    const wrong_case cases[] = {
        {SIM_MEAN_OF_V, plain, FA_DIST_NORMAL},         {SIM_MEAN_OF_V, longer, FA_DIST_NORMAL},
        {SIM_MEAN_OF_V, plain, FA_DIST_NEEDLE},         {SIM_MEAN_OF_V, causal, FA_DIST_UNIFORM},
        {SIM_MEAN_OF_V, wide, FA_DIST_RISING},          {SIM_DROP_LAST_TILE, plain, FA_DIST_NORMAL},
        {SIM_DROP_LAST_TILE, longer, FA_DIST_NORMAL},   {SIM_DROP_LAST_TILE, wide, FA_DIST_CODED},
        {SIM_DROP_LAST_TILE, plain, FA_DIST_RISING},    {SIM_DROP_LAST_TILE, longer, FA_DIST_UNIFORM},
        {SIM_NO_RESCALE, plain, FA_DIST_NORMAL},        {SIM_NO_RESCALE, longer, FA_DIST_RISING},
        {SIM_NO_RESCALE, causal, FA_DIST_RISING},       {SIM_NO_RESCALE, wide, FA_DIST_SHARP},
        {SIM_SCALE_OFF, plain, FA_DIST_NORMAL},         {SIM_SCALE_OFF, longer, FA_DIST_NORMAL},
        {SIM_SCALE_OFF, causal, FA_DIST_SHARP},         {SIM_SCALE_OFF, wide, FA_DIST_RISING},
        {SIM_SCALE_OFF, plain, FA_DIST_UNIFORM},        {SIM_SCALE_OFF, plain, FA_DIST_OUTLIER},
        {SIM_OUTPUT_SCALED, plain, FA_DIST_CONSTANT_V}, {SIM_OUTPUT_SCALED, plain, FA_DIST_NORMAL},
        {SIM_OUTPUT_SCALED, longer, FA_DIST_UNIFORM},   {SIM_SWAP_KV, plain, FA_DIST_NORMAL},
        {SIM_SWAP_KV, causal, FA_DIST_UNIFORM},         {SIM_SWAP_KV, longer, FA_DIST_NORMAL},
        {SIM_SWAP_KV, wide, FA_DIST_CONSTANT_V},        {SIM_CAUSAL_EARLY, causal, FA_DIST_NORMAL},
        {SIM_CAUSAL_LATE, causal, FA_DIST_NORMAL},      {SIM_CAUSAL_LATE, corner, FA_DIST_UNIFORM},
        {SIM_CAUSAL_EARLY, corner, FA_DIST_RISING},     {SIM_CAUSAL_TOP_LEFT, corner, FA_DIST_NORMAL},
        {SIM_NO_TAIL_MASK, plain, FA_DIST_NORMAL},      {SIM_NO_TAIL_MASK, wide, FA_DIST_CONSTANT_V},
        {SIM_WRONG_KV_HEAD, causal, FA_DIST_NORMAL},    {SIM_WRONG_KV_HEAD, wide, FA_DIST_CODED},
        {SIM_WRONG_KV_HEAD, wide, FA_DIST_CONSTANT_V},  {SIM_LOGITS_BF16, plain, FA_DIST_NORMAL},
        {SIM_LOGITS_BF16, longer, FA_DIST_NORMAL},      {SIM_MEAN_OF_V, longer, FA_DIST_SHARP},
        {SIM_MEAN_OF_V, longer, FA_DIST_UNIFORM},       {SIM_SCALE_OFF, longer, FA_DIST_UNIFORM}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int variant = 0; variant < 3; variant++) { /* two seeds, then BF16: its own logits are no fault */
            fa_problem problem = cases[i].problem;
            problem.dtype = variant < 2 ? FA_DTYPE_FP16 : FA_DTYPE_BF16;
            if (variant == 2 && (cases[i].dist != FA_DIST_NORMAL || cases[i].fault == SIM_LOGITS_BF16))
                continue;
            CLEANUP(close_bench) bench b = open_bench(problem, cases[i].dist, variant % 2, false);
            const fa_verdict v = judge_fault(&b, cases[i].fault);
            if (v.passed)
                fail_msg("case %zu, variant %d passes: fault %d dist %d, max %g rmse %g, baseline %g %g", i, variant,
                         (int)cases[i].fault, (int)cases[i].dist, v.max_abs_err, v.rmse, v.baseline_max_abs_err,
                         v.baseline_rmse);
            assert_true(strlen(v.failure) > 40);
        }
    assert_true(fa_rule_tolerance(FA_DTYPE_FP16) == 1e-3 && fa_rule_tolerance(FA_DTYPE_BF16) == 8e-3);
}

static uint16_t *row_of(bench *b, int32_t head, int32_t row)
{
    return b->output + ((size_t)head * (size_t)b->problem.seq_q + (size_t)row) * (size_t)b->problem.dim;
}

/* What else is named: tests/golden/faults.txt (test_diagnose.c) */
TEST(damage_is_found_and_named)
{
    CLEANUP(close_bench) bench b = open_bench(shape(1, 3, 3, 200, 150, 64, false), FA_DIST_NORMAL, 9, false);
    FREED uint16_t *good = fa_alloc(b.count * sizeof *good);
    const size_t row_bytes = 64 * sizeof(uint16_t);
    assert_true(judge_fault(&b, SIM_GOOD).passed);
    memcpy(good, b.output, b.count * sizeof *good);

    row_of(&b, 1, 17)[5] = 0x7E00;
    fa_verdict v = named(&b, good, "1 outputs are not finite");
    assert_int_equal(v.nonfinite, 1);
    assert_true(v.worst.batch == 0 && v.worst.head == 1 && v.worst.row == 17 && v.worst.col == 5);

    memcpy(row_of(&b, 1, 10), good + (200 + 11) * 64, row_bytes);
    memcpy(row_of(&b, 1, 11), good + (200 + 10) * 64, row_bytes);
    named(&b, good, "rows moved: batch 0 head 1 row 10 holds what belongs to batch 0 head 1 row 11; two rows");

    row_of(&b, 1, 50)[7] = fa_float_to_half(fa_half_to_float(row_of(&b, 1, 50)[7]) + 0.003f);
    v = named(&b, good, "a single row");
    assert_int_equal(v.mismatches, 1);
    assert_true(v.worst.head == 1 && v.worst.row == 50 && v.worst.col == 7);

    for (int32_t over = 0; over < 2; over++) { /* three quarters of the columns at most */
        for (int32_t head = 0; head < 3; head++)
            for (int32_t row = 0; row < 200; row++)
                for (int32_t d = 0; d < 48 + over; d++)
                    row_of(&b, head, row)[d] = 0x4900; /* 10 */
        v = judge(&b);
        assert_true((strstr(v.failure, "only columns 0..47; every row") != NULL) == (over == 0));
    }
}

/* Tolerances cannot buy a pass: rule 3 stays. */
TEST(loose_tolerances_do_not_help)
{
    CLEANUP(close_bench) bench b = open_bench(shape(1, 2, 2, 64, 256, 64, false), FA_DIST_NORMAL, 1, false);
    for (sim_fault fault = SIM_MEAN_OF_V; fault <= SIM_SWAP_KV; fault++) {
        sim_flash(&b.problem, &b.tensors, &b.reference, 64, fault, b.output);
        const fa_verdict v = fa_judge(&b.problem, &b.reference, b.output, 64, 1.5, 1.5);
        assert_int_equal(v.mismatches, 0);
        assert_false(v.passed);
    }
}

/* Tight ones do reject: the baseline breaks them too, unless it does not. */
TEST(sharp_inputs_are_left_to_the_relative_rules)
{
    CLEANUP(close_bench) bench b = open_bench(shape(1, 1, 1, 64, 512, 64, false), FA_DIST_SHARP, 1, false);
    fa_verdict v = judge_fault(&b, SIM_GOOD);
    assert_true(v.passed && v.baseline_fails);
    memcpy(b.output, b.reference.baseline, b.count * sizeof *b.output);
    v = judge(&b);
    assert_true(v.passed && v.mismatches > 0);
    CLEANUP(close_bench) bench uniform = open_bench(shape(1, 1, 1, 64, 512, 64, false), FA_DIST_UNIFORM, 1, false);
    v = judge_fault(&uniform, SIM_GOOD);
    assert_true(v.passed && !v.baseline_fails);
}

TEST(exact_baseline_leaves_two_ulp)
{
    CLEANUP(close_bench) bench b = open_bench(shape(4, 4, 4, 16, 1, 64, false), FA_DIST_NORMAL, 1, false);
    for (int ulps = 0; ulps <= 3; ulps++) {
        memcpy(b.output, b.reference.baseline, b.count * sizeof *b.output);
        for (size_t i = 0; i < b.count; i++)
            b.output[i] = (uint16_t)(b.output[i] + (uint16_t)ulps);
        const fa_verdict v = judge(&b);
        assert_true(v.baseline_max_abs_err == 0.0);
        assert_int_equal(v.passed, ulps <= 1 || (ulps == 2 && v.mismatches == 0));
    }
}

TEST(empty_rows_are_exactly_zero)
{
    CLEANUP(close_bench) bench b = open_bench(shape(1, 1, 1, 300, 100, 64, true), FA_DIST_NORMAL, 1, false);
    assert_true(judge_fault(&b, SIM_GOOD).passed);
    b.output[150 * 64 + 3] = 0x0001;
    fails(&b, "a single row");
    b.output[150 * 64 + 3] = 0x8000; /* -0 is 0 */
    assert_true(judge(&b).passed);
}

TEST(a_reference_of_nan_passes_nothing)
{
    CLEANUP(close_bench) bench b = open_bench(shape(1, 1, 1, 32, 32, 16, false), FA_DIST_NORMAL, 1, false);
    sim_flash(&b.problem, &b.tensors, &b.reference, 64, SIM_GOOD, b.output);
    b.reference.exact[77] = NAN;
    assert_false(judge(&b).passed);
    b.reference.baseline[77] = 0x7E00;
    assert_false(judge(&b).passed);
}

/* Another class of accuracy is not smuggled in: an FP16-accumulating result passes in its class alone. */
TEST(classes_do_not_mix)
{
    const fa_problem p = shape(1, 1, 1, 32, 512, 64, false);
    CLEANUP(close_bench) bench fp32 = open_bench(p, FA_DIST_NORMAL, 1, false);
    CLEANUP(close_bench) bench fp16 = open_bench(p, FA_DIST_NORMAL, 1, true);
    memcpy(fp32.output, fp16.reference.baseline, fp32.count * sizeof *fp32.output);
    memcpy(fp16.output, fp16.reference.baseline, fp16.count * sizeof *fp16.output);
    assert_false(judge(&fp32).passed);
    assert_true(judge(&fp16).passed);
}

TEST(nan_between_samples_is_found)
{
    CLEANUP(close_bench) bench b = open_sampled(shape(1, 1, 1, 600, 56, 16, false), FA_DIST_UNIFORM, 1, false, 3);
    sim_flash(&b.problem, &b.tensors, &b.reference, 64, SIM_GOOD, b.output);
    assert_true(judge(&b).passed);
    b.output[(b.reference.rows[50] + 1) * 16 + 3] = 0xFFFF;
    fails(&b, "rows that were not sampled");
}

/* Against a library: naive FP16 attention stands in for it. */
TEST(library_comparison)
{
    for (int dist = 0; dist <= FA_DIST_CLIFF; dist++) {
        const fa_problem few = shape(1, 2, 1, 33, 80, 32, true), tiles = shape(1, 4, 2, 129, 160, 32, true);
        CLEANUP(close_bench) bench b = open_bench(dist == FA_DIST_NORMAL ? tiles : few, (fa_dist)dist, 3, false);
        FREED float *other = fa_alloc(b.count * sizeof *other);
        for (size_t i = 0; i < b.count; i++)
            other[i] = fa_half_to_float(b.reference.baseline[i]);
        const fa_verdict exact = judge_fault(&b, SIM_GOOD);
        fa_verdict v = fa_judge_library(&b.problem, other, b.output, 64, 1e-3, 1e-3, &exact);
        if (!v.passed)
            fail_msg("dist %d: %s", dist, v.failure);
        assert_string_equal(v.name, "cublas");
        if (dist == FA_DIST_NORMAL) {
            for (sim_fault fault = SIM_MEAN_OF_V; fault <= SIM_CAUSAL_LATE; fault++) {
                const fa_verdict wrong = judge_fault(&b, fault);
                v = fa_judge_library(&b.problem, other, b.output, 64, 1e-3, 1e-3, &wrong);
                if (v.passed)
                    fail_msg("fault %d passes against the library", (int)fault);
            }
            sim_flash(&b.problem, &b.tensors, &b.reference, 64, SIM_GOOD, b.output);
            memmove(row_of(&b, 3, 64), row_of(&b, 3, 0), 65 * 32 * sizeof(uint16_t));
            v = fa_judge_library(&b.problem, other, b.output, 64, 2e-3, 1e-3, &exact);
            expect_words(&v, "1 of 4 heads (batch.head 0.3), 2 of 3 tiles of 64 rows (1 2)");
            row_of(&b, 0, 0)[0] = 0x7C01;
            v = fa_judge_library(&b.problem, other, b.output, 64, 1e9, 1e9, &exact);
            assert_false(v.passed);
        }
    }
}

/* Expected, baseline and output are `value` in every element. */
static bench open_flat(int32_t rows, uint16_t value)
{
    bench b = open_bench(shape(1, 1, 1, rows, 1, 16, false), FA_DIST_NORMAL, 1, false);
    for (size_t i = 0; i < b.count; i++) {
        b.output[i] = b.reference.baseline[i] = value;
        b.reference.exact[i] = (double)fa_half_to_float(value);
    }
    return b;
}

enum { ONE = 0x3C00, ONE_AND_A_HALF = 0x3E00, TINY = 0x0010 }; /* FP16: 1, 1.5, 2^-20 */

/* A distance that equals the tolerance is within it, in units of the inputs' scale. */
TEST(a_tolerance_is_allowed)
{
    CLEANUP(close_bench) bench b = open_flat(4, ONE);
    b.output[7] = b.reference.baseline[9] = ONE_AND_A_HALF;
    for (double unit = 0.5; unit <= 2; unit *= 2) {
        b.reference.unit = unit;
        fa_verdict v = fa_judge(&b.problem, &b.reference, b.output, 64, 0.5 / unit, 0);
        assert_true(v.mismatches == 0 && !v.baseline_fails);
        v = fa_judge(&b.problem, &b.reference, b.output, 64, 0.499 / unit, 0);
        assert_true(v.mismatches == 1 && v.baseline_fails);
    }
}

/* Where the baseline is outside the tolerance, rows that it gets right whatever the rounding must be within, and the
 * worst element is one of theirs. */
TEST(the_fixed_rule_goes_row_by_row)
{
    CLEANUP(close_bench) bench b = open_flat(4, ONE);
    const uint16_t one_and_three_quarters = 0x3F00;
    b.reference.baseline[3] = b.output[3] = one_and_three_quarters;
    fa_verdict v = fa_judge(&b.problem, &b.reference, b.output, 64, 0.25, 0.0);
    assert_true(v.passed && v.baseline_fails && v.mismatches == 1);
    b.output[2 * 16 + 7] = ONE_AND_A_HALF;
    b.output[3] = b.reference.baseline[4] = ONE_AND_A_HALF;
    for (int step = 0; step <= 2; step++) {
        b.reference.sway[2] = 0.0625 * (double)step; /* 0.25 and 2 x 0.125 are equal */
        v = fa_judge(&b.problem, &b.reference, b.output, 64, 0.25, 0.0);
        expect_words(&v, "largest error 0.5; worst at batch 0 head 0 row 2 col 7: 1.5, expected 1; 2 mismatches");
        expect_words(&v, "a single row");
    }
    b.reference.sway[2] = 0.126;
    assert_true(fa_judge(&b.problem, &b.reference, b.output, 64, 0.25, 0.0).passed);
    b.reference.sway[2] = 0.0;
    b.output[3] = 0x4400; /* 4: beyond the relative rules, so this row is wrong as well */
    v = fa_judge(&b.problem, &b.reference, b.output, 64, 0.25, 0.0);
    expect_words(&v, "largest error 3; worst at batch 0 head 0 row 0 col 3: 4, expected 1; 2 mismatches");
    expect_words(&v, "wrong rows: 2 of 4");
}

/* A larger error that the type itself makes elsewhere is not the worst. */
TEST(the_worst_element_breaks_the_rule)
{
    CLEANUP(close_bench) bench b = open_flat(512, ONE);
    b.reference.exact[5] = 1024.0;
    b.reference.baseline[5] = 0x6400;
    b.output[5] = 0x6401;
    b.reference.exact[9 * 16 + 2] = 1.5;
    b.reference.baseline[9 * 16 + 2] = ONE_AND_A_HALF;
    b.output[9 * 16 + 2] = ONE_AND_A_HALF + 3;
    fa_verdict v = fa_judge(&b.problem, &b.reference, b.output, 64, 1, 1);
    expect_words(&v, "max|O-R| 0.00293 > 1e-05");
    expect_words(&v, "worst at batch 0 head 0 row 9 col 2: 1.50293, expected 1.5;");
    fails(&b, "largest error 0.00293; worst at batch 0 head 0 row 9 col 2");
}

/* Among fewer than 8192 elements the largest of a row, wherever it stands, says how exact its others must be. */
TEST(few_elements_may_be_as_coarse_as_their_row)
{
    for (int32_t rows = 511; rows <= 512; rows++)
        for (int largest = 0; largest < 16; largest += 15) {
            CLEANUP(close_bench) bench b = open_flat(rows, TINY);
            const int at = 3 * 16 + largest, off = 3 * 16 + 5;
            b.output[at] = b.reference.baseline[at] = ONE;
            b.reference.exact[at] = 1.0;
            b.output[off] = fa_float_to_half(4e-5f);
            assert_int_equal(judge(&b).passed, rows == 511);
        }
}

/* A baseline that is not 0 in a row of zeros has no relative error there. */
TEST(a_row_of_zeros_does_not_widen_the_others)
{
    CLEANUP(close_bench) bench b = open_flat(4, ONE);
    for (int d = 0; d < 16; d++)
        b.reference.exact[16 + d] = b.output[16 + d] = b.reference.baseline[16 + d] = 0;
    b.reference.baseline[16 + 2] = 1;
    const fa_verdict v = judge(&b);
    assert_true(v.passed && v.baseline_worst_row_rel_l2 == 0);
}

static void step_row(bench *b, int32_t row, int steps)
{
    for (int d = 0; d < 16; d++)
        row_of(b, 0, row)[d] = (uint16_t)(ONE + steps);
}

/* Two steps of the type are allowed to a row where the baseline is exact: three are wrong. Beside a library the mean
 * may be one step off. */
TEST(a_row_at_its_limit_is_not_accused)
{
    CLEANUP(close_bench) bench two = open_flat(2, ONE), b = open_flat(4, ONE);
    step_row(&two, 0, 2);
    step_row(&two, 1, 3);
    fa_verdict v = fa_judge(&two.problem, &two.reference, two.output, 64, 1, 1);
    expect_words(&v, "; a single row");
    float other[4 * 16];
    for (size_t i = 0; i < b.count; i++)
        other[i] = 1.0f;
    for (int steps = 2; steps <= 3; steps++) {
        step_row(&b, 0, steps);
        v = fa_judge_library(&b.problem, other, b.output, 64, 1, 1, &(fa_verdict){.rows_checked = 4});
        assert_int_equal(v.passed, steps == 2);
    }
    expect_words(&v, "; a single row");
}

/* Six heads and tiles are named, and that there are more. */
TEST(six_places_are_named)
{
    static const char *const words[] = {
        "6 of 8 heads (batch.head 0.0 0.1 0.2 0.3 0.4 0.5), 6 of 8 tiles of 1 rows (0 1 2 3 4 5)",
        "7 of 8 heads (batch.head 0.0 0.1 0.2 0.3 0.4 0.5 ...), 7 of 8 tiles of 1 rows (0 1 2 3 4 5 ...)"};
    for (int32_t count = 6; count <= 7; count++) {
        CLEANUP(close_bench) bench b = open_bench(shape(1, 8, 8, 8, 1, 16, false), FA_DIST_NORMAL, 1, false);
        memcpy(b.output, b.reference.baseline, b.count * sizeof *b.output);
        for (int32_t i = 0; i < count; i++)
            memset(row_of(&b, i, i), 0, 16 * sizeof *b.output);
        const fa_verdict v = fa_judge(&b.problem, &b.reference, b.output, 1, 1e-3, 1e-3);
        expect_words(&v, words[count - 6]);
    }
}

/* All rows of `b`, of which it has a sample, against the FP64 of `every`. */
static fa_verdict judge_plain(const bench *b, const bench *every, const fa_verdict *limits, double *suspects)
{
    return fa_judge_plain(&b->problem, every->reference.exact, &b->reference, b->output, 64, 1e-3, 1e-3, limits,
                          suspects);
}

/* Every row against FP64, with the limits of a sample's baseline: a row beyond one is a suspect, and no other. */
TEST(suspects_are_beyond_the_limits_of_the_sample)
{
    enum { ROW = 5 }; /* not in the sample */
    const fa_problem problem = shape(2, 2, 1, 64, 70, 32, true);
    CLEANUP(close_bench) bench every = open_bench(problem, FA_DIST_NORMAL, 1, false);
    CLEANUP(close_bench) bench b = open_sampled(problem, FA_DIST_NORMAL, 1, false, 7);
    double suspects[256];
    memcpy(b.output, every.reference.baseline, b.count * sizeof *b.output);
    memcpy(every.output, every.reference.baseline, b.count * sizeof *b.output);
    const fa_verdict own = judge(&every), exact = judge(&b);
    const fa_verdict good = judge_plain(&b, &every, &own, suspects);
    assert_true(good.passed && own.passed && exact.passed && good.rows_checked == 256 && good.failure[0] == '\0');
    assert_string_equal(good.name, "plain");
    assert_true(good.max_abs_err == own.max_abs_err && good.rmse == own.rmse);
    assert_true(good.baseline_worst_row_rel_l2 == own.baseline_worst_row_rel_l2);
    for (int i = 0; i < 256; i++)
        assert_true(suspects[i] == 0.0);
    for (int d = 0; d < 32; d++) {
        uint16_t *o = &b.output[ROW * 32 + d];
        *o = fa_float_to_half(1.3f * fa_half_to_float(*o));
    }
    assert_true(judge(&b).passed);
    fa_verdict limits[4] = {own, own, own, own};
    limits[1].baseline_max_abs_err = limits[1].baseline_rmse = 1.0; /* the row's relative error alone is left */
    limits[1].baseline_fails = true;
    limits[2] = limits[3] = limits[1];
    limits[2].baseline_worst_row_rel_l2 = limits[3].baseline_worst_row_rel_l2 = 1.0; /* nothing is */
    limits[3].baseline_fails = false;                                                /* rule 2 is */
    for (int i = 0; i < 4; i++) {
        const fa_verdict v = judge_plain(&b, &every, &limits[i], suspects);
        assert_int_equal(v.passed, i == 2);
        for (int row = i > 0 ? 0 : ROW; row < (i > 0 ? 256 : ROW + 1); row++) /* at first the mean is off, too */
            assert_int_equal(suspects[row] > 0.0, row == ROW && i != 2);
        if (i != 2)
            assert_true(v.worst.row == ROW && suspects[ROW] == v.max_abs_err && strstr(v.failure, "row 5") != NULL);
    }
    b.reference.unit = 1e6; /* of V, so of the absolute tolerance */
    assert_true(judge_plain(&b, &every, &limits[3], suspects).passed);
    b.output[ROW * 32 + 3] = FA_POISON;
    const fa_verdict v = judge_plain(&b, &every, &limits[2], suspects);
    assert_true(!v.passed && v.nonfinite == 1 && suspects[ROW] == (double)INFINITY);
    b.output[0] = fa_float_to_half(fa_half_to_float(b.output[0]) + 1.0f); /* the first row, too */
    judge_plain(&b, &every, &own, suspects);
    assert_true(suspects[0] > 0.0 && suspects[ROW] > 0.0);
}

TEST(rows_between_sequences_are_not_counted)
{
    enum { ROWS = 2 * 6, USED = 2 * 5 };
    static const fa_lengths lengths = {2, {2, 3}, {3, 2}, {0, 3, 6}, {0, 4, 6}};
    fa_problem problem = shape(2, 2, 1, 3, 3, 16, false);
    problem.lengths = &lengths;
    int64_t *used = fa_alloc(USED * sizeof *used), count = 0;
    for (int64_t i = 0; i < ROWS; i++)
        if (fa_problem_row(&problem, i).used)
            used[count++] = i;
    CLEANUP(fa_tensors_free) fa_tensors tensors = fa_tensors_make(&problem, FA_DIST_NORMAL, 1);
    CLEANUP(fa_reference_free) fa_reference sample = fa_reference_of_rows(&problem, &tensors, used, count, false);
    double exact[ROWS * 16] = {0}, suspects[ROWS];
    uint16_t output[ROWS * 16];
    memset(output, 0xFF, sizeof output);
    for (int64_t i = 0; i < USED * 16; i++) {
        exact[sample.rows[i / 16] * 16 + i % 16] = sample.exact[i];
        output[sample.rows[i / 16] * 16 + i % 16] = sample.baseline[i];
    }
    const fa_verdict own = fa_judge(&problem, &sample, output, 64, 1e-3, 1e-3);
    const fa_verdict every = fa_judge_plain(&problem, exact, &sample, output, 64, 1e-3, 1e-3, &own, suspects);
    assert_true(count == USED && own.passed && own.rows_checked == USED);
    assert_true(every.passed && every.rows_checked == USED && every.rmse == own.rmse);
}

/* Four rows of 16 ones with the log-sum-exp 0, by the tolerance of a workload's project. */
typedef struct seed {
    int32_t at; /* element of O */
    float want, got;
    int32_t row;      /* of the log-sum-exp */
    float lse, other; /* wanted, got */
} seed;

static fa_published_verdict publish(const fa_tolerance *tolerance, const seed seeds[], int count, bool lse)
{
    static const fa_lengths lengths = {1, {4}, {4}, {0, 5}, {0, 4}}; /* and a gap */
    fa_problem problem = shape(1, 1, 1, 4, 4, 16, false);
    fa_published_verdict v = {.tolerance = *tolerance};
    problem.lengths = &lengths;
    int64_t rows[5] = {0, 1, 2, 3, 4};
    for (int n = 0; n < count; n++) {
        double exact[80], want[5] = {0};
        uint16_t output[80];
        float got[5] = {0, 0, 0, 0, NAN};
        memset(output, 0xFF, sizeof output);
        memset(exact, 0, sizeof exact);
        for (int i = 0; i < 64; i++) {
            exact[i] = i == seeds[n].at ? (double)seeds[n].want : 1.0;
            output[i] = fa_element_of_float(FA_DTYPE_FP16, i == seeds[n].at ? seeds[n].got : 1.0f);
        }
        want[seeds[n].row] = (double)seeds[n].lse;
        got[seeds[n].row] = seeds[n].other;
        const fa_reference reference = {.row_count = 5, .rows = rows, .exact = exact, .lse = want};
        fa_published_judge(&problem, &reference, output, lse ? got : NULL, &v);
    }
    return v;
}

TEST(a_published_tolerance_is_what_its_project_means)
{
    const fa_tolerance none = {.rule = FA_TOLERANCE_NONE},
                       theirs = {FA_TOLERANCE_FLASHINFER, 1e-2, 1e-2, 1.0, INFINITY, false},
                       sol = {FA_TOLERANCE_SOL, 1e-2, 1e-2, 1.0, INFINITY, false};
    fa_tolerance most = sol, capped = sol, open = sol;
    most.matched_ratio = 63.0 / 64.0;
    const fa_tolerance edge[2] = {{FA_TOLERANCE_FLASHINFER, 0x1p-7, 0, 1.0, INFINITY, false},
                                  {FA_TOLERANCE_SOL, 0x1p-7, 0, 1.0, 0x1p-7, false}};
    capped.error_cap = 0.015;
    open.allow_negative_inf = true;
    static const struct {
        seed at;
        bool flashinfer, sol, most, capped, open;
    } cases[] = {
        {{0, 1, 1, 0, 0, 0}, true, true, true, true, true},
        {{63, 1, 1.016f, 0, 0, 0}, false, true, true, false, true},   /* 1.6 %, 0.016 */
        {{5, 1, 0.97f, 0, 0, 0}, false, false, true, false, false},   /* one element of 64 */
        {{5, 4, 4.03f, 0, 0, 0}, true, true, true, false, true},      /* below 1 % */
        {{5, -4, -3.93f, 0, 0, 0}, false, false, true, false, false}, /* the size of a negative one */
        {{5, 0, 0.0095f, 0, 0, 0}, true, true, true, true, true},     /* below 1e-2 */
        {{5, 1.0004f, 1, 0, 0, 0}, true, true, true, true, true},     /* R is rounded, too */
        {{5, 1, INFINITY, 0, 0, 0}, false, false, false, false, false},
        {{5, 1, 1, 3, 2, 2.0001f}, true, true, true, true, true},
        {{5, 1, 1, 3, 0, 0.0068f}, true, true, true, true, true},      /* base 2: 0.0098 */
        {{5, 1, 1, 3, 0, 0.0075f}, false, false, false, false, false}, /* 0.0108, of four rows */
        {{5, 1, 1, 3, -INFINITY, -INFINITY}, false, false, false, false, true},
        {{5, 1, 1, 3, -INFINITY, 0}, true, false, false, false, false}, /* infinity over infinity is no number */
        {{5, 1, 1, 3, 0, -INFINITY}, false, false, false, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const fa_tolerance *const tolerances[] = {&theirs, &sol, &most, &capped, &open};
        const bool want[] = {cases[i].flashinfer, cases[i].sol, cases[i].most, cases[i].capped, cases[i].open};
        for (int t = 0; t < 5; t++) {
            const fa_published_verdict v = publish(tolerances[t], &cases[i].at, 1, true);
            if (v.passed != want[t] || (v.failure[0] == '\0') != v.passed || !v.done)
                fail_msg("case %zu, tolerance %d: %d, '%s'", i, t, v.passed, v.failure);
        }
    }
    for (int t = 0; t < 2; t++)
        for (int off = 8; off < 10; off++)
            assert_int_equal(publish(&edge[t], &(seed){5, 1, 1 + (float)off / 1024, 0, 0, 0}, 1, true).passed,
                             off == 8);
    assert_true(publish(&theirs, &(seed){5, 1, 1, 1, 0, 0.0069f}, 1, true).lse_matched_ratio == 1.0);
    assert_false(publish(&none, &cases[0].at, 1, true).done);
    /* Seeds add up to the worst of each; the first failure stays; without a log-sum-exp there is none. */
    const seed some[3] = {cases[2].at, cases[10].at, cases[0].at};
    const fa_published_verdict v = publish(&sol, some, 3, true), o = publish(&sol, some + 1, 2, false);
    assert_true(!v.passed && v.matched_ratio == 63.0 / 64.0 && v.lse_matched_ratio == 0.75);
    assert_true(fabs(v.max_abs_err - 0.03) < 1e-3);
    assert_string_equal(v.failure, "98.4375 % of O are inside, 100 % must be");
    assert_true(o.passed && o.lse_matched_ratio == 1.0 && o.max_abs_err == 0.0);
    assert_string_equal(publish(&theirs, &cases[7].at, 1, true).failure, "O has an infinity or NaN");
    assert_string_equal(publish(&capped, &cases[1].at, 1, true).failure,
                        "an element of O is off by 0.0156, 0.015 at most");
    assert_string_equal(publish(&most, &cases[10].at, 1, true).failure,
                        "75.0000 % of the log-sum-exp are inside, 98.4375 % must be");
}

/* FP8: what is as far from R as `part` of the baseline is. */
static fa_verdict judge_part(bench *b, double part)
{
    for (size_t i = 0; i < b->count; i++) {
        const double base = (double)fa_element_to_float(FA_DTYPE_BF16, b->reference.baseline[i]);
        b->output[i] =
            fa_element_of_float(FA_DTYPE_BF16, (float)(b->reference.exact[i] + part * (base - b->reference.exact[i])));
    }
    return judge(b);
}

/* The mean error of many rows decides closely, also where V has a mean; of few as for 16 bits. Zeros never pass. */
TEST(fp8_is_judged_by_its_mean_error)
{
    const fa_dist dists[] = {FA_DIST_NORMAL, FA_DIST_MEAN, FA_DIST_OUTLIER};
    for (int i = 0; i < 6; i++) {
        fa_problem p = shape(2, 4, 2, i < 3 ? 40 : 6, 300, 32, false);
        p.dtype = FA_DTYPE_E4M3;
        CLEANUP(close_bench) bench b = open_bench(p, dists[i % 3], 9, false);
        const fa_verdict as_baseline = judge_part(&b, 1.0), near = judge_part(&b, 1.25);
        const fa_verdict far = judge_part(&b, 1.5), exact = judge_part(&b, 0.0), zero = judge_part(&b, NAN);
        assert_true(as_baseline.passed && exact.passed && near.passed);
        assert_int_equal(far.passed, i >= 3);
        assert_false(zero.passed);
        memset(b.output, 0, b.count * sizeof *b.output);
        assert_false(judge(&b).passed);
        double squares = 0.0;
        for (size_t e = 0; e < b.count; e++)
            squares += b.reference.exact[e] * b.reference.exact[e];
        const double part = as_baseline.rmse / sqrt(squares / (double)b.count);
        assert_true(dists[i % 3] == FA_DIST_MEAN ? part < 0.006 : part > 0.01 && part < 0.035);
    }
}
