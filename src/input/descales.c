#include "input/descales.h"

#include <math.h>

#include "base/random.h"

enum { STREAM = 20 };

static float *draw(const fa_problem *problem, uint64_t seed, int tensor, float largest)
{
    const int32_t heads = tensor == FA_DESCALE_Q ? problem->heads : problem->kv_heads;
    const double start = (double)(fa_draw_bits(fa_draw_stream(seed, STREAM), 0) >> 11) * 0x1p-53 + 0.37 * tensor;
    const bool shared = problem->pages != NULL && problem->pages->compressed; /* by the first two sequences */
    float *descales = fa_alloc((size_t)problem->batch * (size_t)heads * sizeof *descales);
    for (int32_t batch = 0; batch < problem->batch; batch++)
        for (int32_t head = 0; head < heads; head++) {
            const double turns = start + 0.618 * head + 0.755 * (shared && batch == 1 ? 0 : batch);
            descales[(int64_t)batch * heads + head] = largest / 448.0f * (float)pow(100.0, turns - floor(turns));
        }
    return descales;
}

float *fa_descales_quantise(const fa_problem *problem, uint64_t seed, int tensor, size_t count, uint16_t *data)
{
    const bool query = tensor == FA_DESCALE_Q;
    const int64_t dim = tensor == FA_DESCALE_V ? fa_problem_dim_v(problem) : problem->dim, rows = (int64_t)count / dim;
    float largest = 0.0f;
#pragma omp parallel for reduction(max : largest) schedule(static) if (count > 1 << 16)
    for (size_t i = 0; i < count; i++) {
        const float value = fabsf(fa_element_to_float(FA_DTYPE_BF16, data[i]));
        largest = value > largest ? value : largest; /* poison is NaN */
    }
    float *descales = draw(problem, seed, tensor, largest > 0.0f ? largest : 448.0f);
#pragma omp parallel for schedule(static) if (count > 1 << 16)
    for (int64_t flat = 0; flat < rows; flat++) {
        const fa_row at = query ? fa_problem_row(problem, flat) : fa_problem_key_at(problem, flat);
        const float descale = at.used ? fa_descale(descales, problem, query, at.batch, at.head) : 1.0f;
        for (int64_t i = flat * dim; at.used && i < (flat + 1) * dim; i++) /* others keep their poison */
            data[i] = fa_element_of_float(FA_DTYPE_E4M3, fa_element_to_float(FA_DTYPE_BF16, data[i]) / descale);
    }
    return descales;
}
