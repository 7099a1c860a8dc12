/* The FP64 reference's sampling and its baseline. Its values: test_features.c. */
#include "check/choose_rows.h"
#include "check/reference.h"
#include "unit.h"

#include <math.h>
#include <omp.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double baseline_rmse(const fa_problem *p, const fa_tensors *t, bool acc_fp16)
{
    CLEANUP(fa_reference_free) fa_reference r = fa_reference_make(p, t, 64, acc_fp16, 1);
    double squares = 0.0;
    for (int64_t i = 0; i < r.row_count * p->dim; i++)
        squares += pow((double)fa_element_to_float(p->dtype, r.baseline[i]) - r.exact[i], 2.0);
    return sqrt(squares / (double)(r.row_count * p->dim));
}

/* The baseline is off by what FP16 is off by; the lower class by clearly more. */
TEST(baseline_is_naive_fp16)
{
    fa_problem p = shape(1, 4, 4, 256, 512, 64, false);
    CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_NORMAL, 3);
    const double fp32 = baseline_rmse(&p, &t, false), fp16 = baseline_rmse(&p, &t, true);
    assert_true(fp32 > 1e-5 && fp32 < 1e-4);
    assert_true(fp16 > 4.0 * fp32 && fp16 < 1e-2);
    p.windowed = true;
    p.window_left = 40; /* a row's keys begin within a tile */
    assert_true(baseline_rmse(&p, &t, false) < 1e-3);
}

/* BF16 has 3 bits less: the baseline is off by about 8 times as much. */
TEST(baseline_in_bf16)
{
    fa_problem p = shape(1, 4, 4, 64, 512, 64, false);
    CLEANUP(fa_tensors_free) fa_tensors half = fa_tensors_make(&p, FA_DIST_NORMAL, 3);
    const double fp16 = baseline_rmse(&p, &half, false);
    p.dtype = FA_DTYPE_BF16;
    CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_NORMAL, 3);
    const double bf16 = baseline_rmse(&p, &t, false);
    assert_true(bf16 > 5.0 * fp16 && bf16 < 12.0 * fp16);
}

/* One key: the baseline's log-sum-exp is the logit, rounded to FP16. Products of halves that lie between two of them,
 * midway and beside it, of all sizes. */
TEST(logits_are_rounded_to_the_nearest_even)
{
    fa_problem p = shape(1, 1, 1, 1, 1, 16, false);
    p.scale = 1.0f;
    for (int exponent = -24; exponent <= 14; exponent++)
        for (int i = 0; i < 64; i++) {
            uint16_t q[16] = {0}, k[16] = {0}, v[16] = {0};
            q[0] = fa_float_to_half(ldexpf(i % 2 ? 1.5f : 1.0f, exponent / 2));
            k[0] =
                fa_float_to_half(ldexpf(i % 4 < 2 ? 1.0f + 0.0009765625f * (float)i : -1.0f, exponent - exponent / 2));
            q[1] = fa_float_to_half(i % 3 ? 0x1p-14f : 0.0f);
            k[1] = fa_float_to_half(ldexpf(i % 3 == 1 ? 1.0f : -1.0f, exponent > 0 ? exponent - 12 : -12));
            const fa_tensors t = {.q = q, .k = k, .v = v};
            const float logit =
                fa_half_to_float(q[0]) * fa_half_to_float(k[0]) + fa_half_to_float(q[1]) * fa_half_to_float(k[1]);
            CLEANUP(fa_reference_free) fa_reference r = fa_reference_make(&p, &t, 16, false, 1);
            assert_true(r.baseline_lse[0] == (double)fa_half_to_float(fa_float_to_half(logit)));
        }
}

/* A logit beyond FP16 must not turn the baseline, and with it the limits, into infinity. */
TEST(baseline_stays_finite)
{
    fa_problem p = shape(1, 1, 1, 32, 64, 64, false);
    p.scale = 1e5f;
    CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_NORMAL, 3);
    for (int acc_fp16 = 0; acc_fp16 < 2; acc_fp16++) {
        CLEANUP(fa_reference_free) fa_reference r = fa_reference_make(&p, &t, 16, acc_fp16, 3);
        for (int64_t i = 0; i < r.row_count * 64; i++)
            assert_true(isfinite(fa_half_to_float(r.baseline[i])) && isfinite(r.exact[i]));
    }
}

/* One row, two keys: V is 1 for the first, 0 for the second, so that the output is the first one's weight. */
static fa_reference of_two_keys(fa_dtype dtype, float scale, float first, float second, bool acc_fp16)
{
    uint16_t q[16] = {0}, k[32] = {0}, v[32] = {0};
    const fa_problem p = {1, 1, 1, 1, 2, 16, false, scale, dtype};
    q[0] = v[0] = fa_element_of_float(dtype, 1.0f);
    k[0] = fa_element_of_float(dtype, first);
    k[16] = fa_element_of_float(dtype, second);
    const fa_tensors t = {.q = q, .k = k, .v = v, .q_count = 16, .k_count = 32, .v_count = 32};
    return fa_reference_make(&p, &t, 16, acc_fp16, 1);
}

static double weight_at(double gap) { return 1.0 / (1.0 + exp(-gap)); }

/* How much of the weights moves when the larger score is a step lower, and with P's rounding. Scores that FP16 cannot
 * hold are FP32's, and the larger one is then lower by what FP32 sums may lose; they are not cut off. */
TEST(scores_beyond_the_type_stay_fp32)
{
    const struct {
        fa_dtype dtype;
        float scale, first, second;
        double off, lowered, roundoff;
    } cases[] = {{FA_DTYPE_FP16, 1.0f, 4.0f, 3.0f, 0x1p-8, 0, 0x1p-11},
                 {FA_DTYPE_FP16, 1.0f, 3.0f, 4.0f, 0x1p-8, 0, 0x1p-11},
                 {FA_DTYPE_FP16, 1.0f, 3.0f, -4.0f, 0x1p-8, 0, 0x1p-11}, /* of the larger size */
                 {FA_DTYPE_FP16, 1.0f, 0.5f, -0.25f, 0x1p-11, 0, 0x1p-11},
                 {FA_DTYPE_BF16, 1.0f, 4.0f, 3.0f, 0x1p-5, 0, 0x1p-8},
                 {FA_DTYPE_FP16, 1.0f, 65504.0f, 65472.0f, 65504.0 / 1024, 0, 0x1p-11},
                 {FA_DTYPE_FP16, 32.0f, 4096.0f, 4094.0f, 0.5, 0.5, 0x1p-11},
                 {FA_DTYPE_FP16, 2097152.0f, 0.5f, 0.5f, 4.0, 4.0, 0x1p-11},
                 {FA_DTYPE_BF16, 2097152.0f, 1.0f, 0.5f, 16384.0, 0, 0x1p-8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double one =
            (double)fa_element_to_float(cases[i].dtype, fa_element_of_float(cases[i].dtype, cases[i].first));
        const double two =
            (double)fa_element_to_float(cases[i].dtype, fa_element_of_float(cases[i].dtype, cases[i].second));
        const double gap = fabs(one - two) * (double)cases[i].scale, top = weight_at(gap - cases[i].lowered);
        fa_reference r = of_two_keys(cases[i].dtype, cases[i].scale, cases[i].first, cases[i].second, false);
        const double want = weight_at(gap) - weight_at(gap - cases[i].off) + cases[i].roundoff * (1.0 - weight_at(gap));
        const double got = (double)fa_element_to_float(cases[i].dtype, r.baseline[0]);
        if (fabs(r.sway[0] - want) > 1e-4 * want || fabs(got - (one >= two ? top : 1.0 - top)) > cases[i].roundoff)
            fail_msg("case %zu: sway %g, not %g; weight %g", i, r.sway[0], want, got);
        fa_reference_free(&r);
    }
    CLEANUP(fa_reference_free) fa_reference r = of_two_keys(FA_DTYPE_FP16, 1.0f, 4.0f, 3.0f, true);
    assert_true(isinf(r.sway[0]));
}

TEST(threads_do_not_matter)
{
    const fa_problem p = shape(2, 3, 1, 70, 200, 40, true);
    CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_OUTLIER, 3);
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    CLEANUP(fa_reference_free) fa_reference a = fa_reference_make(&p, &t, 16, false, 3);
    omp_set_num_threads(3);
    CLEANUP(fa_reference_free) fa_reference b = fa_reference_make(&p, &t, 16, false, 3);
    omp_set_num_threads(threads);
    assert_memory_equal(a.exact, b.exact, (size_t)a.row_count * 40 * sizeof *a.exact);
    assert_memory_equal(a.baseline, b.baseline, (size_t)a.row_count * 40 * sizeof *a.baseline);
}

/* Too much work for all rows: ascending, without repeats, every head seen, ends of tiles among them, values right. */
TEST(long_sequences_are_sampled)
{
    const fa_problem p = shape(1, 4, 2, 5000, 5000, 16, true);
    CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_NORMAL, 3);
    const clock_t before = clock(); /* of the processors: how busy the machine is does not matter */
    fa_reference r = fa_reference_make(&p, &t, 48, false, 3), other = fa_reference_make(&p, &t, 1, false, 7);
    assert_true((double)(clock() - before) / CLOCKS_PER_SEC < 20.0);
    assert_true(r.row_count > 1000 && r.row_count < 4 * 5000);
    assert_true(r.rows[0] == 0 && other.rows[0] == 0);
    assert_int_equal(r.rows[r.row_count - 1], 4 * 5000 - 1);
    golden g = {0}; /* the same rows on every machine; seed 7 draws neither the first row nor the last */
    golden_say(&g, "%lld rows %016llx, %lld rows %016llx\n", (long long)r.row_count,
               (unsigned long long)golden_digest(0, r.rows, (size_t)r.row_count * sizeof *r.rows),
               (long long)other.row_count,
               (unsigned long long)golden_digest(0, other.rows, (size_t)other.row_count * sizeof *other.rows));
    for (uint64_t seed = 0; seed < 3; seed++) { /* without the values */
        int64_t count = 0, *rows = fa_choose_rows(&p, 64, seed, &count);
        golden_say(&g, "seed %d: %lld rows %016llx\n", (int)seed, (long long)count,
                   (unsigned long long)golden_digest(0, rows, (size_t)count * sizeof *rows));
        free(rows);
    }
    golden_compare(&g, "sampled_rows.txt");
    int64_t heads[4] = {0}, firsts = 0, lasts = 0;
    for (int64_t i = 0; i < r.row_count; i++) {
        assert_true(i == 0 || r.rows[i] > r.rows[i - 1]);
        const int64_t row = r.rows[i] % 5000;
        heads[r.rows[i] / 5000]++;
        firsts += row % 48 == 0;
        lasts += row % 48 == 47 || row == 4999;
        if (i % 97 == 0) {
            int64_t *alone = fa_alloc(sizeof *alone);
            *alone = r.rows[i];
            CLEANUP(fa_reference_free) fa_reference one = fa_reference_of_rows(&p, &t, alone, 1, false);
            assert_memory_equal(one.exact, r.exact + i * 16, 16 * sizeof *one.exact);
        }
    }
    for (int head = 0; head < 4; head++)
        assert_true(heads[head] > r.row_count / 8);
    assert_true(firsts > r.row_count / 10 && lasts > r.row_count / 10);
    assert_true(r.row_count != other.row_count ||
                memcmp(r.rows, other.rows, (size_t)r.row_count * sizeof *r.rows) != 0);
    fa_reference_free(&r);
    assert_true(r.row_count == 0 && r.rows == NULL && r.exact == NULL && r.baseline == NULL && r.lse == NULL);
    fa_reference_free(&other);
}

/* Rows between sequences are never taken, and of every sequence the first and the last row of a head are. */
TEST(the_ends_of_every_sequence_are_sampled)
{
    const fa_lengths lengths[2] = {{3, {0, 2, 3}, {3, 2, 4}, {0, 1, 4, 9}, {0, 4, 6, 10}},
                                   {3, {0, 900, 1600}, {7, 900, 1600}, {0, 1, 905, 2510}, {0, 8, 911, 2520}}};
    for (uint64_t seed = 0; seed < 12; seed++) {
        const uint64_t of = seed % 2;
        fa_problem p = shape(3, 4, 2, lengths[of].q[2], lengths[of].kv[2], 256, false);
        p.lengths = &lengths[of];
        int64_t count = 0, *rows = fa_choose_rows(&p, 64, seed, &count), ends = 0;
        assert_int_equal(fa_chooses_all_rows(&p), of == 0);
        if (of == 0 ? count != 4 * 5 : count >= 4 * 2500)
            fail_msg("seed %d: %lld rows", (int)seed, (long long)count);
        for (int64_t i = 0; i < count; i++) {
            const fa_row at = fa_problem_row(&p, rows[i]);
            assert_true(at.used && (i == 0 || rows[i] > rows[i - 1]));
            ends += at.head == at.batch % 4 && (at.row == 0 || at.row == at.seq_q - 1);
        }
        assert_int_equal(ends, 4);
        free(rows);
    }
}

/* Sixteen rows at least, whatever a row costs: all where there are no more. */
TEST(sixteen_rows_whatever_they_cost)
{
    for (int32_t rows = 1; rows <= 18; rows++) {
        const fa_problem few = shape(1, 1, 1, rows, 1 << 24, 256, false);
        int64_t count = 0, *chosen = fa_choose_rows(&few, 8, 5, &count);
        assert_true(rows <= 16 ? count == rows : count <= 16);
        assert_true(chosen[0] == 0 && chosen[count - 1] == rows - 1);
        for (int64_t i = 0; i < count && rows <= 16; i++)
            assert_int_equal(chosen[i], i);
        free(chosen);
    }
    fa_problem wide = shape(1, 1, 1, 4096, 4096, 16, false);
    assert_true(fa_chooses_all_rows(&wide));
    wide.dim_v = 512; /* the wider of the two counts */
    assert_false(fa_chooses_all_rows(&wide));
    const fa_problem many = shape(2, 3, 1, 100000, 1 << 24, 16, false);
    int64_t count = 0, *chosen = fa_choose_rows(&many, 8, 5, &count);
    assert_int_equal(count, 16);
    assert_true(chosen[0] == 0 && chosen[15] == 599999);
    free(chosen);
    chosen = fa_choose_rows(&many, 8, 0, &count); /* seed 0 draws, too: not the first row of each stratum */
    for (int64_t i = 1, stratum = 1; i < count; i++)
        if (chosen[i] == 600000 * stratum / 7)
            assert_true(++stratum < 7);
    free(chosen);
}

/* So many keys that a block has one row: the mean of V, and the logarithm of their number. */
TEST(more_keys_than_a_block_holds)
{
    const int32_t keys = (1 << 20) + 1;
    const fa_problem p = shape(1, 1, 1, 3, keys, 16, false);
    const size_t bytes = fa_problem_k_count(&p) * sizeof(uint16_t);
    CLEANUP(fa_tensors_free)
    fa_tensors t = {.q = fa_alloc(3 * 16 * sizeof(uint16_t)), .k = fa_alloc(bytes), .v = fa_alloc(bytes)};
    for (size_t i = 0; i < fa_problem_k_count(&p); i++)
        t.v[i] = fa_float_to_half(0.5f);
    CLEANUP(fa_reference_free) fa_reference r = fa_reference_make(&p, &t, 64, false, 3);
    assert_int_equal(r.row_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(fabs(r.lse[i] - log(keys)) < 1e-9);
        assert_true(fabs(r.exact[i * 16 + 15] - 0.5) < 1e-9);
    }
}

/* All rows where they cost no more than four canonical problems and R has no more than 2^25 elements; else as many as
 * fit the budget. */
TEST(all_rows_up_to_the_budget)
{
    const struct {
        int32_t rows, keys, dim;
        int64_t budget;
    } cases[] = {{4096, 4096, 64, 2048}, {1 << 21, 1, 16, 1 << 21}, {1 << 15, 2048, 16, 1 << 14}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int32_t more = 0; more < 2; more++) {
            const fa_problem p = shape(1, 1, 1, cases[i].rows + more, cases[i].keys, cases[i].dim, false);
            int64_t count = 0, *rows = fa_choose_rows(&p, 64, 5, &count);
            if (more == 0)
                assert_int_equal(count, cases[i].rows);
            else
                assert_true(count <= cases[i].budget && count > cases[i].budget / 2 && count < cases[i].rows);
            free(rows);
        }
}

static float rounded(float value) { return fa_half_to_float(fa_float_to_half(value)); }

/* Four products at a time, or with FP16 accumulation each rounded. */
static float add_products(float sum, const float *a, const float *b, int count, bool acc_fp16)
{
    int i = 0;
    for (; !acc_fp16 && i + 4 <= count; i += 4)
        sum += (a[i] * b[i] + a[i + 1] * b[i + 1]) + (a[i + 2] * b[i + 2] + a[i + 3] * b[i + 3]);
    for (; i < count; i++)
        sum = acc_fp16 ? rounded(sum + a[i] * b[i]) : sum + a[i] * b[i];
    return sum;
}

/* The baseline of one row: S in FP16, softmax in FP32 with a sum of its class, P in FP16, P V by tiles of 64 keys. */
static double plain_baseline(const fa_problem *p, const fa_tensors *t, int64_t flat, bool acc_fp16, uint16_t *out)
{
    const int64_t kv = flat / p->seq_q / p->heads * p->kv_heads + flat / p->seq_q % p->heads * p->kv_heads / p->heads;
    const int32_t keys = fa_problem_keys(p, 0, (int32_t)(flat % p->seq_q)).end, dim = p->dim;
    float q[64], k[64], x[256], v[256], max = -INFINITY;
    double sum = 0;
    for (int32_t j = 0; j < keys; j++) {
        for (int32_t d = 0; d < dim; d++) {
            q[d] = fa_half_to_float(t->q[flat * dim + d]);
            k[d] = fa_half_to_float(t->k[(kv * p->seq_kv + j) * dim + d]);
        }
        x[j] = rounded(add_products(0, q, k, dim, acc_fp16) * p->scale);
        max = x[j] > max ? x[j] : max;
    }
    for (int32_t j = 0; j < keys; j++) {
        x[j] = expf(x[j] - max);
        sum = acc_fp16 ? (double)rounded((float)sum + x[j]) : sum + (double)x[j];
    }
    for (int32_t j = 0; j < keys; j++)
        x[j] = rounded(x[j] / (float)sum);
    for (int32_t d = 0; d < dim; d++) {
        float o = 0;
        for (int32_t first = 0; first < keys; first += 64) {
            const int32_t count = keys - first < 64 ? keys - first : 64;
            for (int32_t j = 0; j < count; j++)
                v[j] = fa_half_to_float(t->v[(kv * p->seq_kv + first + j) * dim + d]);
            o = add_products(o, x + first, v, count, acc_fp16);
        }
        out[d] = fa_float_to_half(o);
    }
    return (double)max + log(sum);
}

TEST(the_baseline_is_a_chain_of_halves)
{
    const fa_problem shapes[] = {shape(2, 4, 2, 5, 67, 24, true), shape(1, 3, 1, 7, 150, 40, true),
                                 shape(1, 2, 2, 3, 1, 16, false), shape(1, 2, 1, 50, 20, 32, true)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int acc = 0; acc < 2; acc++) {
            CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&shapes[i], FA_DIST_NORMAL, 3);
            CLEANUP(fa_reference_free) fa_reference r = fa_reference_make(&shapes[i], &t, 16, acc, 3);
            for (int64_t flat = 0; flat < r.row_count; flat++) {
                uint16_t plain[64];
                assert_true(plain_baseline(&shapes[i], &t, flat, acc, plain) == r.baseline_lse[flat]);
                assert_memory_equal(plain, r.baseline + flat * shapes[i].dim, (size_t)shapes[i].dim * sizeof *plain);
            }
        }
}

/* A tensor whose last element is the last before memory that nobody may read. */
static uint16_t *at_the_edge(const uint16_t *tensor, size_t count)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = count * sizeof *tensor,
                 room = (bytes + page - 1) / page * page;
    char *map = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mprotect(map + room, page, PROT_NONE), 0);
    return memcpy(map + room - bytes, tensor, bytes);
}

TEST(nothing_is_read_past_the_end)
{
    for (int causal = 0; causal < 2; causal++)
        for (int32_t keys = 64; keys < 330; keys += 133) {
            const fa_problem p = shape(1, 2, 1, 70, keys, 24, causal);
            CLEANUP(fa_tensors_free) fa_tensors t = fa_tensors_make(&p, FA_DIST_NORMAL, 3);
            fa_tensors edge = t;
            edge.q = at_the_edge(t.q, t.q_count);
            edge.k = at_the_edge(t.k, t.k_count);
            edge.v = at_the_edge(t.v, t.v_count);
            for (int acc = 0; acc < 2; acc++) {
                fa_reference a = fa_reference_make(&p, &t, 16, acc, 3), b = fa_reference_make(&p, &edge, 16, acc, 3);
                assert_memory_equal(a.exact, b.exact, (size_t)a.row_count * 24 * sizeof *a.exact);
                fa_reference_free(&a);
                fa_reference_free(&b);
                fa_reference_free(&b); /* nothing is left */
            }
        }
}

/* The worst suspects, the sample, each once, in order. */
TEST(suspects_join_the_sample)
{
    enum { ALL = 1000 };
    const int64_t sample[] = {0, 7, 500, 999};
    double suspects[ALL] = {[0] = 2.0, [7] = 1.0, [8] = 0.5, [300] = INFINITY};
    int64_t count, *rows = fa_choose_suspects(sample + 1, 3, suspects, ALL, &count);
    const int64_t few[] = {0, 7, 8, 300, 500, 999};
    assert_int_equal(count, 6);
    assert_memory_equal(rows, few, sizeof few);
    free(rows);
    for (int i = 0; i < ALL; i++)
        suspects[i] = 1.0 + (i * 7 + 1) % ALL; /* all different */
    suspects[0] = ALL + 1;                     /* the first row twice */
    suspects[500] = 0.0;
    rows = fa_choose_suspects(sample, 4, suspects, ALL, &count);
    int64_t worst = 0, sampled = 0;
    for (int64_t i = 0; i < count; i++) {
        assert_true(i == 0 || rows[i] > rows[i - 1]);
        const bool among = suspects[rows[i]] > ALL - FA_SUSPECTS_MOST;
        const bool of_sample = rows[i] == 0 || rows[i] == 7 || rows[i] == 500 || rows[i] == 999;
        assert_true(among || of_sample);
        worst += among;
        sampled += of_sample;
    }
    assert_int_equal(worst, FA_SUSPECTS_MOST);
    assert_int_equal(sampled, 4);
    free(rows);
}
