#include "ptx/fp8.h"

#include <math.h>

#include "base/clones.h"

enum {
    COLUMNS = 8, /* at a time */
    DEPTH = 32,
    FRACTION = 13,
    LEAST = -126,      /* of the exponent of a sum */
    NONE = -2000,      /* the exponent of a zero: no addend */
    NOT_FINITE = 10000 /* of infinity and NaN: their sums are above LARGEST, whatever is added */
};
enum { LARGEST = 4000 };

static inline int exponent_of(float value, int least)
{
    const uint64_t bits = fa_ptx_float_bits(value);
    const int exponent = (int)(bits >> 23 & 255) - 127, at_least = exponent > least ? exponent : least;
    return (bits & 0x7fffffff) == 0 ? NONE : exponent == 128 ? NOT_FINITE : at_least;
}

static int smallest(fa_ptx_type type) { return type == FA_PTX_E4M3 ? -6 : -14; }

/* 2^-exponent; LEAST <= exponent <= 127 */
static inline float inverse_power(int exponent)
{
    return fa_ptx_float(exponent == 127 ? 0x00400000 : (uint64_t)(127 - exponent) << 23);
}

/* The sum in multiples of 2^(top - FRACTION) as C's type has it. */
static inline float round_sum(int sum, int top, bool half)
{
    const float exact = (float)sum; /* below 2^24 */
    if (half) {
        const float value = (float)(_Float16)ldexpf(exact, top - FRACTION);
        return value != value ? NAN : value;
    }
    const float truncated = fa_ptx_float(fa_ptx_float_bits(exact) & ~(uint64_t)((1 << (23 - FRACTION)) - 1));
    return truncated * (1.0f / (1 << FRACTION)) * fa_ptx_float((uint64_t)(top + 127) << 23);
}

/* With an infinity or a NaN among the addends. */
static float special_sum(const float *a, const float *b, int columns, int terms, float c)
{
    for (int k = 0; k < terms; k++)
        c += a[k] * b[k * columns];
    return c;
}

/* One group of products of one row and 8 columns. a, a_exponent [terms]; b, b_exponent [terms][columns] */
static inline __attribute__((always_inline)) void add_group(const fa_ptx_fp8 *shape, const float *a,
                                                            const int *a_exponent, const float *b,
                                                            const int *b_exponent, float *d)
{
    const int columns = shape->columns, terms = shape->terms, least_c = shape->half ? -14 : LEAST;
    int top[COLUMNS], sum[COLUMNS];
    float scale[COLUMNS];
    for (int j = 0; j < COLUMNS; j++)
        top[j] = exponent_of(d[j], least_c);
    for (int k = 0; k < terms; k++)
        for (int j = 0; j < COLUMNS; j++) {
            const int exponent = a_exponent[k] + b_exponent[k * columns + j];
            top[j] = top[j] > exponent ? top[j] : exponent;
        }
    for (int j = 0; j < COLUMNS; j++) {
        const int exponent = top[j] < LEAST ? LEAST : top[j] > 127 ? 127 : top[j];
        scale[j] = inverse_power(exponent);
        sum[j] = top[j] > LARGEST ? 0 : (int)(d[j] * scale[j] * (1 << FRACTION));
    }
    for (int k = 0; k < terms; k++)
        for (int j = 0; j < COLUMNS; j++) {
            const float addend = a[k] * b[k * columns + j] * scale[j] * (1 << FRACTION);
            sum[j] += (int)(top[j] > LARGEST ? 0.0f : addend);
        }
    for (int j = 0; j < COLUMNS; j++)
        d[j] = top[j] > LARGEST ? special_sum(a, b + j, columns, terms, d[j])
                                : round_sum(sum[j], top[j] < LEAST ? LEAST : top[j], shape->half);
}

FA_CLONES void fa_ptx_fp8_multiply(const fa_ptx_fp8 *shape, const float *a, const float *b, float *d, int stride)
{
    static _Thread_local int b_exponent[DEPTH * 256];
    const int columns = shape->columns, depth = shape->depth;
    for (int i = 0; i < depth * columns; i++)
        b_exponent[i] = exponent_of(b[i], smallest(shape->b));
    for (int row = 0; row < shape->rows; row++) {
        int a_exponent[DEPTH];
        for (int k = 0; k < depth; k++)
            a_exponent[k] = exponent_of(a[row * depth + k], smallest(shape->a));
        for (int j = 0; j < columns; j += COLUMNS)
            for (int k = 0; k < depth; k += shape->terms)
                add_group(shape, a + row * depth + k, a_exponent + k, b + k * columns + j, b_exponent + k * columns + j,
                          d + row * stride + j);
    }
}
