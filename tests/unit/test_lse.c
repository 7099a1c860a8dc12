/* The rule for the log-sum-exp: right ones pass, wrong ones never, and the words say where. */
#include "check/lse.h"
#include "unit.h"

#include <math.h>

/* 3 rows of 7 see no key when causal: 7 queries, 4 keys. */
static const fa_problem problem = {2, 3, 1, 7, 4, 16, true, 0.25f};
enum { ROWS = 2 * 3 * 7 };

typedef struct bench {
    fa_tensors tensors;
    fa_reference reference;
    float lse[ROWS];
} bench;

/* Every `step`th row is sampled; the log-sum-exp is right. */
static bench *open_bench(int64_t step, bool acc_fp16)
{
    bench *b = fa_alloc(sizeof *b);
    b->tensors = fa_tensors_make(&problem, FA_DIST_NORMAL, 7);
    CLEANUP(fa_reference_free) fa_reference every = reference_of(&problem, &b->tensors, 1, acc_fp16);
    for (int64_t i = 0; i < ROWS; i++)
        b->lse[i] = (float)every.lse[i];
    b->reference = reference_of(&problem, &b->tensors, step, acc_fp16);
    return b;
}

static void close_bench(bench **b)
{
    fa_reference_free(&(*b)->reference);
    fa_tensors_free(&(*b)->tensors);
    free(*b);
}

static fa_lse_verdict judge(const bench *b) { return fa_judge_lse(&problem, &b->reference, b->lse, false); }

TEST(right_ones_pass)
{
    CLEANUP(close_bench) bench *b = open_bench(5, false);
    fa_lse_verdict v = judge(b);
    assert_true(v.done && v.passed && v.mismatches == 0 && v.nonfinite == 0);
    assert_true(v.rows_checked == b->reference.row_count && v.max_abs_err < 1e-6);
    assert_string_equal(v.failure, "");
    for (int i = 0; i < ROWS; i++) /* what FP16 probabilities may cost; -inf stays */
        b->lse[i] += 4.8e-4f;
    v = judge(b);
    assert_true(v.passed && v.max_abs_err > 4.7e-4);
}

/* One row alone: tests/golden/log_sums.txt (test_diagnose.c) */
TEST(wrong_ones_fail)
{
    CLEANUP(close_bench) bench *b = open_bench(5, false);
    float right[ROWS];
    memcpy(right, b->lse, sizeof right);
    b->lse[5] = b->lse[12] = b->lse[41] = NAN;
    fa_lse_verdict v = judge(b);
    holds(v.failure, "3 rows should be finite, or -inf without keys; the first at batch 0 head 0 row 5: nan");
    memcpy(b->lse, right, sizeof right);
    b->lse[20] += 2e-3f;
    b->lse[40] -= 3e-3f;
    v = judge(b);
    assert_true(!v.passed && v.mismatches == 2 && v.nonfinite == 0 && v.max_abs_err > 2.9e-3);
    holds(v.failure, "|L-R| > 0.001 + 0.0001 |R| in 2 rows; worst at batch 1 head 2 row 5: ");
}

/* A larger error of a large value that allows it is not the worst, before or after the one that is wrong. */
TEST(the_worst_row_breaks_the_rule)
{
    const fa_problem full = {1, 1, 1, 3, 4, 16, false, 0.25f};
    for (int allowed = 0; allowed < 3; allowed += 2) {
        double exact[] = {1, 1, 1};
        float lse[] = {1, 1.25f, 1};
        int64_t rows[] = {0, 1, 2};
        const fa_reference reference = {.row_count = 3, .rows = rows, .lse = exact, .baseline_lse = exact};
        exact[allowed] = 1 << 14;
        lse[allowed] = (1 << 14) + 1;
        const fa_lse_verdict v = fa_judge_lse(&full, &reference, lse, false);
        assert_true(v.mismatches == 1 && v.worst.row == 1 && v.max_abs_err == 1.0);
        holds(v.failure, "row 1: 1.25, expected 1");
    }
}

/* The first row and the last, of the result and of the baseline. */
TEST(every_row_counts)
{
    const fa_problem full = {1, 1, 1, 3, 4, 16, false, 0.25f};
    for (int row = 0; row < 3; row++) {
        double exact[] = {1, 2, 3}, baseline[] = {1, 2, 3};
        float lse[] = {1, 2, 3};
        int64_t rows[] = {0, 1, 2};
        const fa_reference reference = {.row_count = 3, .rows = rows, .lse = exact, .baseline_lse = baseline};
        exact[row] = 0;
        baseline[row] = 0.5;
        lse[row] = 0.25f;
        const fa_lse_verdict v = fa_judge_lse(&full, &reference, lse, false);
        assert_true(!v.passed && v.mismatches == 1 && v.worst.row == row);
        assert_true(v.max_abs_err == 0.25 && v.baseline_max_abs_err == 0.5);
        lse[row] = 1; /* twice what the baseline is off by is within the tolerance */
        assert_true(fa_judge_lse(&full, &reference, lse, true).passed);
    }
}

/* FP16 accumulation may be off by twice what its baseline is off by; FP32 accumulation may not. */
TEST(the_lower_class_has_more_room)
{
    CLEANUP(close_bench) bench *b = open_bench(1, true);
    const double baseline = judge(b).baseline_max_abs_err;
    assert_true(baseline > 6e-4 && baseline < 0.1);
    for (int i = 0; i < ROWS; i++)
        b->lse[i] += (float)(1.9 * baseline);
    assert_true(fa_judge_lse(&problem, &b->reference, b->lse, true).passed);
    assert_false(fa_judge_lse(&problem, &b->reference, b->lse, false).passed);
    for (int i = 0; i < ROWS; i++)
        b->lse[i] += (float)(0.5 * baseline);
    assert_false(fa_judge_lse(&problem, &b->reference, b->lse, true).passed);
}

/* BF16 probabilities may add up wrong by 2^-8. */
TEST(bf16_has_eight_times_the_room)
{
    CLEANUP(close_bench) bench *b = open_bench(1, false);
    fa_problem bf16 = problem;
    bf16.dtype = FA_DTYPE_BF16;
    for (int i = 0; i < ROWS; i++)
        b->lse[i] += 7.5e-3f;
    assert_false(judge(b).passed);
    const fa_lse_verdict v = fa_judge_lse(&bf16, &b->reference, b->lse, false);
    assert_true(v.passed && v.atol == 8e-3);
    for (int i = 0; i < ROWS; i++)
        b->lse[i] += 2e-3f;
    assert_false(fa_judge_lse(&bf16, &b->reference, b->lse, false).passed);
    fa_problem fp8 = problem; /* as BF16, and a thousandth of the size */
    fp8.dtype = FA_DTYPE_E4M3;
    const fa_lse_verdict eight = fa_judge_lse(&fp8, &b->reference, b->lse, false);
    assert_true(eight.atol == 8e-3 && eight.rtol == 1e-3);
    for (int i = 0; i < ROWS; i++)
        b->lse[i] += 9e-3f;
    assert_false(fa_judge_lse(&fp8, &b->reference, b->lse, false).passed);
}

/* A sum of FP8 products of one sign loses 2^-14 of itself a product; a small log-sum-exp is of mixed signs. */
TEST(fp8_sums_of_one_sign_lose_more)
{
    fa_problem one = {1, 1, 1, 1, 4, 64, false, 1.0f};
    const struct {
        fa_dtype dtype;
        double exact;
        float got;
        bool passes;
    } row[] = {
        {FA_DTYPE_E4M3, 32, 32.038f, true},    {FA_DTYPE_E4M3, 32, 32.042f, false},
        {FA_DTYPE_E4M3, 1056, 1061.0f, true},  {FA_DTYPE_E4M3, -1056, -1050.9f, false},
        {FA_DTYPE_BF16, 1056, 1056.2f, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        int64_t first = 0;
        double exact = row[i].exact;
        const fa_reference reference = {.row_count = 1, .rows = &first, .lse = &exact, .baseline_lse = &exact};
        one.dtype = row[i].dtype;
        assert_int_equal(fa_judge_lse(&one, &reference, &row[i].got, false).passed, row[i].passes);
    }
}
