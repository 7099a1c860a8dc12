/* What the tensor cores' sums cost in FP8: 8192 keys of normal scores, V constant in a column, P by bits as wgmma_fp8
 * makes it, sums of 32 products by the model of src/ptx/fp8.h. P V of so many keys adds up in the tensor cores, then in
 * FP64. Row sums are a column of P V too, of the constant "one", or exact.
 *     cc -O2 -o build/fp8_sums studies/fp8_sums.c -lm && build/fp8_sums */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 16, KEYS = 8192, COLUMNS = 10 };

static double e4m3[127], score[KEYS], p[KEYS]; /* scores in units of log2 */

static double normal(void) { return sqrt(-2 * log(1 - drand48())) * cos(2 * M_PI * drand48()); }

static double rounded(double x)
{
    int best = 0;
    for (int i = 1; i < 127; i++)
        if (fabs(e4m3[i] - fabs(x)) < fabs(e4m3[best] - fabs(x)))
            best = i;
    return x < 0 ? -e4m3[best] : e4m3[best];
}

static int exponent(double x) { return x == 0 ? -200 : ilogb(x); }

static double truncated(double x, int bits_below) { return trunc(ldexp(x, -bits_below)) * ldexp(1, bits_below); }

/* sum + 32 products with v. */
static double add_products(double sum, const double *weights, double v)
{
    int most = exponent(sum);
    for (int i = 0; i < 32; i++) {
        const int of_weight = weights[i] == 0 ? -200 : exponent(weights[i]) < -6 ? -6 : exponent(weights[i]);
        const int of_product = of_weight + (exponent(v) < -6 ? -6 : exponent(v));
        most = of_product > most ? of_product : most;
    }
    double next = truncated(sum, most - 13);
    for (int i = 0; i < 32; i++)
        next += truncated(weights[i] * v, most - 13);
    return truncated(next, exponent(next) - 13);
}

static double sum_of(const double *weights, int keys, double v)
{
    double sum = 0;
    for (int i = 0; i < keys; i += 32)
        sum = add_products(sum, weights + i, v);
    return sum;
}

/* RMSE of O, with row sums from the tensor cores and with exact ones. */
static void measure(int keys, double one)
{
    double error = 0, error_exact = 0;
    srand48(3);
    for (int row = 0; row < ROWS; row++) {
        double v[COLUMNS], o[COLUMNS] = {0}, sum = 0, exact = 0, reference = -INFINITY;
        for (int c = 0; c < COLUMNS; c++)
            v[c] = rounded(normal());
        for (int i = 0; i < KEYS; i++)
            score[i] = normal() * M_LOG2E;
        for (int first = 0; first < KEYS; first += keys) {
            const double before = reference;
            for (int i = 0; i < keys; i++)
                reference = fmax(reference, score[first + i]);
            const double alpha = exp2(before - reference);
            sum *= alpha, exact *= alpha;
            for (int i = 0; i < keys; i++) {
                p[i] = e4m3[(int)fmax(0, rint(8 * (score[first + i] - reference) + 8 * 8 + 56 - 0.46))];
                exact += p[i];
            }
            sum += sum_of(p, keys, one) / one;
            for (int c = 0; c < COLUMNS; c++)
                o[c] = o[c] * alpha + (v[c] == 0 ? 0 : sum_of(p, keys, v[c]));
        }
        for (int c = 0; c < COLUMNS; c++) {
            error += pow(o[c] / sum - v[c], 2);
            error_exact += pow(o[c] / exact - v[c], 2);
        }
    }
    printf("%4d keys, one = %.5f: RMSE %.2e, with exact row sums %.2e\n", keys, one, sqrt(error / ROWS / COLUMNS),
           sqrt(error_exact / ROWS / COLUMNS));
}

int main(void)
{
    const double ones[] = {0.25, 0.3125, 0.375, 0.46875};
    for (int i = 0; i < 127; i++)
        e4m3[i] = i < 8 ? ldexp(i, -9) : ldexp(8 + i % 8, i / 8 - 10);
    for (int keys = 128; keys <= 512; keys *= 2)
        for (int i = 0; i < 4; i++)
            measure(keys, ones[i]);
    return 0;
}
