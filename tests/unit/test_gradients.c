/* The expected gradients against central differences of the forward, and the rules that a kernel's are judged by. */
#include "check/device_reference.h"
#include "check/gradient_rules.h"
#include "check/judge.h"
#include "run/buffers.h"
#include "unit.h"

#include <math.h>

static fa_reason why;

/* Two sequences of 2 and 3 queries, 3 and 2 keys, with a gap between them. */
static const fa_lengths lengths = {.count = 2, .q = {2, 3}, .kv = {3, 2}, .q_start = {0, 3, 6}, .kv_start = {0, 4, 6}};

/* batch, heads, kv_heads, seq_q, seq_kv, dim, causal, scale; and features */
static const fa_problem problems[] = {{1, 4, 2, 3, 4, 16, true, 0.25f},
                                      {2, 1, 1, 5, 3, 16, true, 0.5f, .dim_v = 24, .sinks = true},
                                      {1, 2, 1, 4, 6, 24, false, 0.4f, .dim_v = 16, .windowed = true, .window_left = 2,
                                       .window_right = 1, .softcap = 1.5f, .sinks = true},
                                      {1, 2, 2, 6, 6, 16, true, 0.25f, .chunk = 3, .alibi = true, .softcap = 2.0f},
                                      {2, 2, 1, 3, 3, 16, false, 0.25f, .lengths = &lengths, .sinks = true}};
enum { PROBLEMS = sizeof problems / sizeof *problems };

typedef struct bench {
    fa_problem problem;
    fa_tensors tensors;
    double *forward;
    fa_gradients expected;
    uint16_t *output;
} bench;

static double step(const fa_problem *p) { return p->dtype == FA_DTYPE_BF16 ? 0.0 : 1.0 / 64; }

/* Elements become multiples of the step, below 2: then one with a step or two added is a number of the type, too. */
static void coarsen(const fa_problem *p, uint16_t *elements, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (elements[i] != FA_POISON)
            elements[i] = fa_element_of_float(
                p->dtype,
                (float)(round(fmod((double)fa_element_to_float(p->dtype, elements[i]), 1.9) / step(p)) * step(p)));
}

static bench open_bench(const fa_problem *from, bool coarse)
{
    bench b = {.problem = *from};
    b.problem.backward = true;
    b.problem.dim_v = fa_problem_dim_v(from);
    b.tensors = fa_tensors_make(&b.problem, FA_DIST_NORMAL, 5);
    if (coarse) {
        coarsen(from, b.tensors.q, b.tensors.q_count);
        coarsen(from, b.tensors.k, b.tensors.k_count);
        coarsen(from, b.tensors.v, b.tensors.v_count);
    }
    b.forward = fa_gradients_forward(&b.problem, &b.tensors);
    fa_gradients_give(&b.problem, b.forward, &b.tensors);
    b.expected = fa_gradients_make(&b.problem, &b.tensors, b.forward, 16, 16, 1);
    b.output = fa_alloc(fa_gradient_offset(&b.problem, FA_GRADS) * sizeof *b.output);
    return b;
}

static void close_bench(bench *b)
{
    fa_gradients_free(&b->expected);
    fa_tensors_free(&b->tensors);
    free(b->forward);
    free(b->output);
}

/* The sum of dO O, whose derivatives the gradients are. */
static double loss_of(const bench *b)
{
    const fa_problem *p = &b->problem;
    const int32_t dim = fa_problem_dim_v(p);
    double *forward = fa_gradients_forward(p, &b->tensors), loss = 0.0;
    for (int64_t row = 0; row < fa_problem_rows(p); row++)
        for (int64_t i = row * dim; fa_problem_row(p, row).used && i < (row + 1) * dim; i++)
            loss += (double)fa_element_to_float(p->dtype, b->tensors.dout[i]) * forward[i];
    free(forward);
    return loss;
}

/* Central differences of two widths, so that the third power of the step drops out. */
static double slope_of(const bench *b, uint16_t *element, float *sink, double h)
{
    static const double moves[4] = {1.0, -1.0, 2.0, -2.0};
    const float before = element != NULL ? fa_element_to_float(b->problem.dtype, *element) : *sink;
    double loss[4];
    for (int i = 0; i < 4; i++) {
        const float moved = before + (float)(moves[i] * h);
        if (element != NULL)
            *element = fa_element_of_float(b->problem.dtype, moved);
        else
            *sink = moved;
        assert_true(element == NULL || fa_element_to_float(b->problem.dtype, *element) == moved);
        loss[i] = loss_of(b);
    }
    if (element != NULL)
        *element = fa_element_of_float(b->problem.dtype, before);
    else
        *sink = before;
    return (8.0 * (loss[0] - loss[1]) - (loss[2] - loss[3])) / (12.0 * h);
}

TEST(they_are_the_derivatives_of_the_forward)
{
    for (int n = 0; n < PROBLEMS; n++) {
        CLEANUP(close_bench) bench b = open_bench(&problems[n], true);
        uint16_t *const inputs[3] = {b.tensors.q, b.tensors.k, b.tensors.v};
        for (int32_t tensor = 0; tensor < FA_GRADS; tensor++) {
            const fa_gradient *g = &b.expected.of[tensor];
            assert_true(g->row_count > 0 || tensor == FA_GRAD_DSINKS);
            for (int64_t i = 0; i < g->row_count * g->columns; i++) {
                const int64_t at = g->rows[i / g->columns] * g->columns + i % g->columns;
                const double slope = tensor == FA_GRAD_DSINKS
                                         ? slope_of(&b, NULL, &b.tensors.scores.sinks[at], 1.0 / 64)
                                         : slope_of(&b, inputs[tensor] + at, NULL, 1.0 / 64);
                if (!(fabs(slope - g->exact[i]) <= 2e-6 * (1.0 + fabs(slope))))
                    fail_msg("problem %d, %s, element %lld: %.9g, by differences %.9g", n, fa_gradient_name(tensor),
                             (long long)at, g->exact[i], slope);
            }
        }
    }
}

/* What a kernel would write: these values, rounded. */
static void write_output(bench *b, int32_t tensor, const double *values)
{
    const fa_gradient *g = &b->expected.of[tensor];
    uint16_t *to = b->output + fa_gradient_offset(&b->problem, tensor);
    for (int64_t i = 0; i < g->row_count * g->columns; i++) {
        const int64_t at = g->rows[i / g->columns] * g->columns + i % g->columns;
        const float value = (float)values[i];
        if (tensor == FA_GRAD_DSINKS)
            memcpy(to + 2 * at, &value, sizeof value);
        else
            to[at] = fa_element_of_float(b->problem.dtype, value);
    }
}

static void write_right(bench *b)
{
    for (int32_t tensor = 0; tensor < FA_GRADS; tensor++)
        write_output(b, tensor, b->expected.of[tensor].exact);
}

static fa_gradient_verdict judge(const bench *b, int32_t tensor)
{
    return fa_judge_gradient(&b->problem, tensor, &b->expected.of[tensor], b->output, &b->tensors, b->forward);
}

static const fa_problem larger = {2, 4, 2, 64, 64, 32, true, 0.2f, .softcap = 1.5f, .sinks = true};

TEST(right_ones_pass_and_so_does_the_baseline)
{
    for (int32_t dtype = FA_DTYPE_FP16; dtype <= FA_DTYPE_BF16; dtype++)
        for (int n = 0; n <= PROBLEMS; n++) {
            fa_problem problem = n < PROBLEMS ? problems[n] : larger;
            problem.dtype = dtype;
            CLEANUP(close_bench) bench b = open_bench(&problem, false);
            for (int which = 0; which < 2; which++)
                for (int32_t tensor = 0; tensor < FA_GRADS; tensor++) {
                    const fa_gradient *g = &b.expected.of[tensor];
                    const int64_t count = g->row_count * g->columns;
                    FREED double *values = fa_alloc(((size_t)count + 1) * sizeof *values);
                    for (int64_t i = 0; i < count; i++)
                        values[i] = which == 0 ? g->exact[i] : (double)g->baseline[i];
                    write_output(&b, tensor, values);
                    const fa_gradient_verdict v = judge(&b, tensor);
                    if (!v.passed)
                        fail_msg("problem %d, type %d, %d: %s", n, dtype, which, v.failure);
                }
        }
}

TEST(zeros_poison_and_nan_fail)
{
    CLEANUP(close_bench) bench b = open_bench(&larger, false);
    for (int32_t tensor = 0; tensor < FA_GRADS; tensor++) {
        const size_t from = fa_gradient_offset(&b.problem, tensor), to = fa_gradient_offset(&b.problem, tensor + 1);
        write_right(&b);
        assert_true(judge(&b, tensor).passed);
        memset(b.output + from, 0, (to - from) * sizeof *b.output);
        fa_gradient_verdict v = judge(&b, tensor);
        assert_true(!v.passed && strstr(v.failure, "zeros") != NULL);
        assert_true(v.rms > 0 && fabs(v.rmse / v.rms - 1.0) < 1e-3);
        memset(b.output + from, 0xFF, (to - from) * sizeof *b.output);
        v = judge(&b, tensor);
        assert_true(!v.passed && strstr(v.failure, "not finite") != NULL && strstr(v.failure, "never written") != NULL);
        write_right(&b);
        memset(b.output + to - 2, 0xFF, 2 * sizeof *b.output); /* the last element alone, and no other row is accused */
        v = judge(&b, tensor);
        assert_true(!v.passed && strstr(v.failure, "wrong rows: 1 of ") != NULL);
    }
}

/* The rules, each alone: an element, the whole, a small row beside large ones. */
TEST(each_rule_catches_what_the_others_forgive)
{
    CLEANUP(close_bench) bench b = open_bench(&larger, false);
    const fa_gradient *dv = &b.expected.of[FA_GRAD_DV];
    const int64_t count = dv->row_count * dv->columns, last = 63 * dv->columns; /* the last key: one row sees it */
    FREED double *values = fa_alloc((size_t)count * sizeof *values);
    const struct {
        int64_t first, end;
        double factor, add;
        const char *words;
    } cases[] = {{40, 41, 1.0, 0.03, "|error| >"},
                 {0, count, 1.0009, 0.0, "rmse"},
                 {last, last + dv->columns, 1.02, 0.0, "the error of a row is"}};
    for (int n = 0; n < 3; n++) {
        for (int64_t i = 0; i < count; i++) {
            const bool inside = i >= cases[n].first && i < cases[n].end;
            values[i] = dv->exact[i] * (inside ? cases[n].factor : 1.0) + (inside ? cases[n].add : 0.0);
        }
        write_output(&b, FA_GRAD_DV, values);
        const fa_gradient_verdict v = judge(&b, FA_GRAD_DV);
        if (v.passed || strstr(v.failure, cases[n].words) == NULL)
            fail_msg("case %d: %s", n, v.failure);
    }
}

/* All of a row's error may be in one column: an element may be off by twice what rounding makes of its row. */
TEST(an_element_may_have_the_error_of_its_row)
{
    CLEANUP(close_bench) bench b = open_bench(&larger, false);
    fa_gradient *dv = &b.expected.of[FA_GRAD_DV];
    write_right(&b);
    dv->noise[1] = 0.02 * judge(&b, FA_GRAD_DV).rms;
    for (int n = 1; n <= 3; n++) {
        const double off = dv->exact[40] + 0.8 * n * dv->noise[1];
        b.output[fa_gradient_offset(&b.problem, FA_GRAD_DV) + 40] = fa_float_to_half((float)off);
        assert_int_equal(judge(&b, FA_GRAD_DV).passed, n < 3);
    }
}

/* With gradients beyond FP16. */
static bench open_large(const fa_problem *problem)
{
    bench b = open_bench(problem, false);
    for (size_t i = 0; i < fa_problem_o_count(problem); i++)
        b.tensors.dout[i] = fa_float_to_half(8192.0f * fa_half_to_float(b.tensors.dout[i]));
    fa_gradients_free(&b.expected);
    b.expected = fa_gradients_make(problem, &b.tensors, b.forward, 16, 16, 1);
    return b;
}

/* Where the type has no such number an infinity of its sign is right, and no other. */
TEST(infinities_are_right_where_the_type_ends)
{
    fa_problem problem = larger;
    problem.seq_kv = 2; /* of many rows each */
    problem.causal = false;
    CLEANUP(close_bench) bench b = open_large(&problem);
    const fa_gradient *dv = &b.expected.of[FA_GRAD_DV];
    int64_t beyond = -1, count = 0;
    for (int64_t i = 0; i < dv->row_count * dv->columns; i++)
        if (fabs(dv->exact[i]) > 65504.0) {
            beyond = i;
            count++;
        }
    write_right(&b);
    uint16_t *elements = b.output + fa_gradient_offset(&b.problem, FA_GRAD_DV);
    assert_true(count > 1 && judge(&b, FA_GRAD_DV).passed);
    elements[beyond] ^= 0x8000;
    assert_false(judge(&b, FA_GRAD_DV).passed);
    elements[beyond] = FA_POISON;
    assert_false(judge(&b, FA_GRAD_DV).passed);
}

/* A row of keys that is not in the sample. */
TEST(infinities_outside_the_sample_are_judged_by_the_cpu)
{
    fa_problem problem = {1, 1, 1, 4096, 1100, 256, false, 1.0f};
    CLEANUP(close_bench) bench b = open_large(&problem);
    memset(b.output, 0, fa_gradient_offset(&b.problem, FA_GRADS) * sizeof *b.output);
    write_right(&b);
    const fa_gradient *dk = &b.expected.of[FA_GRAD_DK];
    int64_t row = 0, beyond = -1, *none = fa_alloc(sizeof *none), *one = fa_alloc(sizeof *one);
    while (row < dk->row_count && dk->rows[row] == row)
        row++;
    *one = row;
    CLEANUP(fa_gradients_free)
    fa_gradients more = fa_gradients_of_rows(&b.problem, &b.tensors, b.forward, none, 0, one, 1);
    uint16_t *elements = b.output + fa_gradient_offset(&b.problem, FA_GRAD_DK) + row * problem.dim;
    for (int32_t d = 0; d < problem.dim; d++) {
        elements[d] = fa_float_to_half((float)more.of[FA_GRAD_DK].exact[d]);
        beyond = fa_element_is_finite(FA_DTYPE_FP16, elements[d]) ? beyond : d;
    }
    fa_device device = {0};
    fa_candidate candidate = {.device = &device};
    fa_draw draw = {.as_asked = true};
    fa_check_result result = {0};
    fa_kept kept = {.tensors = b.tensors, .forward = b.forward, .gradients = b.expected, .has_gradients = true};
    fa_session s = {.candidate = &candidate, .problem = &b.problem, .draw = &draw, .kept = &kept, .result = &result};
    s.asked = FA_REFERENCE_CPU;
    s.output = b.output;
    assert_true(beyond >= 0);
    if (fa_judge_all(&s, &why) != FA_PASS)
        fail_msg("%s", why.text);
    assert_string_equal(result.gradients[FA_GRAD_DK].failure, "");
    elements[beyond] ^= 0x8000;
    ends_with(fa_judge_all(&s, &why), FA_WRONG, &why, "not finite");
}

/* Each mistake is named by the tensor that shows it. */
TEST(mistakes_are_named)
{
    const struct {
        fa_slip slip;
        int32_t tensor;
        double factor;
        const char *words;
    } cases[] = {{{.delta_more = -1}, FA_GRAD_DQ, 1, "delta is missing"},
                 {{.delta_more = -2}, FA_GRAD_DK, 1, "delta is added"},
                 {{.modulo = true}, FA_GRAD_DQ, 1, "h % kv_heads"},
                 {{.modulo = true}, FA_GRAD_DV, 1, "h % kv_heads"},
                 {{.delta_of_dout = true}, FA_GRAD_DK, 1, "dO is taken for O"},
                 {{.no_slope = true}, FA_GRAD_DQ, 1, "the softcap's derivative is missing"},
                 {{.no_mask = true}, FA_GRAD_DV, 1, "the mask is missing"},
                 {{.later = 1}, FA_GRAD_DV, 1, "one too late"},
                 {{.later = -1}, FA_GRAD_DV, 1, "one too early"},
                 {{.lost = 2}, FA_GRAD_DK, 1, "query head 1 of each group is lost"},
                 {{.lost = 1}, FA_GRAD_DV, 1, "query head 0 of each group is lost"},
                 {{.delta_of = 7}, FA_GRAD_DQ, 1, "delta is that of another head"},
                 {{.delta_of = 2}, FA_GRAD_DK, 1, "delta is that of another head"},
                 {{.lse_of = 7}, FA_GRAD_DV, 1, "log-sum-exps are those of another head"},
                 {{.lse_of = 2}, FA_GRAD_DK, 1, "log-sum-exps are those of another head"},
                 {{.lse_of = 4}, FA_GRAD_DSINKS, 1, "log-sum-exps are those of another head"},
                 {{.delta_of = 1}, FA_GRAD_DSINKS, 1, "delta is that of another head"},
                 {{.delta_of = FA_NEXT_ROW}, FA_GRAD_DQ, 1, "delta is that of another row or batch"},
                 {{.lse_of = FA_ROW_BEFORE}, FA_GRAD_DV, 1, "log-sum-exps are those of another row or batch"},
                 {{.sink_of = 3}, FA_GRAD_DSINKS, 1, "the sink is that of another head"},
                 {{.lse_times = 0.6931471805599453}, FA_GRAD_DQ, 1, "taken for logarithms to base 2"},
                 {{.lse_times = 1.4426950408889634}, FA_GRAD_DV, 1, "in units of log2 e, scores are not"},
                 {{.lost = 0}, FA_GRAD_DK, 5, "the scale is missing"},
                 {{.lost = 0}, FA_GRAD_DQ, 0.2, "the scale multiplies twice"},
                 {{.lost = 0}, FA_GRAD_DV, -1, "the sign is wrong"},
                 {{.lost = 0}, FA_GRAD_DV, 3, "the right one times 3"}};
    fa_problem problem = larger;
    problem.heads = 6; /* three of a group: one that is lost leaves two */
    CLEANUP(close_bench) bench b = open_bench(&problem, false);
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        const fa_gradient *g = &b.expected.of[cases[n].tensor];
        const int64_t count = g->row_count * g->columns;
        FREED double *values = fa_alloc((size_t)count * sizeof *values);
        fa_gradients_slip(&b.problem, &b.tensors, b.forward, &cases[n].slip, cases[n].tensor, g->rows, g->row_count,
                          values);
        for (int64_t i = 0; i < count; i++)
            values[i] *= cases[n].factor;
        write_output(&b, cases[n].tensor, values);
        const fa_gradient_verdict v = judge(&b, cases[n].tensor);
        if (v.passed || strstr(v.failure, cases[n].words) == NULL)
            fail_msg("case %zu: %s", n, v.failure);
    }
    const double *right = b.expected.of[FA_GRAD_DSINKS].exact;
    write_output(&b, FA_GRAD_DSINKS, (double[]){right[1], right[0], right[3], right[2], right[5], right[4]});
    assert_non_null(strstr(judge(&b, FA_GRAD_DSINKS).failure, "each head has that of another"));
    write_output(&b, FA_GRAD_DV, b.expected.of[FA_GRAD_DK].exact);
    assert_non_null(strstr(judge(&b, FA_GRAD_DV).failure, "dK and dV have changed places"));
}

/* What the plain kernel makes is compared in every tensor, row and column. */
TEST(gradients_of_the_plain_kernel_agree_with_the_cpu)
{
    for (int n = 0; n < PROBLEMS; n++) {
        CLEANUP(close_bench) bench b = open_bench(&problems[n], false);
        const fa_kept kept = {.gradients = b.expected};
        size_t at[FA_GRADS + 1] = {0};
        for (int32_t tensor = 0; tensor < FA_GRADS; tensor++)
            at[tensor + 1] =
                at[tensor] + (size_t)(fa_gradient_rows(&b.problem, tensor) * b.expected.of[tensor].columns);
        FREED double *plain = fa_alloc(at[FA_GRADS] * sizeof *plain);
        for (int32_t tensor = 0; tensor < FA_GRADS; tensor++) {
            const fa_gradient *g = &b.expected.of[tensor];
            for (int64_t i = 0; i < g->row_count; i++)
                memcpy(plain + at[tensor] + (size_t)(g->rows[i] * g->columns), g->exact + i * g->columns,
                       (size_t)g->columns * sizeof *plain);
        }
        assert_true(fa_plain_gradients_agree(&b.problem, &kept, plain, &why));
        for (int32_t tensor = 0; tensor < FA_GRADS; tensor++) {
            const fa_gradient *g = &b.expected.of[tensor];
            if (g->row_count == 0)
                continue;
            double *last = plain + at[tensor] + (size_t)(g->rows[g->row_count - 1] * g->columns + g->columns - 1);
            const double was = *last;
            *last += 1e-3;
            assert_false(fa_plain_gradients_agree(&b.problem, &kept, plain, &why));
            holds(why.text, fa_gradient_name(tensor));
            *last = was;
        }
    }
}

/* A sample of a long problem is right where it is: the same numbers as of all rows. */
TEST(sampled_rows_are_those_of_the_whole)
{
    const fa_problem problem = {1, 2, 1, 40, 50, 16, false, 0.3f};
    CLEANUP(close_bench) bench b = open_bench(&problem, false);
    int64_t *q = fa_alloc(sizeof *q), *k = fa_alloc(sizeof *k);
    *q = 57;
    *k = 31;
    CLEANUP(fa_gradients_free) fa_gradients some = fa_gradients_of_rows(&b.problem, &b.tensors, b.forward, q, 1, k, 1);
    for (int32_t tensor = 0; tensor < FA_GRAD_DSINKS; tensor++) {
        const int64_t row = tensor == FA_GRAD_DQ ? 57 : 31, columns = some.of[tensor].columns;
        assert_memory_equal(some.of[tensor].exact, b.expected.of[tensor].exact + row * columns,
                            (size_t)columns * sizeof(double));
    }
}
