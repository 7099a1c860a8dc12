#include "check/gradient_inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/choose_rows.h"
#include "check/reference.h"

const char *fa_gradient_name(int32_t tensor)
{
    static const char *const names[FA_GRADS] = {"dq", "dk", "dv", "dsinks"};
    return names[tensor];
}

int64_t fa_gradient_rows(const fa_problem *p, int32_t tensor)
{
    if (tensor == FA_GRAD_DSINKS)
        return p->sinks ? 1 : 0;
    return tensor == FA_GRAD_DQ ? fa_problem_rows(p) : (int64_t)fa_problem_k_count(p) / p->dim;
}

int32_t fa_gradient_columns(const fa_problem *p, int32_t tensor)
{
    return tensor == FA_GRAD_DSINKS ? p->heads : tensor == FA_GRAD_DV ? fa_problem_dim_v(p) : p->dim;
}

size_t fa_gradient_offset(const fa_problem *p, int32_t tensor)
{
    const size_t counts[FA_GRADS] = {fa_problem_q_count(p), fa_problem_k_count(p), fa_problem_v_count(p),
                                     p->sinks ? 2 * (size_t)p->heads : 0};
    size_t offset = 0;
    for (int32_t i = 0; i < tensor; i++)
        offset += counts[i];
    return offset;
}

size_t fa_gradient_doubles(const fa_problem *p)
{
    size_t count = 2 * (size_t)fa_gradient_rows(p, FA_GRAD_DQ) + 4 * (size_t)fa_gradient_rows(p, FA_GRAD_DK);
    for (int32_t tensor = 0; tensor < FA_GRADS; tensor++)
        count += (size_t)fa_gradient_rows(p, tensor) * (size_t)fa_gradient_columns(p, tensor);
    return count;
}

fa_row fa_gradient_row(const fa_problem *problem, int32_t tensor, int64_t row)
{
    return tensor == FA_GRAD_DSINKS ? (fa_row){.used = true}
           : tensor == FA_GRAD_DQ   ? fa_problem_row(problem, row)
                                    : fa_problem_key_at(problem, row);
}

double fa_gradient_value(const fa_problem *problem, int32_t tensor, const uint16_t *output, size_t i)
{
    const uint16_t *at = output + fa_gradient_offset(problem, tensor);
    float value;
    if (tensor != FA_GRAD_DSINKS)
        return (double)fa_element_to_float(problem->dtype, at[i]);
    memcpy(&value, at + 2 * i, sizeof value);
    return (double)value;
}

double *fa_rows_of_head(const fa_problem *problem, const double *rows, int32_t way, double factor)
{
    const int64_t count = fa_problem_rows(problem);
    double *taken = fa_alloc((size_t)count * sizeof *taken);
    for (int64_t row = 0; row < count; row++) {
        const fa_row at = fa_problem_row(problem, row);
        const int32_t head = way < FA_OTHER_HEADS ? fa_other_head(problem, at.head, way) : at.head;
        const int32_t batch = way == FA_FIRST_BATCH ? 0 : at.batch;
        const int32_t other = way == FA_NEXT_ROW && at.row + 1 < at.seq_q ? at.row + 1
                              : way == FA_ROW_BEFORE && at.row > 0        ? at.row - 1
                                                                          : at.row;
        taken[row] = at.used ? factor * rows[fa_problem_flat(problem, batch, head, other)] : 0.0;
    }
    return taken;
}

double fa_sink_taken(const fa_problem *problem, const fa_tensors *tensors, int32_t head, int32_t way)
{
    const bool clamped = way >= FA_OTHER_HEADS;
    const double sink = (double)tensors->scores.sinks[clamped ? head : fa_other_head(problem, head, way)];
    return !clamped ? sink : way == FA_OTHER_HEADS ? fmax(sink, 0.0) : fmin(sink, 0.0);
}

void fa_add_sinks(const fa_problem *problem, const fa_tensors *tensors, double times, double *lse)
{
    const int64_t rows = fa_problem_rows(problem);
    for (int64_t row = 0; row < rows; row++) {
        const fa_row at = fa_problem_row(problem, row);
        if (at.used)
            lse[row] += log1p(times * exp((double)tensors->scores.sinks[at.head] - lse[row]));
    }
}

float *fa_numbers_of(const fa_problem *problem, const uint16_t *elements, size_t count)
{
    float *numbers = fa_alloc((count + 1) * sizeof *numbers);
#pragma omp parallel for schedule(static) if (count > 1 << 16)
    for (size_t i = 0; i < count; i++)
        numbers[i] = fa_element_to_float(problem->dtype, elements[i]);
    return numbers;
}

fa_most fa_most_of(const float *numbers, int64_t rows, int32_t columns)
{
    double most = 0.0, longest = 0.0;
#pragma omp parallel for schedule(static) reduction(max : most, longest) if (rows * columns > 1 << 16)
    for (int64_t row = 0; row < rows; row++) {
        double square = 0.0;
        for (int32_t d = 0; d < columns; d++) {
            const double x = (double)fabsf(numbers[row * columns + d]);
            most = x > most ? x : most;
            square += x * x;
        }
        longest = sqrt(square) > longest ? sqrt(square) : longest;
    }
    return (fa_most){.element = most, .row = longest};
}

static int64_t *used_rows(const fa_problem *problem, int32_t tensor, int64_t *count)
{
    const int64_t all = fa_gradient_rows(problem, tensor);
    int64_t *rows = fa_alloc((size_t)all * sizeof *rows);
    *count = 0;
    for (int64_t row = 0; row < all; row++)
        if (fa_gradient_row(problem, tensor, row).used)
            rows[(*count)++] = row;
    return rows;
}

double *fa_gradients_forward(const fa_problem *problem, const fa_tensors *tensors)
{
    const size_t rows = (size_t)fa_problem_rows(problem), dim = (size_t)fa_problem_dim_v(problem);
    double *forward = fa_alloc(rows * (dim + 1) * sizeof *forward);
    int64_t count, *used = used_rows(problem, FA_GRAD_DQ, &count);
    fa_reference reference = fa_reference_of_rows(problem, tensors, used, count, false);
    for (int64_t i = 0; i < count; i++) {
        memcpy(forward + (size_t)used[i] * dim, reference.exact + (size_t)i * dim, dim * sizeof *forward);
        forward[rows * dim + (size_t)used[i]] = reference.lse[i];
    }
    fa_reference_free(&reference);
    return forward;
}

void fa_gradients_give(const fa_problem *problem, const double *forward, fa_tensors *tensors)
{
    const int64_t rows = fa_problem_rows(problem), dim = fa_problem_dim_v(problem);
    free(tensors->o);
    free(tensors->lse);
    tensors->o = fa_alloc((size_t)(rows * dim) * sizeof *tensors->o);
    tensors->lse = fa_alloc((size_t)rows * sizeof *tensors->lse);
    memset(tensors->o, 0xFF, (size_t)(rows * dim) * sizeof *tensors->o);
    memset(tensors->lse, 0xFF, (size_t)rows * sizeof *tensors->lse);
#pragma omp parallel for schedule(static) if (rows * dim > 1 << 16)
    for (int64_t row = 0; row < rows; row++) {
        if (!fa_problem_row(problem, row).used)
            continue;
        for (int64_t i = row * dim; i < (row + 1) * dim; i++)
            tensors->o[i] = fa_element_of_float(problem->dtype, (float)forward[i]);
        tensors->lse[row] = (float)forward[rows * dim + row];
    }
}

/* Key rows are chosen as the query rows of a problem whose queries are the keys. */
static int64_t *choose_keys(const fa_problem *problem, int32_t tile_n, uint64_t seed, int64_t *count)
{
    const int64_t stored = fa_gradient_rows(problem, FA_GRAD_DK);
    const int64_t pairs = stored > 0 ? fa_problem_pairs(problem) / stored : 0;
    fa_problem mirror = {.batch = problem->batch,
                         .heads = problem->kv_heads,
                         .kv_heads = problem->kv_heads,
                         .seq_q = problem->seq_kv,
                         .seq_kv = pairs < 1           ? 1
                                   : pairs > INT32_MAX ? INT32_MAX
                                                       : (int32_t)pairs,
                         .dim = problem->dim,
                         .dim_v = problem->dim_v,
                         .dtype = problem->dtype};
    fa_lengths *lengths = NULL;
    if (problem->lengths != NULL) {
        lengths = fa_alloc(sizeof *lengths);
        *lengths = *problem->lengths;
        memcpy(lengths->q, problem->lengths->kv, sizeof lengths->q);
        memcpy(lengths->q_start, problem->lengths->kv_start, sizeof lengths->q_start);
        mirror.lengths = lengths;
    }
    int64_t *rows = fa_choose_rows(&mirror, tile_n, seed, count);
    free(lengths);
    return rows;
}

int64_t *fa_gradient_choose(const fa_problem *problem, int32_t tensor, int32_t tile, uint64_t seed, int64_t *count)
{
    if (fa_chooses_all_rows(problem))
        return used_rows(problem, tensor, count);
    return tensor == FA_GRAD_DQ ? fa_choose_rows(problem, tile, seed, count) : choose_keys(problem, tile, seed, count);
}
