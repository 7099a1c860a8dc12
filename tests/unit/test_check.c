/* fa_check and fa_buffers on a device of host memory, with kernels that cheat, stray and fail in every way known. */
#include "base/file.h"
#include "base/process.h"
#include "check/check.h"
#include "check/choose_rows.h"
#include "check/judge.h"
#include "check/repeats.h"
#include "device/gpu_lock.h"
#include "input/npy.h"
#include "run/params.h"
#include "simulate.h"
#include "unit.h"

#include <math.h>
#include <unistd.h>

#define ROW_OFF 23

typedef enum {
    WAY_GOOD,
    WAY_FAULT,         /* computes as `fault` says */
    WAY_NOTHING,       /* writes nothing */
    WAY_HALF,          /* leaves the last row unwritten */
    WAY_PAST_OUTPUT,   /* one element after O */
    WAY_BEFORE_OUTPUT, /* one element before O */
    WAY_FAR_PAST_V,    /* into V's guard, a hundred thousand elements away */
    WAY_WORKSPACE,     /* one half after the workspace */
    WAY_TOUCH_K,       /* overwrites one key element */
    WAY_READ_PAST_K,   /* NaN that lies past the end of K counts, of V, of both, of Q; of O before the launch */
    WAY_READ_PAST_V,
    WAY_READ_PAST_KV,
    WAY_READ_PAST_Q,
    WAY_READ_O,
    WAY_OWN_NAN,
    WAY_FIRST_ONLY,    /* computes on its first launch alone */
    WAY_CACHED,        /* answers later launches with its first result */
    WAY_CACHED_BY_Q,   /* answers with its last result while Q is the same */
    WAY_CLAMPS,        /* no output beyond 1000: what sums in FP16 make of large ones */
    WAY_ADDS,          /* 2e-6 to every output */
    WAY_NO_ZERO_QUERY, /* divides by the length of a query */
    WAY_EQUAL_KEYS,    /* leaves out a key that equals the one before */
    WAY_JITTER,        /* launches differ in the last bit */
    WAY_ON_NAN,        /* writes only where it finds NaN */
    WAY_FAULTS,        /* the launch fails */
    WAY_LIBRARY,       /* naive FP16 attention: what cublas does */
    WAY_WRONG_LIBRARY,
    WAY_NO_LIBRARY,
    WAY_GROUPS_PACKED, /* a library that refuses any other layout */
    WAY_NO_STRIDES,    /* takes its tensors for packed */
    WAY_GAP_OF_O,      /* writes one element between the rows of O, where there is room */
    WAY_OWN_SCALE,     /* 1/sqrt(dim), whatever the launch says */
    WAY_NO_LSE,        /* a right output, and no log-sum-exp */
    WAY_LSE_LOG2,      /* log-sum-exp in log2 units */
    WAY_LSE_PAST,      /* one element after the log-sum-exp */
    WAY_LSE_BEFORE,    /* one element before it */
    WAY_LSE_PACKED,    /* takes the log-sum-exp for packed */
    WAY_GAP_OF_LSE,    /* writes one element between its rows, where there is room */
    WAY_LSE_JITTER,    /* its launches differ in the last bit */
    WAY_LSE_ON_NAN,    /* it is written only where it is NaN */
    WAY_PLAIN,         /* the plain reference: FP64, into the workspace */
    WAY_PLAIN_WRONG,   /* one element of it 1e-6 off */
    WAY_PLAIN_WRONG_LSE,
    WAY_PLAIN_NAN,
    WAY_LSE_ROW_OFF, /* the log-sum-exp of that row 1 too large */
    WAY_ROW_OFF,     /* one row half as large again, which a sample may leave out */
    WAY_DV_OFF,      /* gradients: one element of dV */
    WAY_DK_JITTER,   /* later launches differ in the last bit of one of dK */
    WAY_DK_ADDS,     /* they add to what the first one left in dK */
    WAY_DSINKS_ON_NAN,
} way;

struct fa_kernel {
    way way;
    sim_fault fault;
    int32_t launches, cleared;
    bool clear; /* the output was zeros before this launch */
    uint16_t *cache;
    uint64_t q_sum; /* of the last launch */
    fa_problem problem;
};

typedef struct fake {
    way library, plain;
    int32_t loaded, library_loads, plain_loads;
    int32_t vary_count, variation[32];
    float scale[32]; /* of the launches */
} fake;

/* Launches share the GPU with those of other checks. */
static fa_gpu_lock_mode lock_mode = FA_GPU_LOCK_NONE;
void __wrap_fa_gpu_lock(const char *bus_id, fa_gpu_lock_mode mode) { lock_mode = mode; }

/* How often another process has the GPU, when asked. */
static int32_t taken;
bool __wrap_fa_gpu_lock_is_taken(const char *bus_id)
{
    lock_mode = FA_GPU_LOCK_NONE;
    return taken > 0 && taken-- > 0;
}
static bool closed;
bool __wrap_fa_gpu_gate_is_closed(const char *bus_id) { return closed; }

/* The reference on the CPU leaves the GPU to others. */
static int32_t references_made, made_before_launches;
fa_reference __real_fa_reference_make(const fa_problem *problem, const fa_tensors *tensors, int32_t tile_m,
                                      bool acc_fp16, uint64_t seed);
fa_reference __wrap_fa_reference_make(const fa_problem *problem, const fa_tensors *tensors, int32_t tile_m,
                                      bool acc_fp16, uint64_t seed)
{
    assert_int_equal(lock_mode, FA_GPU_LOCK_NONE);
    references_made++;
    return __real_fa_reference_make(problem, tensors, tile_m, acc_fp16, seed);
}

/* Without a compiler there is no plain reference. */
static bool plain_compiles;
fa_status __wrap_fa_compile_cuda(const fa_spec *spec, fa_module *module, fa_reason *why)
{
    const size_t length = strlen(spec->source), tail = strlen("/src/cuda/plain.cu");
    assert_true(length > tail && strcmp(spec->source + length - tail, "/src/cuda/plain.cu") == 0);
    return plain_compiles ? FA_PASS : fa_refuse(why, FA_NOT_RUN, "no compiler");
}

static fa_status fake_load(fa_device *device, const fa_spec *spec, const fa_module *module, const fa_problem *problem,
                           fa_kernel **kernel, fa_reason *why)
{
    fake *f = device->self;
    const bool plain = spec->kind == FA_KIND_HAND;
    assert_int_equal(module != NULL, plain);
    *(plain ? &f->plain_loads : &f->library_loads) += 1;
    if (!plain) {
        assert_int_equal(spec->kind, FA_KIND_LIBRARY);
        assert_true(spec->row->traits.is_reference && !spec->lse);
        if (f->library == WAY_NO_LIBRARY)
            return fa_refuse(why, FA_NOT_RUN, "libcublas.so is not here");
    }
    f->loaded++;
    *kernel = fa_alloc(sizeof **kernel);
    **kernel = (fa_kernel){.way = plain ? f->plain : f->library, .problem = *problem};
    return FA_PASS;
}

static void fake_unload(fa_device *device, fa_kernel *kernel)
{
    ((fake *)device->self)->loaded--;
    free(kernel->cache);
    free(kernel);
}

/* The offset of row `i`, counted over all batches and heads. stride: of a batch, a head, a row, as in fa_params. */
static fa_i64 place_of(const fa_i64 *stride, int64_t i, int32_t heads, int32_t seq)
{
    return i / seq / heads * stride[0] + i / seq % heads * stride[1] + i % seq * stride[2];
}

/* A tensor of device memory without gaps. */
static uint16_t *dense(const void *from, const fa_i64 *stride, int32_t batch, int32_t heads, int32_t seq, int32_t dim)
{
    const int64_t rows = (int64_t)batch * heads * seq;
    uint16_t *to = fa_alloc((size_t)(rows * dim) * sizeof *to);
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * dim, (const uint16_t *)from + place_of(stride, i, heads, seq), (size_t)dim * sizeof *to);
    return to;
}

static fa_tensors tensors_of(const fa_params *p)
{
    return (fa_tensors){.q = dense(p->q, &p->q_stride_b, p->batch, p->heads, p->seq_q, p->dim),
                        .k = dense(p->k, &p->k_stride_b, p->batch, p->kv_heads, p->seq_kv, p->dim),
                        .v = dense(p->v, &p->v_stride_b, p->batch, p->kv_heads, p->seq_kv, p->dim)};
}

/* Inputs and the reference of all their rows. Launches repeat their inputs, so the last ones are kept. */
typedef struct inputs {
    fa_problem problem;
    fa_tensors tensors;
    fa_reference reference;
} inputs;

static const inputs *inputs_of(const fa_problem *problem, const fa_params *p)
{
    static inputs kept;
    fa_tensors tensors = tensors_of(p);
    const size_t q_bytes = fa_problem_q_count(problem) * 2, kv_bytes = fa_problem_k_count(problem) * 2;
    if (memcmp(&kept.problem, problem, sizeof *problem) == 0 && memcmp(kept.tensors.q, tensors.q, q_bytes) == 0 &&
        memcmp(kept.tensors.k, tensors.k, kv_bytes) == 0 && memcmp(kept.tensors.v, tensors.v, kv_bytes) == 0) {
        fa_tensors_free(&tensors);
        return &kept;
    }
    fa_reference_free(&kept.reference);
    fa_tensors_free(&kept.tensors);
    kept = (inputs){*problem, tensors, reference_of(problem, &tensors, 1, false)};
    return &kept;
}

/* The plain kernel: FP64 of all rows, and what each of these ways makes of it. */
static void compute_plain(const fa_kernel *kernel, const fa_params *p)
{
    fa_problem problem = kernel->problem;
    const int64_t count = (int64_t)fa_problem_o_count(&problem), rows = fa_problem_rows(&problem);
    problem.scale = p->scale;
    const fa_reference *every = &inputs_of(&problem, p)->reference;
    double *o = p->workspace;
    assert_null(p->o);
    assert_int_equal(p->workspace_bytes, (count + rows) * (int64_t)sizeof *o);
    memcpy(o, every->exact, (size_t)count * sizeof *o);
    memcpy(o + count, every->lse, (size_t)rows * sizeof *o);
    o[count - 1] += kernel->way == WAY_PLAIN_WRONG ? 1e-6 : 0.0;
    o[count + 7] += kernel->way == WAY_PLAIN_WRONG_LSE ? 1e-6 : 0.0;
    o[33] = kernel->way == WAY_PLAIN_NAN ? NAN : o[33];
}

/* The reference of all rows of what lies in device memory, packed. */
static void compute(const fa_kernel *kernel, const fa_params *p, uint16_t *out)
{
    fa_problem problem = kernel->problem;
    problem.scale = kernel->way == WAY_OWN_SCALE ? 1.0f / sqrtf((float)p->dim) : p->scale;
    const inputs *in = inputs_of(&problem, p);
    const fa_reference *all = &in->reference;
    if (kernel->way == WAY_LIBRARY || kernel->way == WAY_WRONG_LIBRARY || kernel->way == WAY_GROUPS_PACKED ||
        kernel->way == WAY_ROW_OFF || kernel->way == WAY_LSE_ROW_OFF)
        memcpy(out, all->baseline, fa_problem_q_count(&problem) * sizeof *out);
    else
        sim_flash(&problem, &in->tensors, all, 64,
                  kernel->way == WAY_READ_PAST_K || kernel->way == WAY_FAULT ? kernel->fault : SIM_GOOD, out);
    for (int64_t i = 0; i < all->row_count && p->lse != NULL && kernel->way != WAY_NO_LSE; i++) {
        const int64_t at = kernel->way == WAY_LSE_PACKED ? i : place_of(&p->lse_stride_b, i, p->heads, p->seq_q);
        const float value = (float)all->lse[i] * (kernel->way == WAY_LSE_LOG2 ? 1.442695f : 1.0f);
        const bool numbers = kernel->cache != NULL && p->lse[at] == -value; /* the first repeat */
        assert_true(numbers || ((const uint16_t *)p->lse)[2 * at] == (kernel->clear ? 0 : 0xFFFF)); /* NaN-filled too */
        if (kernel->way != WAY_LSE_ON_NAN || !numbers)
            p->lse[at] = value + (kernel->way == WAY_LSE_ROW_OFF && i == ROW_OFF);
    }
}

/* What each of these ways makes of a right output, packed. */
static void spoil(const fa_kernel *kernel, const fa_params *p, uint16_t *out)
{
    const size_t dim = (size_t)p->dim;
    for (size_t i = 0; i < fa_problem_q_count(&kernel->problem); i++) {
        const int64_t row = (int64_t)(i / dim), kv_head = row / p->seq_q * p->kv_heads / p->heads;
        const uint16_t *q = (const uint16_t *)p->q + place_of(&p->q_stride_b, row, p->heads, p->seq_q);
        const uint16_t *k = (const uint16_t *)p->k + place_of(&p->k_stride_b, kv_head, p->kv_heads, 1);
        const float value = fa_half_to_float(out[i]);
        bool zero = true;
        for (size_t d = 0; d < dim; d++)
            zero &= q[d] == 0;
        if (kernel->way == WAY_ROW_OFF && row == ROW_OFF)
            out[i] = fa_float_to_half(1.5f * value);
        if (kernel->way == WAY_CLAMPS)
            out[i] = fa_float_to_half(fminf(fmaxf(value, -1000.0f), 1000.0f));
        if (kernel->way == WAY_ADDS)
            out[i] = fa_float_to_half(value + 2e-6f);
        if (kernel->way == WAY_NO_ZERO_QUERY && zero)
            out[i] = 0x7E00;
        if (kernel->way == WAY_EQUAL_KEYS && memcmp(k, k + p->k_stride_s, dim * sizeof *k) == 0)
            out[i] = fa_float_to_half(0.9f * value);
    }
}

static uint64_t sum_of_q(const fa_params *p)
{
    uint64_t sum = 0;
    for (fa_i64 i = 0; i < (fa_i64)p->seq_q * p->dim; i++)
        sum = sum * 31 + ((const uint16_t *)p->q)[i / p->dim * p->q_stride_s + i % p->dim];
    return sum;
}

/* Where element `i` of the packed output lies. */
static fa_i64 place_in_o(const fa_params *p, size_t i)
{
    const int64_t at = (int64_t)i;
    return place_of(&p->o_stride_b, at / p->dim, p->heads, p->seq_q) + at % p->dim;
}

/* Of what lies in device memory; a small problem: all rows. */
static fa_gradients gradients_of(const fa_problem *problem, const fa_params *p)
{
    CLEANUP(fa_tensors_free) fa_tensors tensors = tensors_of(p);
    tensors.dout = dense(p->dout, p->grad_stride[0], p->batch, p->heads, p->seq_q, p->dim);
    if (problem->sinks)
        tensors.scores.sinks = memcpy(fa_alloc((size_t)p->heads * 4), p->sinks, (size_t)p->heads * 4);
    FREED double *forward = fa_gradients_forward(problem, &tensors);
    fa_gradients_give(problem, forward, &tensors);
    return fa_gradients_make(problem, &tensors, forward, 64, 64, 1);
}

/* The plain kernel's, behind the forward and three numbers of each row. A step for query rows comes before all rows. */
static void compute_plain_gradients(const fa_kernel *kernel, const fa_launch *launch, const fa_params *p)
{
    const int64_t rows = fa_problem_rows(&kernel->problem), all = rows + fa_gradient_rows(&kernel->problem, FA_GRAD_DK);
    const fa_step *const steps = launch->plan.steps;
    assert_true(launch->plan.count == 2 && steps[0].entry == FA_STEP_BEFORE && steps[1].entry == 0);
    for (int32_t i = 0; i < 2; i++)
        assert_true(steps[i].grid[1] == 1 && steps[i].grid[2] == 1 && steps[i].block[0] == 256);
    assert_true(steps[0].grid[0] == (rows + 7) / 8 && steps[1].grid[0] == (all + 2 + 7) / 8); /* 2 sinks */
    CLEANUP(fa_gradients_free) fa_gradients every = gradients_of(&kernel->problem, p);
    double *to = (double *)p->workspace + fa_problem_o_count(&kernel->problem) + 4 * rows;
    for (int32_t tensor = 0; tensor < 3; tensor++)
        for (int64_t i = 0; i < every.of[tensor].row_count * every.of[tensor].columns; i++)
            *to++ = every.of[tensor].exact[i];
    to[-1] += kernel->way == WAY_PLAIN_WRONG ? 1e-6 : 0.0;
}

/* Packed, each rounded. */
static void compute_gradients(const fa_kernel *kernel, const fa_params *p)
{
    const fa_problem *problem = &kernel->problem;
    CLEANUP(fa_gradients_free) fa_gradients every = gradients_of(problem, p);
    uint16_t *const of[3] = {p->dq, p->dk, p->dv};
    for (int32_t tensor = 0; tensor < 3; tensor++) {
        const fa_gradient *g = &every.of[tensor];
        const int32_t seq = tensor == FA_GRAD_DQ ? p->seq_q : p->seq_kv,
                      heads = tensor == FA_GRAD_DQ ? p->heads : p->kv_heads;
        assert_int_equal(g->row_count, fa_gradient_rows(problem, tensor));
        for (int64_t i = 0; i < g->row_count * g->columns; i++) {
            uint16_t *to =
                of[tensor] + place_of(p->grad_stride[1 + tensor], i / g->columns, heads, seq) + i % g->columns;
            const uint16_t value = fa_float_to_half((float)g->exact[i]);
            assert_true(*to == (kernel->clear ? 0 : 0xFFFF) || (kernel->launches == 2 && *to == (value ^ 0x8000)));
            *to = value;
        }
    }
    for (int32_t head = 0; problem->sinks && head < p->heads; head++) {
        const float value = (float)every.of[FA_GRAD_DSINKS].exact[head];
        const bool numbers = kernel->launches == 2 && p->dsinks[head] == -value;
        assert_true(isnan(p->dsinks[head]) || numbers);
        if (kernel->way != WAY_DSINKS_ON_NAN || !numbers)
            p->dsinks[head] = value;
    }
    if (kernel->way == WAY_DK_JITTER && kernel->launches > 1)
        of[1][3] ^= 1;
    if (kernel->way == WAY_DK_ADDS && kernel->launches > 1)
        of[1][3] = fa_float_to_half(2.0f * fa_half_to_float(of[1][3]) + 1.0f);
    if (kernel->way == WAY_DV_OFF)
        of[2][5] = fa_float_to_half(0.5f + fa_half_to_float(of[2][5]));
}

static fa_status fake_launch(fa_device *device, fa_kernel *kernel, const fa_launch *launch, const fa_params *p,
                             fa_reason *why)
{
    assert_int_equal(lock_mode, FA_GPU_LOCK_SHARED);
    if (kernel->way >= WAY_PLAIN && kernel->way <= WAY_PLAIN_NAN) {
        assert_int_equal(launch->threads, 256);
        if (kernel->problem.backward) {
            compute_plain_gradients(kernel, launch, p);
            return FA_PASS;
        }
        assert_true(launch->grid == (fa_problem_rows(&kernel->problem) + 7) / 8 && launch->plan.count == 0);
        compute_plain(kernel, p);
        return FA_PASS;
    }
    if (kernel->problem.backward) {
        kernel->launches++;
        kernel->clear = *(const uint16_t *)p->dq == 0;
        compute_gradients(kernel, p);
        return FA_PASS;
    }
    fa_params packed = *p;
    packed.q_stride_s = packed.k_stride_s = packed.v_stride_s = packed.o_stride_s = p->dim;
    packed.q_stride_h = packed.o_stride_h = (fa_i64)p->dim * p->seq_q;
    packed.k_stride_h = packed.v_stride_h = (fa_i64)p->dim * p->seq_kv;
    packed.q_stride_b = packed.o_stride_b = p->heads * packed.q_stride_h;
    packed.k_stride_b = packed.v_stride_b = p->kv_heads * packed.k_stride_h;
    const bool as_packed = memcmp(&packed, p, sizeof packed) == 0;
    if (kernel->way == WAY_GROUPS_PACKED && !as_packed)
        return fa_refuse(why, FA_INFEASIBLE, "grouped heads must lie one after the other");
    if (kernel->way == WAY_NO_STRIDES)
        p = &packed;
    const size_t count = fa_problem_q_count(&kernel->problem), bytes = count * sizeof(uint16_t);
    const size_t kv_count = fa_problem_k_count(&kernel->problem);
    uint16_t *o = p->o, *k = (uint16_t *)(uintptr_t)p->k, *v = (uint16_t *)(uintptr_t)p->v;
    const int32_t before = kernel->launches++;
    if (before == 0 && kernel->way == WAY_GOOD)
        made_before_launches = references_made;
    ((fake *)device->self)->scale[before % 32] = p->scale;
    const uint16_t old = o[5];
    kernel->clear = old == 0;
    kernel->cleared += kernel->clear;
    const bool numbers = kernel->cache != NULL && old != 0 && old != 0xFFFF; /* the first repeat */
    for (size_t i = 0; i < count; i++) /* the others find their output NaN-filled, but one that looks for NaN */
        assert_int_equal(o[place_in_o(p, i)], numbers ? kernel->cache[i] ^ 0x8000 : kernel->clear ? 0 : 0xFFFF);
    if (kernel->way == WAY_FAULTS)
        return fa_refuse(why, FA_ERROR, "an illegal memory access");
    if (kernel->way == WAY_NOTHING || (kernel->way == WAY_FIRST_ONLY && before > 0))
        return FA_PASS;
    const bool same_q = sum_of_q(p) == kernel->q_sum;
    kernel->q_sum = sum_of_q(p);
    if ((kernel->way == WAY_CACHED || (kernel->way == WAY_CACHED_BY_Q && same_q)) && before > 0) {
        for (size_t i = 0; i < count; i++)
            o[place_in_o(p, i)] = kernel->cache[i];
        return FA_PASS;
    }
    uint16_t *result = fa_alloc(bytes);
    compute(kernel, p, result);
    spoil(kernel, p, result);
    for (size_t i = 0; i < count; i++)
        if (kernel->way != WAY_ON_NAN || o[place_in_o(p, i)] == 0xFFFF)
            o[place_in_o(p, i)] = result[i];
    free(kernel->cache);
    kernel->cache = result;
    if (kernel->way == WAY_GAP_OF_O && !as_packed)
        o[p->dim + 3] = 0;
    if (kernel->way == WAY_HALF)
        memset(o + count - (size_t)p->dim, 0xFF, (size_t)p->dim * sizeof *o);
    if (kernel->way == WAY_PAST_OUTPUT)
        o[count] = 0;
    if (kernel->way == WAY_BEFORE_OUTPUT)
        o[-1] = 0;
    if (kernel->way == WAY_FAR_PAST_V)
        v[kv_count + 100000] = 0x3C00;
    if (kernel->way == WAY_WORKSPACE)
        ((uint16_t *)p->workspace)[p->workspace_bytes / 2] = 0;
    if (kernel->way == WAY_TOUCH_K)
        k[77] ^= 1;
    if (kernel->way >= WAY_READ_PAST_K && kernel->way <= WAY_OWN_NAN) {
        const uint16_t past_q = ((const uint16_t *)(uintptr_t)p->q)[count], past_kv = k[kv_count] | v[kv_count];
        const uint16_t read[] = {k[kv_count], v[kv_count], past_kv, past_q, old, FA_POISON};
        if (read[kernel->way - WAY_READ_PAST_K] == FA_POISON)
            o[5] = 0x7FFF;
    }
    if (kernel->way == WAY_JITTER && before > 0)
        o[1] ^= 1;
    if (kernel->way == WAY_LSE_PAST)
        p->lse[count / (size_t)p->dim] = 0;
    if (kernel->way == WAY_LSE_BEFORE)
        p->lse[-1] = 0;
    if (kernel->way == WAY_GAP_OF_LSE && p->lse_stride_s > 1)
        p->lse[p->lse_stride_s + 1] = 0;
    if (kernel->way == WAY_LSE_JITTER && before > 0)
        p->lse[2] = nextafterf(p->lse[2], INFINITY);
    if (kernel->way == WAY_WRONG_LIBRARY)
        o[3] = fa_float_to_half(0.5f + fa_half_to_float(o[3]));
    return FA_PASS;
}

/* As the emulator's: schedules in turn. */
static int32_t fake_vary(fa_device *device, int32_t variation)
{
    fake *f = device->self;
    f->variation[f->vary_count++] = variation;
    return variation % FA_SCHEDULES;
}

static fa_status fake_sample(fa_device *device, const fa_sample_request *request, fa_sample *sample, fa_reason *why)
{
    return fa_refuse(why, FA_NOT_RUN, "a fake");
}

typedef struct setup {
    fake fake;
    fa_device device;
    fa_problem problem;
    fa_options options;
    fa_spec spec;
    fa_kernel kernel;
    fa_candidate candidate;
    fa_check_result result;
    fa_reason why;
} setup;

static setup *last; /* that was made: one at a time */

/* Frees it, and holds that nothing is left allocated. */
static int discard_last(void **state)
{
    if (last == NULL)
        return 0;
    fa_buffers_free(&last->candidate.buffers);
    assert_int_equal(host.allocated, 0);
    assert_int_equal(last->fake.loaded, 0);
    free(last->kernel.cache);
    free(last);
    last = NULL;
    return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, NULL, discard_last)

static setup *make(way candidate, way library)
{
    discard_last(NULL);
    fa_kept_clear(); /* another fake's results */
    plain_compiles = false;
    setup *s = last = fa_alloc(sizeof *s);
    s->fake.library = library;
    s->device = host_device();
    s->device.info = (fa_device_info){.backend = "cuda", .name = "a fake", .sm_count = 4, .memory_bytes = 1 << 30};
    s->device.self = &s->fake;
    s->device.load = fake_load;
    s->device.unload = fake_unload;
    s->device.launch = fake_launch;
    s->device.sample = fake_sample;
    s->problem = (fa_problem){2, 2, 1, 40, 70, 32, true, 1.0f / sqrtf(32.0f)};
    s->options = (fa_options){.check = FA_REFERENCE_CPU | FA_REFERENCE_CUBLAS,
                              .atol = FA_UNSET_REAL,
                              .rtol = FA_UNSET_REAL,
                              .seeds = 3,
                              .seed = 42};
    s->spec = (fa_spec){.name = "fake", .kind = FA_KIND_HAND, .knobs = {.m = 32, .n = 32}};
    s->kernel = (fa_kernel){.way = candidate, .problem = s->problem};
    s->candidate = (fa_candidate){
        .device = &s->device, .problem = &s->problem, .kernel = &s->kernel, .spec = &s->spec, .launch = {.grid = 8}};
    return s;
}

static fa_status make_buffers(setup *s)
{
    fa_buffers_free(&s->candidate.buffers);
    return fa_buffers_make(&s->device, &s->problem, 100, &s->options, s->spec.lse, &s->candidate.buffers, &s->why);
}

/* On new buffers. */
static fa_status check(setup *s)
{
    s->why.text[0] = '\0';
    assert_int_equal(make_buffers(s), FA_PASS);
    return fa_check(&s->candidate, &s->options, &s->result, &s->why);
}

static fa_status recheck(setup *s, uint64_t seed)
{
    return fa_check_again(&s->candidate, &s->options, seed, &s->result, &s->why);
}

static void ends(setup *s, fa_status status, const char *words) { ends_with(check(s), status, &s->why, words); }

static setup *make_with_plain(way candidate, way library, way plain)
{
    setup *s = make(candidate, library);
    plain_compiles = true;
    s->fake.plain = plain;
    return s;
}

static void expect(way candidate, way library, fa_status status, const char *words)
{
    setup *s = make(candidate, library);
    ends(s, status, words);
    assert_int_equal(s->result.passed, status == FA_PASS);
    assert_int_equal(s->result.done, status == FA_PASS || status == FA_WRONG);
    if (status != FA_PASS)
        assert_string_equal(s->result.failure, s->why.text);
    const char *fault = strstr(words, "guard band")         ? "out of bounds"
                        : strstr(words, " was overwritten") ? "input overwritten"
                                                            : "";
    assert_string_equal(s->result.found.list[0].fault, fault);
    assert_int_equal(s->result.found.count, fault[0] != '\0');
}

static void wrong(way candidate, const char *words) { expect(candidate, WAY_LIBRARY, FA_WRONG, words); }

TEST(a_good_kernel_passes)
{
    setup *s = make(WAY_GOOD, WAY_LIBRARY);
    assert_int_equal(check(s), FA_PASS);
    assert_true(s->result.done && s->result.passed && !s->result.loosened);
    assert_int_equal(s->result.seeds, 3);
    assert_int_equal(s->result.repeats, 10);
    assert_true(s->kernel.launches == 13 && s->kernel.cleared == 0);
    assert_int_equal(s->result.verdict_count, 2);
    assert_string_equal(s->result.verdicts[0].name, "cpu");
    assert_string_equal(s->result.verdicts[1].name, "cublas");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(s->result.verdicts[i].rows_checked, 2 * 2 * 2 * 40); /* seed 43 is drawn */
        assert_true(s->result.verdicts[i].passed && s->result.verdicts[i].max_abs_err > 0);
    }
    assert_string_equal(s->result.missing, "");
    assert_string_equal(s->result.failure, "");
    const fa_check_result before = s->result;
    assert_int_equal(recheck(s, 45), FA_PASS);
    assert_memory_equal(&before, &s->result, sizeof before);
    assert_int_equal(s->kernel.launches, 14);
}

TEST(wrong_kernels_fail)
{
    wrong(WAY_NOTHING, "never written");
    wrong(WAY_HALF, "32 outputs are not finite");
    wrong(WAY_PAST_OUTPUT, "guard band after o was overwritten: 1 elements, the nearest 1 past the last");
    wrong(WAY_BEFORE_OUTPUT, "guard band before o was overwritten: 1 elements, the nearest 1 before the first");
    wrong(WAY_FAR_PAST_V, "guard band after v was overwritten: 1 elements, the nearest 100001 past");
    wrong(WAY_WORKSPACE, "guard band after the workspace was overwritten: 1 elements, the nearest 1 past the last");
    wrong(WAY_TOUCH_K, "input k was overwritten: element 77");
    wrong(WAY_FIRST_ONLY, "seed 42: not deterministic: launch 2");
    wrong(WAY_ON_NAN, "; before it the output held the first one's numbers with the other sign");
    wrong(WAY_CACHED, "seed 44: against cpu");
    wrong(WAY_CACHED_BY_Q, "seed 44: against cpu");
    wrong(WAY_CLAMPS, "seed 43 (rising, scale x 16, padded, V x 2^10): against cpu");
    wrong(WAY_JITTER, "differs from the first in 1 of 5120 elements, first at element 1 ");
    char words[64];
    snprintf(words, sizeof words, "element 1 (0x%04x, then 0x%04x)", last->kernel.cache[1], last->kernel.cache[1] ^ 1);
    holds(last->why.text, words);
    expect(WAY_FAULTS, WAY_LIBRARY, FA_ERROR, "seed 42: an illegal memory access");
}

TEST(what_is_read_outside_of_the_rows_is_named)
{
    static const char *const read[] = {"K outside", "V outside", "K and V outside", "Q outside", "the output outside"};
    for (way at = WAY_READ_PAST_K; at < WAY_OWN_NAN; at++) {
        wrong(at, "1 outputs are not finite");
        char words[160];
        snprintf(words, sizeof words, "; NaN is read from %s of the tensor's rows", read[at - WAY_READ_PAST_K]);
        wrong(at, words);
        wrong(at, "; with zeros there the output is right");
        assert_int_equal(last->candidate.buffers.clean, 0);
    }
    wrong(WAY_OWN_NAN, "it is the same: the kernel makes it");
    setup *s = make(WAY_READ_PAST_K, WAY_LIBRARY);
    s->kernel.fault = SIM_SWAP_KV;
    ends(
        s, FA_WRONG,
        "NaN is read from K outside of the tensor's rows; with zeros there the output looks like: K and V are swapped");
    s = make(WAY_READ_PAST_K, WAY_LIBRARY); /* its other bits may differ */
    s->candidate.nondeterministic = true;
    ends(s, FA_WRONG, "NaN is read from K outside");
    s = make(WAY_FAULT, WAY_LIBRARY);
    s->kernel.fault = SIM_SWAP_KV;
    ends(s, FA_WRONG, "K and V are swapped");
    assert_true(s->kernel.cleared == 1 && strstr(s->why.text, "NaN") == NULL);
}

TEST(the_log_sum_exp_is_checked_too)
{
    const struct {
        way way;
        const char *words;
    } cases[] = {
        {WAY_NO_LSE,
         "seed 42: log-sum-exp: 160 rows should be finite, or -inf without keys; the first at batch 0 head 0 row 0: "},
        {WAY_LSE_LOG2, "seed 42: log-sum-exp: |L-R| > 0.001"},
        {WAY_LSE_PAST, "guard band after lse was overwritten: 1 elements, the nearest 1 past the last element"},
        {WAY_LSE_BEFORE, "guard band before lse was overwritten: 1 elements, the nearest 1 before the first element"},
        {WAY_LSE_JITTER, "launch 2 on the same inputs differs from the first in 1 of 160 elements of the log-sum-exp, "
                         "first at element 2 ("},
        {WAY_LSE_ON_NAN,
         "launch 2 on the same inputs differs from the first in 160 of 160 elements of the log-sum-exp"},
        {WAY_TOUCH_K, "input k was overwritten: element 77"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setup *s = make(cases[i].way, WAY_LIBRARY);
        s->spec.lse = true;
        ends(s, FA_WRONG, cases[i].words);
    }
    for (int32_t misalign = 0; misalign < 8; misalign++) {
        setup *s = make(WAY_GOOD, WAY_LIBRARY);
        s->spec.lse = true;
        s->options.misalign = misalign;
        assert_int_equal(check(s), FA_PASS);
        assert_true(s->result.lse.done && s->result.lse.passed && s->result.lse.rows_checked == 2 * 160);
        const fa_params p = fa_buffers_params(&s->candidate.buffers, &s->problem, &s->candidate.launch);
        const void *const starts[] = {p.q, p.k, p.v, p.o};
        for (int i = 0; i < 4; i++)
            assert_int_equal((uintptr_t)starts[i] % 16, 2 * misalign);
        assert_int_equal((uintptr_t)p.lse % 16, 4 * misalign % 16);
        assert_true(p.lse_stride_b == 80 && p.lse_stride_h == 40 && p.lse_stride_s == 1);
        s->kernel.way = WAY_NO_LSE;
        ends_with(recheck(s, 50), FA_WRONG, &s->why, "after timing: seed 50: log-sum-exp: 160 rows");
        assert_true(!s->result.lse.passed && s->result.lse.rows_checked == 3 * 160);
    }
    setup *s = make(WAY_NO_LSE, WAY_LIBRARY); /* nobody asks for it */
    assert_int_equal(check(s), FA_PASS);
    assert_false(s->result.lse.done);
    assert_null(fa_buffers_params(&s->candidate.buffers, &s->problem, &s->candidate.launch).lse);
}

TEST(every_fault_fails_against_every_reference)
{
    const int32_t sets[] = {FA_REFERENCE_CPU, FA_REFERENCE_CUBLAS, FA_REFERENCE_CPU | FA_REFERENCE_CUBLAS};
    for (sim_fault fault = SIM_MEAN_OF_V; fault <= SIM_CAUSAL_TOP_LEFT; fault++)
        for (size_t i = 0; i < 3; i++) {
            setup *s = make(WAY_FAULT, WAY_LIBRARY);
            s->kernel.fault = fault;
            s->options.check = sets[i];
            s->options.seeds = 1;
            if (fault == SIM_NO_RESCALE) /* shows where the maximum rises in the second tile, here 6 keys */
                s->options.dist = FA_DIST_RISING;
            const fa_status got = check(s);
            if (got != FA_WRONG)
                fail_msg("fault %d against set %d: status %d", (int)fault, (int)sets[i], (int)got);
            assert_int_equal(s->result.verdict_count, i == 2 ? 2 : 1);
        }
}

/* Then the rules judge every repeat. */
TEST(jitter_may_be_declared)
{
    const way ways[] = {WAY_JITTER, WAY_LSE_JITTER, WAY_ON_NAN, WAY_LSE_ON_NAN, WAY_FIRST_ONLY};
    const char *const words[] = {"", "", "the first was right", "is wrong, the first was right",
                                 "launch 2 on the same inputs is wrong, the first was right"};
    for (int i = 0; i < 5; i++) {
        setup *s = make(ways[i], WAY_LIBRARY);
        s->candidate.nondeterministic = s->spec.lse = true;
        ends(s, i < 2 ? FA_PASS : FA_WRONG, words[i]);
        assert_int_equal(s->result.repeats, i < 2 ? 10 : 1);
        assert_string_equal(s->result.unrepeated, "");
    }
}

TEST(the_first_element_is_compared)
{
    uint16_t o[] = {1, 2}, other_o[] = {3, 2};
    float lse[] = {1, 2}, other_lse[] = {4, 2};
    const fa_session first = {.output = o, .count = 2, .lse = lse, .lse_count = 2};
    fa_reason why;
    assert_int_equal(fa_compare_bits(&first, o, lse, 1, "", &why), FA_PASS);
    ends_with(fa_compare_bits(&first, other_o, lse, 1, "", &why), FA_WRONG, &why,
              "first in 1 of 2 elements, first at element 0 (0x0001, then 0x0003)");
    ends_with(fa_compare_bits(&first, o, other_lse, 1, "greedy", &why), FA_WRONG, &why,
              "schedule greedy differs from the first in 1 of 2 elements of the log-sum-exp, "
              "first at element 0 (1, then 4)");
}

/* Repeats on the emulator: each under another schedule, back to the first one after them, and before each seed. */
TEST(schedules_take_turns)
{
    setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
    s->device.vary = fake_vary;
    s->device.sample = NULL;
    s->options.seeds = 2;
    assert_int_equal(check(s), FA_PASS);
    assert_int_equal(s->result.repeats, 5);
    assert_int_equal(s->result.schedules, (1 << FA_SCHEDULES) - 1);
    assert_int_equal(s->fake.vary_count, 1 + 5 + 1 + 1);
    for (int32_t i = 0; i < s->fake.vary_count; i++)
        assert_int_equal(s->fake.variation[i], i <= 5 ? i : 0);

    s = make(WAY_JITTER, WAY_NO_LIBRARY);
    s->device.vary = fake_vary;
    ends(s, FA_WRONG,
         "launch 2 on the same inputs, schedule descending differs from the first in 1 of "
         "5120 elements, first at element 1 (0x");
    assert_int_equal(s->result.schedules, 1 << FA_SCHEDULE_ASCENDING | 1 << FA_SCHEDULE_DESCENDING);
}

TEST(repeats_follow_from_the_problem)
{
    const struct {
        fa_problem problem;
        int32_t emulated;
    } cases[] = {{{1, 1, 1, 1, 1, 16, false, 1}, 5},
                 {{4, 5, 5, 128, 256, 32, false, 1}, 1},
                 {{2, 8, 8, 512, 512, 64, false, 1}, 1},
                 {{1, 1, 1, 8192, 8192, 64, false, 1}, 1},
                 {{1, 1, 1, 8192, 8193, 64, false, 1}, 0},
                 {{1, 2, 1, 256, 256, 64, false, 1}, 2},
                 {{1, 1, 1, 1 << 20, 32, 16, false, 1}, 1},
                 {{1, 1, 1, 1 << 20, 1, 16, false, 1}, 1},
                 {{1, 1, 1, 4096, 51, 16, false, 1}, 5},
                 {{1, 1, 1, 4096, 52, 16, false, 1}, 4},
                 {{1 << 20, 65536, 1, 1 << 20, 2, 16, false, 1}, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(fa_check_repeats(&cases[i].problem, true), cases[i].emulated);
        assert_int_equal(fa_check_repeats(&cases[i].problem, false), 10);
    }
    setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
    fa_session none = {.candidate = &s->candidate, .problem = &cases[4].problem, .result = &s->result};
    s->device.sample = NULL;
    assert_int_equal(fa_repeats_check(&none, &s->why), FA_PASS);
    assert_string_equal(s->result.unrepeated, "more than 2^32 multiply-adds on the emulator");
}

TEST(a_missing_library_is_said)
{
    setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
    assert_int_equal(check(s), FA_PASS);
    assert_string_equal(s->result.missing, "cublas: libcublas.so is not here; plain: no compiler");
    assert_int_equal(s->result.verdict_count, 1);
    assert_int_equal(s->fake.library_loads, 1);

    s = make(WAY_GOOD, WAY_NO_LIBRARY);
    s->options.check = FA_REFERENCE_CUBLAS;
    ends(s, FA_NOT_RUN, "no reference could run: cublas: libcublas.so is not here");
    assert_false(s->result.passed);
    assert_int_equal(s->kernel.launches, 0);

    s = make(WAY_GOOD, WAY_WRONG_LIBRARY);
    assert_int_equal(check(s), FA_PASS);
    holds(s->result.missing, "its own result is wrong here");
    assert_int_equal(s->result.verdict_count, 1);

    s = make(WAY_GOOD, WAY_WRONG_LIBRARY);
    s->options.check = FA_REFERENCE_CUBLAS;
    assert_int_equal(check(s), FA_NOT_RUN);
}

/* A library that fails while it runs is an error, unless the kernel is wrong anyway. */
TEST(a_failing_library_is_said)
{
    expect(WAY_GOOD, WAY_FAULTS, FA_ERROR, "seed 42: the cublas reference: an illegal memory access");
    setup *s = make(WAY_FAULT, WAY_FAULTS);
    s->kernel.fault = SIM_SCALE_OFF;
    ends(s, FA_WRONG, "seed 42: against cpu");
}

/* The plain reference: asked for, it checks every row beside the others; otherwise it stands in for cuBLAS. */
TEST(the_plain_reference_checks_every_row)
{
    setup *s = make_with_plain(WAY_GOOD, WAY_LIBRARY, WAY_PLAIN);
    s->spec.lse = true;
    s->options.check = FA_REFERENCE_CPU | FA_REFERENCE_CUBLAS | FA_REFERENCE_PLAIN;
    assert_int_equal(check(s), FA_PASS);
    assert_int_equal(s->result.verdict_count, 3);
    assert_string_equal(s->result.verdicts[2].name, "plain");
    assert_true(s->result.verdicts[2].passed && s->result.verdicts[2].rows_checked == 2 * 160);
    assert_true(s->result.verdicts[2].max_abs_err == s->result.verdicts[0].max_abs_err);
    assert_true(s->result.verdicts[2].baseline_rmse == s->result.verdicts[0].baseline_rmse);
    assert_string_equal(s->result.missing, "");

    const way library[] = {WAY_LIBRARY, WAY_NO_LIBRARY, WAY_WRONG_LIBRARY, WAY_GROUPS_PACKED};
    for (int i = 0; i < 4; i++) {
        s = make_with_plain(WAY_GOOD, library[i], WAY_PLAIN);
        assert_int_equal(check(s), FA_PASS);
        assert_int_equal(s->fake.plain_loads, i > 0);
        assert_int_equal(s->result.verdict_count, 2);
        assert_string_equal(s->result.verdicts[1].name, i == 0 || i == 3 ? "cublas" : "plain");
    }
    s = make_with_plain(WAY_LIBRARY, WAY_NO_LIBRARY, WAY_PLAIN); /* cuBLAS does not know features */
    s->options.check = FA_REFERENCE_CUBLAS;
    s->problem.windowed = s->kernel.problem.windowed = true;
    s->problem.window_left = s->kernel.problem.window_left = 9;
    s->problem.window_right = s->kernel.problem.window_right = 0;
    assert_int_equal(check(s), FA_PASS);
    assert_string_equal(s->result.missing, "cublas: does not serve --window");
    assert_int_equal(s->result.verdict_count, 1);
    assert_string_equal(s->result.verdicts[0].name, "plain");
    assert_int_equal(s->fake.library_loads, 0);
}

/* Whatever its own fault is, it is no reference then, and the reason says where. */
TEST(a_wrong_plain_reference_is_dropped)
{
    const struct {
        way way;
        const char *words;
    } cases[] = {
        {WAY_PLAIN_WRONG, "plain: its own result is wrong here, so no reference: batch 1 head 1 row 39 col 31: "},
        {WAY_PLAIN_WRONG_LSE, "plain: its own result is wrong here, so no reference: log-sum-exp of batch 0 head "
                              "0 row 7: "},
        {WAY_PLAIN_NAN, "plain: its own result is wrong here, so no reference: batch 0 head 0 row 1 col 1: "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int cpu = 0; cpu < 2; cpu++) {
            setup *s = make_with_plain(WAY_GOOD, WAY_LIBRARY, cases[i].way);
            s->options.check = FA_REFERENCE_PLAIN | (cpu ? FA_REFERENCE_CPU : 0);
            assert_int_equal(check(s), cpu ? FA_PASS : FA_NOT_RUN);
            holds(s->result.missing, cases[i].words);
            assert_int_equal(s->fake.plain_loads, 1);
            assert_int_equal(s->result.verdict_count, cpu);
        }
    setup *s = make_with_plain(WAY_GOOD, WAY_LIBRARY, WAY_PLAIN);
    s->options.check = FA_REFERENCE_CPU | FA_REFERENCE_PLAIN;
    assert_int_equal(make_buffers(s), FA_PASS);
    s->device.info.memory_bytes = 100000;
    assert_int_equal(fa_check(&s->candidate, &s->options, &s->result, &s->why), FA_PASS);
    holds(s->result.missing, "plain: its result takes ");
}

/* A problem of which the CPU takes a sample: a wrong row beside it is found. In these inputs another row, 3877, is
 * beyond the sample's limits and right: the CPU clears it. */
TEST(a_row_beside_the_sample_is_found)
{
    const way ways[] = {WAY_LIBRARY, WAY_ROW_OFF, WAY_LSE_ROW_OFF};
    setup *s = make_with_plain(WAY_LIBRARY, WAY_NO_LIBRARY, WAY_PLAIN);
    s->spec.lse = true;
    s->problem = s->kernel.problem = (fa_problem){1, 1, 1, 4096, 4400, 64, true, 0.125f};
    s->options.dist = FA_DIST_OUTLIER;
    s->options.seeds = 1;
    s->options.check = FA_REFERENCE_CPU | FA_REFERENCE_PLAIN;
    int64_t count, *rows = fa_choose_rows(&s->problem, 32, 42, &count);
    assert_in_range(count, 100, 4000);
    for (int64_t i = 0; i < count; i++)
        assert_int_not_equal(rows[i], ROW_OFF);
    free(rows);
    for (int wrong = 0; wrong < 3; wrong++) {
        s->kernel.way = ways[wrong];
        assert_int_equal(check(s), wrong ? FA_WRONG : FA_PASS);
        assert_true(s->result.verdicts[0].passed && s->result.verdicts[0].rows_checked == count);
        assert_true(s->result.verdicts[1].passed == (wrong != 1) && s->result.verdicts[1].rows_checked == 4096);
        if (wrong)
            holds(s->why.text, wrong == 1 ? "against plain: " : "log-sum-exp: |L-R|");
        assert_true(s->result.lse.passed == (wrong != 2) && s->result.lse.rows_checked == 4096);
    }
}

/* What an earlier result left behind the verdicts is none of them. */
TEST(verdicts_are_those_that_are_counted)
{
    fa_check_result result = {.verdicts = {{.name = "cpu", .rows_checked = 7}}};
    const fa_verdict verdict = {.name = "cpu", .rows_checked = 2, .passed = true};
    fa_judge_merge(&result, &verdict);
    assert_true(result.verdict_count == 1 && result.verdicts[0].rows_checked == 2);
    fa_judge_merge(&result, &verdict);
    assert_true(result.verdict_count == 1 && result.verdicts[0].rows_checked == 4);
}

/* A second candidate of the same problem draws nothing and makes no reference again. */
TEST(later_candidates_share_inputs_and_references)
{
    setup *s = make_with_plain(WAY_GOOD, WAY_LIBRARY, WAY_PLAIN);
    s->options.seeds = 5;
    s->options.check = FA_REFERENCE_CPU | FA_REFERENCE_CUBLAS | FA_REFERENCE_PLAIN;
    references_made = 0;
    assert_int_equal(check(s), FA_PASS);
    assert_int_equal(references_made, 5);
    const fa_check_result before = s->result;
    for (int i = 0; i < 3; i++) {
        s->kernel.launches = 0;
        assert_int_equal(check(s), FA_PASS);
        assert_memory_equal(&before, &s->result, sizeof before);
        assert_int_equal(references_made, 5);
        assert_true(s->fake.library_loads == 1 && s->fake.plain_loads == 1);
    }
    s->kernel.way = WAY_FAULT; /* and a wrong one is found by each of them */
    s->kernel.fault = SIM_SCALE_OFF;
    assert_int_equal(check(s), FA_WRONG);
    assert_int_equal(s->result.verdict_count, 3);
    for (int i = 0; i < 3; i++)
        assert_false(s->result.verdicts[i].passed);
    s->problem.scale *= 2; /* another problem */
    s->kernel.way = WAY_GOOD;
    assert_int_equal(check(s), FA_PASS);
    assert_int_equal(references_made, 10);
    assert_int_equal(made_before_launches, 5); /* none of the new ones */
    s->kernel.launches = 0;
    s->problem.scale *= 2;
    taken = 3; /* the first seeds are prepared meanwhile, with the same result */
    assert_int_equal(check(s), FA_PASS);
    assert_true(made_before_launches == 13 && references_made == 15 && taken == 0);
    s->problem.scale *= 2;
    taken = 7;
    closed = true; /* and before the gate opens what the checks after timing need, and the library */
    assert_int_equal(check(s), FA_PASS);
    assert_int_equal(references_made, 22);
    const int32_t loads = s->fake.library_loads;
    assert_int_equal(recheck(s, s->options.seed + 5), FA_PASS);
    assert_int_equal(recheck(s, s->options.seed + 6), FA_PASS);
    assert_true(references_made == 22 && s->fake.library_loads == loads);
    assert_int_equal(check(s), FA_PASS);
    assert_int_equal(s->fake.library_loads, loads + 1); /* also where it is not asked */
    closed = false;
}

/* To 1e-9 of the largest |V| plus |R|, in every row and column, and of 1 + |R| in the log-sum-exp. */
TEST(the_plain_reference_agrees_to_its_bound)
{
    const fa_problem problem = {.batch = 1, .heads = 1, .kv_heads = 1, .seq_q = 3, .seq_kv = 1, .dim = 16};
    uint16_t v[] = {FA_POISON, 0x4400, 0xC800}; /* poison, 4, -8 */
    int64_t rows[] = {0, 2};
    double exact[2 * 16] = {0}, lse[] = {100.0, -INFINITY}, plain[3 * 16], plain_lse[3];
    const fa_kept kept = {.tensors = {.v = v, .v_count = 3},
                          .reference = {.row_count = 2, .rows = rows, .exact = exact, .lse = lse}};
    exact[16 + 15] = -2.0;
    for (int at = -1; at < 4; at++)
        for (int sign = -1; sign <= 1; sign += 2)
            for (int over = 0; over < 2; over++) {
                const double part = (over ? 1.01e-9 : 0.99e-9) * sign;
                fa_reason why = {""};
                for (int i = 0; i < 16; i++) {
                    plain[i] = exact[i];
                    plain[16 + i] = 77.0; /* not in the sample */
                    plain[32 + i] = exact[16 + i];
                }
                plain_lse[0] = lse[0];
                plain_lse[1] = 77.0;
                plain_lse[2] = lse[1];
                if (at == 0)
                    plain[0] += 8.0 * part;
                if (at == 1)
                    plain[47] += 10.0 * part;
                if (at == 2)
                    plain_lse[0] += 101.0 * part;
                if (at == 3 && over)
                    plain_lse[2] = 0.0;
                assert_int_equal(fa_plain_agrees(&problem, &kept, plain, plain_lse, &why), at < 0 || !over);
                assert_int_equal(why.text[0] == '\0', at < 0 || !over);
            }
}

/* Unasked, it is made up to a limit; on the emulator it does not stand in. */
TEST(the_plain_reference_costs_no_more_than_allowed)
{
    const int64_t work = 2 * 2 * (40 * 31 + 39 * 40 / 2) * 64; /* causal: 31 keys for the first row */
    for (int more = 0; more < 2; more++) {
        setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
        char missing[FA_MISSING_SIZE] = "";
        fa_device_reference other = {.plain = true, .work_most = work - more};
        plain_compiles = true;
        fa_device_reference_open(&s->candidate, &other, missing);
        assert_int_equal(other.on, !more);
        assert_int_equal(strstr(missing, "plain: 5.17e+05 multiply-adds in FP64; --check cpu,plain") != NULL, more);
        fa_device_reference_close(&s->device, &other);
    }
    setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
    memcpy(s->device.info.backend, "emu", 4);
    s->options.check = FA_REFERENCE_CUBLAS;
    assert_int_equal(check(s), FA_NOT_RUN);
    assert_string_equal(s->result.missing, "cublas: libcublas.so is not here");
}

/* What cuBLAS cannot serve is asked for once, and said each time; of another candidate that says nothing. */
TEST(a_library_that_cannot_is_asked_once)
{
    setup *s = make_with_plain(WAY_LIBRARY, WAY_WRONG_LIBRARY, WAY_PLAIN);
    s->options.seeds = 1;
    s->spec.kind = FA_KIND_LIBRARY;
    fa_reason why;
    assert_int_equal(fa_registry_find("cublas", &s->spec.row, &why), FA_PASS);
    assert_int_equal(check(s), FA_PASS);
    assert_string_equal(s->result.missing, "cublas: is the kernel under test, so it is no reference");
    assert_string_equal(s->result.verdicts[1].name, "plain");
    assert_int_equal(s->fake.library_loads, 0);
    s->spec.row = NULL;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(check(s), FA_PASS);
        holds(s->result.missing, "cublas: its own result is wrong here");
        assert_true(s->fake.library_loads == 1 && s->fake.plain_loads == 1);
        assert_int_equal(s->result.verdict_count, 2);
    }
    s = make_with_plain(WAY_LIBRARY, WAY_LIBRARY, WAY_PLAIN); /* nor is its own result a reference of cuBLAS itself */
    s->options.seeds = 1;
    assert_int_equal(check(s), FA_PASS);
    assert_true(s->fake.library_loads == 1 && s->fake.plain_loads == 0);
    s->spec.kind = FA_KIND_LIBRARY;
    assert_int_equal(fa_registry_find("cublas", &s->spec.row, &why), FA_PASS);
    assert_int_equal(check(s), FA_PASS);
    assert_true(s->fake.library_loads == 1 && s->fake.plain_loads == 1);
    assert_string_equal(s->result.verdicts[1].name, "plain");
}

/* The rows of a failure are told in tiles of the kernel's own; a library's are not known. */
TEST(failures_are_told_in_the_kernels_tiles)
{
    const struct {
        fa_kind kind;
        int32_t m;
        const char *words;
    } cases[] = {{FA_KIND_HAND, 16, " of 3 tiles of 16 rows"},
                 {FA_KIND_HAND, 1, " of 40 tiles of 1 rows"},
                 {FA_KIND_LIBRARY, 16, " of 1 tiles of 64 rows"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setup *s = make(WAY_FAULT, WAY_NO_LIBRARY);
        s->kernel.fault = SIM_SCALE_OFF;
        s->spec.kind = cases[i].kind;
        s->spec.knobs.m = cases[i].m;
        ends(s, FA_WRONG, cases[i].words);
    }
}

/* Accumulators in FP16 are judged against a baseline that has them too. */
TEST(a_baseline_is_of_the_kernels_class)
{
    double baseline[2];
    for (int32_t acc = 0; acc < 2; acc++) {
        setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
        s->spec.knobs.acc = acc;
        assert_int_equal(check(s), FA_PASS);
        baseline[acc] = s->result.verdicts[0].baseline_rmse;
    }
    assert_true(baseline[0] > 0 && baseline[1] > 1.5 * baseline[0]);
}

TEST(tolerances_are_echoed_and_do_not_help)
{
    setup *s = make(WAY_FAULT, WAY_LIBRARY);
    s->kernel.fault = SIM_SCALE_OFF;
    s->options.atol = 1.5;
    assert_int_equal(check(s), FA_WRONG);
    assert_true(s->result.loosened && s->result.atol == 1.5);
    s = make(WAY_GOOD, WAY_NO_LIBRARY);
    assert_int_equal(check(s), FA_PASS);
    assert_true(!s->result.loosened && s->result.atol == 1e-3 && s->result.rtol == 1e-3);
    s = make(WAY_GOOD, WAY_NO_LIBRARY); /* FP16's tolerance, asked for in BF16, is not the rule */
    s->problem.dtype = s->kernel.problem.dtype = FA_DTYPE_BF16;
    assert_int_equal(check(s), FA_PASS);
    assert_true(!s->result.loosened && s->result.atol == 8e-3 && s->result.rtol == 8e-3);
    s = make(WAY_GOOD, WAY_NO_LIBRARY);
    s->problem.dtype = s->kernel.problem.dtype = FA_DTYPE_BF16;
    s->options.rtol = 1e-3;
    check(s);
    assert_true(s->result.loosened && s->result.rtol == 1e-3);
}

/* The recheck after timing finds what only then goes wrong, with contents of its own. */
TEST(the_recheck_checks)
{
    const way ways[] = {WAY_NOTHING, WAY_CACHED, WAY_PAST_OUTPUT, WAY_FAULTS};
    for (size_t i = 0; i < 4; i++) {
        setup *s = make(WAY_GOOD, WAY_LIBRARY);
        assert_int_equal(check(s), FA_PASS);
        memset(s->kernel.cache, 0, fa_problem_q_count(&s->problem) * sizeof *s->kernel.cache);
        s->kernel.way = ways[i];
        const fa_status status = recheck(s, 50);
        assert_int_equal(status, ways[i] == WAY_FAULTS ? FA_ERROR : FA_WRONG);
        assert_false(s->result.passed);
        assert_true(strncmp(s->why.text, "after timing: seed 50: ", 23) == 0);
        assert_string_equal(s->result.failure, s->why.text);
        assert_int_equal(s->result.found.listed, ways[i] == WAY_PAST_OUTPUT);
        if (ways[i] == WAY_CACHED) /* what the recheck found is in the verdict */
            assert_true(!s->result.verdicts[0].passed && s->result.verdicts[0].rows_checked == 3 * 160);
    }
}

/* The recheck asks the references of the check; the library is opened again only where it is the only one. */
TEST(the_recheck_asks_the_same_references)
{
    const int32_t sets[] = {FA_REFERENCE_CUBLAS, FA_REFERENCE_CPU | FA_REFERENCE_CUBLAS, FA_REFERENCE_CPU};
    const int32_t loads[] = {1, 1, 0}, loads_again[] = {2, 1, 0};
    for (int i = 0; i < 3; i++) {
        const bool cpu = i > 0;
        setup *s = make(WAY_GOOD, WAY_LIBRARY);
        s->options.check = sets[i];
        assert_int_equal(check(s), FA_PASS);
        assert_int_equal(s->fake.library_loads, loads[i]);
        assert_int_equal(s->result.verdict_count, i == 1 ? 2 : 1);
        assert_int_equal(recheck(s, 50), FA_PASS);
        assert_int_equal(s->fake.library_loads, loads_again[i]);
        assert_true(s->fake.scale[s->kernel.launches - 1] == s->problem.scale);
        s->kernel.way = WAY_FAULT;
        s->kernel.fault = SIM_SCALE_OFF;
        ends_with(recheck(s, 50), FA_WRONG, &s->why, cpu ? "against cpu" : "against cublas");
        s->fake.library = WAY_NO_LIBRARY;
        assert_int_equal(recheck(s, 50), cpu ? FA_WRONG : FA_NOT_RUN);
    }
}

/* Every layout, with and without a start off 16 bytes; offsets beyond 32 bits too. */
TEST(other_layouts)
{
    for (fa_strides strides = FA_STRIDES_PADDED; strides <= FA_STRIDES_ODD; strides++) {
        setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
        s->spec.lse = true;
        s->options.seeds = strides == FA_STRIDES_ODD ? 15 : 3;
        s->device.info.memory_bytes = (int64_t)1 << 40;
        s->options.strides = (int32_t)strides;
        s->options.misalign = strides == FA_STRIDES_PADDED ? 3 : 0;
        assert_int_equal(check(s), FA_PASS);
        assert_int_equal(s->result.draws[0].strides, strides);
        assert_int_equal(s->result.draws[2].strides, strides < FA_STRIDES_FAR ? FA_STRIDES_PADDED : strides);
    }
    setup *s = make(WAY_NO_STRIDES, WAY_NO_LIBRARY);
    s->options.strides = FA_STRIDES_BSHD;
    assert_int_equal(check(s), FA_WRONG);
    s = make(WAY_GAP_OF_O, WAY_NO_LIBRARY);
    s->options.strides = FA_STRIDES_PADDED;
    ends(s, FA_WRONG, "the gaps between the rows of o were overwritten");
    holds(s->why.text, "(--strides padded): 1 elements, the first 35 past the start");
    const way of_lse[] = {WAY_LSE_PACKED, WAY_GAP_OF_LSE};
    for (int i = 0; i < 2; i++) {
        s = make(of_lse[i], WAY_NO_LIBRARY);
        s->spec.lse = true;
        s->options.seeds = 1;
        assert_int_equal(check(s), FA_PASS); /* packed it is right */
        s->options.strides = FA_STRIDES_PADDED;
        ends(s, FA_WRONG, "the gaps between the rows of lse were overwritten");
    }
}

/* The first and the last of five seeds are as asked for and come first; the others find what those cannot. */
TEST(seeds_draw_more_than_numbers)
{
    setup *s = make(WAY_GOOD, WAY_GROUPS_PACKED);
    s->options.seeds = 5;
    assert_int_equal(check(s), FA_PASS);
    assert_int_equal(s->result.draw_count, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(s->result.draws[i].as_asked, i <= 1);
    assert_true(s->result.draws[1].seed == 46 && s->result.draws[1].q_seed == 42);
    assert_int_equal(s->result.draws[2].strides, FA_STRIDES_PADDED);
    assert_int_equal(s->result.draws[3].dist, FA_DIST_LOW);
    assert_true(s->result.draws[4].factor != 1.0f && s->result.draws[4].flat);
    assert_true(s->result.draws[2].v_power == 10 && s->result.draws[4].v_power == -10);
    for (int i = 0; i < 5; i++)
        assert_true(s->result.draws[i].max_abs_err > 0);
    assert_int_equal(s->result.verdicts[1].rows_checked, 2 * 2 * 2 * 40); /* the library: of the seeds as asked */
    assert_string_equal(s->result.missing, "");
    assert_int_equal(s->candidate.buffers.layout[FA_O].strides, FA_STRIDES_PACKED);
    for (int i = 0; i < 5; i++) /* a draw's scale is its own: the next one starts from that of the problem */
        assert_true(s->fake.scale[i == 0 ? 0 : 10 + i] == s->problem.scale * s->result.draws[i].factor);
    const way hidden[] = {WAY_NO_STRIDES, WAY_OWN_SCALE, WAY_ADDS, WAY_NO_ZERO_QUERY, WAY_EQUAL_KEYS};
    const char *const words[] = {"scale x 16, padded, V x 2^10)", "seed 4", "seed 45 (",
                                 "V x 2^-10, with zero queries and equal keys)", "with zero queries and equal keys)"};
    for (int i = 0; i < 5; i++) {
        s = make(hidden[i], WAY_NO_LIBRARY);
        s->options.seeds = 2; /* none is drawn */
        assert_int_equal(check(s), FA_PASS);
        s->options.seeds = 5;
        ends(s, FA_WRONG, words[i]);
    }
}

/* One verdict for each gradient, of all seeds as asked. */
TEST(gradients_are_judged_by_tensor)
{
    for (int i = 0; i < 4; i++) { /* bit 0: dV is wrong; bit 1: the plain kernel is asked, too */
        const int wrong = i & 1, plain = i >> 1;
        setup *s = make_with_plain(wrong ? WAY_DV_OFF : WAY_GOOD, WAY_NO_LIBRARY, WAY_PLAIN);
        s->problem = s->kernel.problem = (fa_problem){2, 2, 1, 10, 20, 32, true, 0.25f, .backward = true};
        s->options.check = FA_REFERENCE_CPU | (plain ? FA_REFERENCE_PLAIN : 0);
        s->options.seeds = 4;
        ends(s, wrong ? FA_WRONG : FA_PASS, wrong ? "against cpu: dv" : "");
        assert_int_equal(s->result.gradient_count, plain ? 6 : 3);
        assert_string_equal(s->result.missing, "");
        for (int32_t of = 0; of < s->result.gradient_count; of++) {
            const fa_gradient_verdict *v = &s->result.gradients[of];
            const int32_t tensor = of >> plain;
            assert_string_equal(v->tensor, fa_gradient_name(tensor));
            assert_string_equal(v->reference, plain && of % 2 == 1 ? "plain" : "cpu");
            assert_int_equal(v->rows_checked, (wrong ? 1 : 2) * fa_gradient_rows(&s->problem, tensor));
            assert_int_equal(v->passed, !wrong || tensor != FA_GRAD_DV);
            assert_true(v->max_abs_err > 0);
        }
        assert_true(s->result.draws[0].max_abs_err > 0);
        assert_int_equal(s->result.verdict_count, 0);
        s->kernel.way = WAY_DV_OFF;
        s->kernel.launches = 0;
        ends_with(recheck(s, 50), FA_WRONG, &s->why, "after timing: seed 50: ");
        assert_true(s->result.gradient_count == (plain ? 6 : 3) && !s->result.gradients[FA_GRAD_DV << plain].passed);
        s->kernel.way = wrong ? WAY_DV_OFF : WAY_GOOD;
        fa_kept_clear();
        s->fake.plain = WAY_PLAIN_WRONG;
        s->kernel.launches = 0;
        assert_int_equal(check(s), wrong ? FA_WRONG : FA_PASS);
        assert_true((strstr(s->result.missing, "is wrong here, so no reference: dv of batch 1 head 0") != NULL) ==
                    plain);
    }
}

/* A repeat may differ within the rules, unless --deterministic asks for the same bits. */
TEST(repeats_of_gradients_are_judged)
{
    const struct {
        way way;
        bool deterministic;
        int32_t apart;
        fa_status status;
        const char *words;
    } cases[] = {
        {WAY_GOOD, true, -1, FA_PASS, ""},
        {WAY_DK_JITTER, false, FA_GRAD_DK, FA_PASS, ""},
        {WAY_DK_JITTER, true, -1, FA_WRONG, "dk: not deterministic: launch 2"},
        {WAY_DK_ADDS, false, FA_GRAD_DK, FA_WRONG, "launch 2 on the same inputs is wrong, the first was right"},
        {WAY_DSINKS_ON_NAN, true, -1, FA_WRONG, "dsinks: not deterministic: launch 2"},
        {WAY_DSINKS_ON_NAN, false, FA_GRAD_DSINKS, FA_WRONG, "; before it the output held the first one's numbers"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setup *s = make(cases[i].way, WAY_NO_LIBRARY);
        s->problem = s->kernel.problem = (fa_problem){
            2, 2, 1, 10, 20, 32, true, 0.25f, .backward = true, .sinks = true, .deterministic = cases[i].deterministic};
        s->options.check = FA_REFERENCE_CPU;
        s->options.seeds = 1;
        ends(s, cases[i].status, cases[i].words);
        for (int32_t tensor = 0; tensor < FA_GRADS; tensor++) {
            const bool apart = tensor == cases[i].apart;
            assert_int_equal(s->result.gradients[tensor].repeats_max_abs > 0, apart);
        }
    }
}

/* What the drawn seeds cost: not one launch, and hardly a byte, beside seeds that are all as asked for. */
TEST(drawn_seeds_cost_next_to_nothing)
{
    size_t bytes[2];
    for (int asked = 0; asked < 2; asked++) {
        setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
        s->options.seeds = 5;
        s->spec.kind = asked ? FA_KIND_LIBRARY : FA_KIND_HAND; /* nothing is drawn for a library */
        assert_int_equal(check(s), FA_PASS);
        assert_int_equal(s->result.draws[2].as_asked, asked);
        for (int i = 0; i < 5 && asked; i++)
            assert_true(s->result.draws[i].dist == s->options.dist && s->result.draws[i].factor == 1.0f &&
                        s->result.draws[i].strides == s->options.strides && !s->result.draws[i].flat &&
                        s->result.draws[i].lengths == 0 && s->result.draws[i].v_power == 0);
        assert_int_equal(s->kernel.launches, 5 + 10);
        bytes[asked] = host.bytes_put;
    }
    assert_true((double)bytes[0] <= 1.1 * (double)bytes[1]);
}

/* More seeds than the record has room for are as asked for: what is not recorded is not drawn. */
TEST(seeds_beyond_the_record_are_as_asked_for)
{
    setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
    s->options.seeds = FA_DRAWS_MAX + 9;
    assert_int_equal(check(s), FA_PASS);
    assert_int_equal(s->result.seeds, FA_DRAWS_MAX + 9);
    assert_int_equal(s->result.draw_count, FA_DRAWS_MAX);
    int drawn = 0;
    for (int i = 0; i < FA_DRAWS_MAX; i++)
        drawn += !s->result.draws[i].as_asked;
    assert_int_equal(drawn, FA_DRAWS_MAX - 2);
    for (int i = FA_DRAWS_MAX + 1; i < FA_DRAWS_MAX + 9; i++) /* ten repeats of the first seed come before */
        assert_true(s->fake.scale[(i + 10) % 32] == s->problem.scale);
}

TEST(parameters_of_a_launch)
{
    setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
    assert_int_equal(make_buffers(s), FA_PASS);
    const fa_launch launch = {.tiles_m = 2, .tiles = 8};
    const fa_params p = fa_buffers_params(&s->candidate.buffers, &s->problem, &launch);
    assert_int_equal(p.q_stride_b, 2 * 40 * 32);
    assert_int_equal(p.o_stride_h, 40 * 32);
    assert_int_equal(p.k_stride_b, 1 * 70 * 32);
    assert_int_equal(p.v_stride_h, 70 * 32);
    assert_int_equal(p.v_stride_s, 32);
    assert_true(p.causal == 1 && p.sm_count == 4 && p.tiles_m == 2 && p.tiles == 8 && p.workspace_bytes == 100);
    for (int i = 0; i < 50; i++)
        assert_int_equal(((const uint16_t *)p.workspace)[i], 0);
}

/* One window of the L2 holds K and V when V lies right behind K's guard; the check of the guards works as before. */
TEST(k_and_v_lie_together_where_the_l2_keeps_them)
{
    setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
    s->options.l2_persist = FA_L2_PERSIST_KV;
    assert_int_equal(check(s), FA_PASS);
    const fa_buffers *b = &s->candidate.buffers;
    const size_t apart = fa_buffers_at(b, FA_V) - fa_buffers_at(b, FA_K);
    assert_int_equal(apart % 256, 0);
    assert_in_range(apart, fa_buffers_bytes(b, FA_K) + 4 * FA_GUARD_COUNT,
                    2 * b->capacity[FA_K] + 4 * FA_GUARD_COUNT + 255);
    assert_int_equal(host.allocated, 4); /* Q, K with V, O and the workspace */
}

TEST(too_large_is_refused_before_allocation)
{
    setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
    s->problem = (fa_problem){1000000, 8, 8, 512, 512, 64, false, 0.125f};
    assert_int_equal(make_buffers(s), FA_INFEASIBLE);
    assert_true(strstr(s->why.text, "need 1953.1 GiB") && strstr(s->why.text, "has 1.0 GiB"));
    s->device.info.memory_bytes = INT64_MAX; /* then it is the host that cannot */
    ends_with(make_buffers(s), FA_INFEASIBLE, &s->why, "on the host");
    assert_int_equal(host.allocations, 0);
}

/* --dump, then --load of what was dumped: same inputs, same output; then files that do not fit. */
TEST(dump_and_load)
{
    char folder[] = "/tmp/fa_check_XXXXXX";
    assert_non_null(mkdtemp(folder));
    setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
    s->options.dump = folder;
    s->spec.lse = true;
    assert_int_equal(check(s), FA_PASS);
    CLEANUP(fa_tensors_free) fa_tensors want = fa_tensors_make(&s->problem, FA_DIST_NORMAL, 42), got = {0};
    assert_int_equal(fa_npy_load(&s->problem, folder, &got, &s->why), FA_PASS);
    assert_memory_equal(want.q, got.q, want.q_count * 2);
    assert_memory_equal(want.k, got.k, want.k_count * 2);
    assert_memory_equal(want.v, got.v, want.v_count * 2);
    FREED char *o = fa_format("%s/o.npy", folder), *k = fa_format("%s/k.npy", folder), *file = NULL;
    size_t size;
    assert_int_equal(fa_read_file(o, &file, &size, &s->why), FA_PASS);
    assert_int_equal((size - want.q_count * 2) % 64, 0);
    assert_memory_equal(file, "\x93NUMPY\1\0", 8);
    holds(file + 10, "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 2, 40, 32), }");
    FREED char *lse = fa_format("%s/lse.npy", folder);
    assert_int_equal(unlink(lse), 0); /* tests/cli/lse.bats reads it */

    s = make(WAY_TOUCH_K, WAY_NO_LIBRARY); /* what is wrong is dumped too */
    s->options.dump = folder;
    assert_int_equal(unlink(o), 0);
    assert_int_equal(check(s), FA_WRONG);
    assert_int_equal(access(o, R_OK), 0);

    s = make(WAY_GOOD, WAY_NO_LIBRARY);
    s->options.load = folder;
    assert_int_equal(check(s), FA_PASS);
    assert_true(s->result.seeds == 1 && s->result.verdicts[0].rows_checked == 2 * 2 * 40);
    s->problem.seq_q = 41;
    ends_with(fa_npy_load(&s->problem, folder, &got, &s->why), FA_USAGE, &s->why,
              "q.npy has shape (2, 2, 40, 32), want (2, 2, 41, 32)");
    s->problem.seq_q = 40;
    want.v[9] = 0x7C00;
    const int32_t kv_shape[4] = {2, 1, 70, 32};
    assert_int_equal(fa_npy_write(folder, "v", FA_DTYPE_FP16, want.v, kv_shape, &s->why), FA_PASS);
    fa_tensors none = {0};
    ends_with(fa_npy_load(&s->problem, folder, &none, &s->why), FA_USAGE, &s->why, "v.npy: element 9 is not finite");
    assert_int_equal(fa_write_file(k, "no npy at all", 13, &s->why), FA_PASS);
    ends_with(fa_npy_load(&s->problem, folder, &none, &s->why), FA_USAGE, &s->why, "is no .npy file");
    unlink(k);
    assert_int_equal(fa_npy_load(&s->problem, folder, &none, &s->why), FA_USAGE);
    fa_run((const char *const[]){"rm", "-r", folder, NULL}, NULL);
}

/* Those of the sinks are a number for each head. */
TEST(gradients_are_dumped)
{
    static const char *const names[] = {"q", "k", "v", "o", "dout", "lse", "dq", "dk", "dv", "dsinks", "sinks"};
    char folder[] = "/tmp/fa_check_XXXXXX";
    assert_non_null(mkdtemp(folder));
    setup *s = make(WAY_GOOD, WAY_NO_LIBRARY);
    s->problem = s->kernel.problem = (fa_problem){2, 2, 1, 10, 20, 32, true, 0.25f, .backward = true, .sinks = true};
    s->options.dump = folder;
    assert_int_equal(check(s), FA_PASS);
    for (int i = 0; i < 11; i++) {
        FREED char *path = fa_format("%s/%s.npy", folder, names[i]), *file = NULL;
        size_t size;
        assert_int_equal(fa_read_file(path, &file, &size, &s->why), FA_PASS);
        if (i == 9)
            holds(file + 10, "'shape': (1, 1, 2), }");
        if (i == 10)
            holds(file + 10, "'shape': (2,), }");
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}
