/* fa_timing_invariance on a device of host memory, with kernels whose time depends on earlier launches. */
#include "timing/invariance.h"
#include "unit.h"

#include <math.h>

enum { COUNT = 64 };

typedef enum { WAY_HONEST, WAY_BY_CONTENTS, WAY_BY_POINTER, WAY_WHEN_NAN, WAY_NEVER_TIMED, WAY_SCRIPTED } way;

/* O = V here: its signs flip with those of the inputs, as attention's do. */
static struct {
    way way;
    uint16_t tensor[4][COUNT], seen[COUNT];
    bool seen_any;
    fa_dtype dtype;
    long samples;
    double us[6]; /* WAY_SCRIPTED: of the samples in turn */
    int beside_at;
    float times, beside; /* and what is wrong with the outputs of timed launches: o = times v + beside */
    golden *trace;       /* what was asked of the device */
} gpu;

/* The clock of these tests stands in the place of fa_now_s: rounds do not end early on a busy machine. */
static double step_s = 1e-6;
double __wrap_fa_now_s(void)
{
    static double now_s = 1000.0;
    return now_s += step_s;
}

static void trace(const char *what, const void *to, const void *from)
{
    if (gpu.trace == NULL)
        return;
    golden_say(gpu.trace, "%s", what);
    for (int i = 0; i < 4; i++)
        if (to == gpu.tensor[i])
            golden_say(gpu.trace, " to %c", "qkvo"[i]);
    for (int i = 0; i < 4; i++)
        if (from == gpu.tensor[i])
            golden_say(gpu.trace, " from %c", "qkvo"[i]);
    golden_say(gpu.trace, ": q %04x o %04x%s", gpu.tensor[0][0], gpu.tensor[3][0], what[0] == 's' ? "\n" : "; ");
}

static double run_kernel(void)
{
    uint16_t *o = gpu.tensor[3];
    const bool again = gpu.seen_any && memcmp(gpu.seen, gpu.tensor[2], sizeof gpu.seen) == 0;
    double us = 20.0;
    if ((gpu.way == WAY_BY_CONTENTS && again) || (gpu.way == WAY_BY_POINTER && gpu.seen_any) ||
        (gpu.way == WAY_WHEN_NAN && o[0] != 0xFFFF))
        us = 3.0;
    if (!(gpu.way == WAY_BY_POINTER && gpu.seen_any))
        memcpy(gpu.seen, gpu.tensor[2], sizeof gpu.seen);
    gpu.seen_any = true;
    memcpy(o, gpu.seen, sizeof gpu.seen);
    return us;
}

static fa_status fake_launch(fa_device *device, fa_kernel *kernel, const fa_launch *launch, const fa_params *params,
                             fa_reason *why)
{
    run_kernel();
    trace("launch", NULL, NULL);
    return FA_PASS;
}

static fa_status fake_sample(fa_device *device, const fa_sample_request *request, fa_sample *sample, fa_reason *why)
{
    assert_int_equal(request->method, FA_TIMING_EVENT);
    assert_int_equal(request->launches, 1);
    assert_int_equal(request->warmup_launches, 0);
    assert_false(request->reset_l2);
    if (gpu.way == WAY_SCRIPTED) {
        run_kernel();
        for (int i = 0; i < COUNT; i++)
            gpu.tensor[3][i] =
                fa_element_of_float(gpu.dtype, gpu.times * fa_element_to_float(gpu.dtype, gpu.tensor[3][i]) +
                                                   (i == gpu.beside_at ? gpu.beside : 0));
        trace("sample", NULL, NULL);
        *sample = (fa_sample){.us = gpu.us[gpu.samples % 3 + (gpu.samples >= 21 ? 3 : 0)]};
        gpu.samples++;
        return FA_PASS;
    }
    const double jitter_us = 0.1 * (double)(gpu.samples++ % 5);
    const double us = gpu.way == WAY_NEVER_TIMED ? 1.0 : run_kernel();
    *sample = (fa_sample){.us = us + jitter_us};
    return FA_PASS;
}

static fa_status fake_in(fa_device *device, fa_ptr to, const void *from, size_t bytes, fa_reason *why)
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    trace("copy", (void *)(uintptr_t)to, from);
    return FA_PASS;
}

static fa_status fake_copy(fa_device *device, fa_ptr to, fa_ptr from, size_t bytes, fa_reason *why)
{
    return fake_in(device, to, (const void *)(uintptr_t)from, bytes, why);
}

static fa_status fake_fill(fa_device *device, fa_ptr to, uint16_t value, size_t count, fa_reason *why)
{
    for (size_t i = 0; i < count; i++)
        ((uint16_t *)(uintptr_t)to)[i] = value;
    trace("fill", (void *)(uintptr_t)to, NULL);
    return FA_PASS;
}

static double ratio;
static fa_reason why;

static fa_status try_prepared(void)
{
    fa_device device = host_device();
    device.copy_in = fake_in;
    device.copy = fake_copy;
    device.fill16 = fake_fill;
    device.launch = fake_launch;
    device.sample = fake_sample;
    const fa_problem problem = {
        .batch = 1, .heads = 1, .kv_heads = 1, .seq_q = 1, .seq_kv = 1, .dim = COUNT, .dtype = gpu.dtype};
    fa_candidate candidate = {.device = &device, .problem = &problem, .buffers = {.device = &device, .tensors = FA_L}};
    fa_buffers *const buffers = &candidate.buffers;
    for (int i = 0; i < 4; i++) {
        buffers->base[i] = (fa_ptr)(uintptr_t)gpu.tensor[i];
        buffers->count[i] = COUNT;
        buffers->layout[i] =
            (fa_layout){.batch = 1, .heads = 1, .seq = 1, .dim = COUNT, .blocks = 1, .block_count = COUNT};
        for (int k = 0; k < COUNT; k++)
            gpu.tensor[i][k] = (uint16_t)(0x3000 + 97 * i + k + (k % 4 == 1 ? 0x8000 : 0)); /* of both signs */
    }
    const fa_sample_request request = {
        .method = FA_TIMING_GRAPH, .launches = 40, .warmup_launches = 3, .reset_l2 = true};
    uint16_t before[COUNT];
    memcpy(before, gpu.tensor[2], sizeof before);
    const fa_status status = fa_timing_invariance(&candidate, &request, &ratio, &why);
    assert_int_equal(host.allocated, 0);
    if (status == FA_PASS)
        assert_memory_equal(before, gpu.tensor[2], sizeof before); /* the inputs are as they were */
    return status;
}

static fa_status try_way(way what)
{
    memset(&gpu, 0, sizeof gpu);
    gpu.way = what;
    return try_prepared();
}

static bool first_is_beside; /* else the last element */
static fa_status try_scripted_of(fa_dtype dtype, float times, float beside, const double us[6])
{
    memset(&gpu, 0, sizeof gpu);
    gpu.way = WAY_SCRIPTED;
    gpu.dtype = dtype;
    gpu.beside_at = first_is_beside ? 0 : COUNT - 1;
    gpu.times = times;
    gpu.beside = beside;
    memcpy(gpu.us, us, sizeof gpu.us);
    return try_prepared();
}

static fa_status try_scripted(float times, float beside, const double us[6])
{
    return try_scripted_of(FA_DTYPE_FP16, times, beside, us);
}

/* 1.25 times the shortest and a microsecond, of any of the three; a second attempt counts alone. */
TEST(times_may_differ_a_little)
{
    for (int slow = 0; slow < 3; slow++)
        for (int over = 0; over < 2; over++) {
            double us[6] = {100, 100, 100, 100, 100, 100};
            us[slow] = us[3 + slow] = over ? 126.01 : 125.99;
            assert_int_equal(try_scripted(1, 0, us), over ? FA_WRONG : FA_PASS);
            assert_true(fabs(ratio - us[slow] / 100) < 1e-9);
            assert_int_equal(gpu.samples, over ? 63 : 21);
            us[3 + slow] = 100; /* a second attempt that is right */
            assert_int_equal(try_scripted(1, 0, us), FA_PASS);
        }
    const double short_ones[6] = {1, 2.2, 1, 1, 2.2, 1}, apart[6] = {7, 3, 20, 7, 3, 20};
    assert_int_equal(try_scripted(1, 0, short_ones), FA_PASS);
    ends_with(try_scripted(1, 0, apart), FA_WRONG, &why,
              "7.00 us on new inputs, 3.00 us on the same inputs again, 20.00 us when");
}

/* One round at least, however long it takes, and twice three more before a kernel is accused. */
TEST(slow_rounds_are_few)
{
    const double us[6] = {10, 10, 10, 10, 10, 10}, uneven[6] = {10, 20, 10, 10, 20, 10};
    step_s = 1;
    const fa_status status = try_scripted(1, 0, us);
    const long once = gpu.samples;
    const fa_status accused = try_scripted(1, 0, uneven);
    step_s = 1e-6;
    assert_int_equal(status, FA_PASS);
    assert_int_equal(once, 3);
    assert_int_equal(accused, FA_WRONG);
    assert_int_equal(gpu.samples, 3 + 2 * 3 * 3);
}

/* Outputs of timed launches: 2e-3 and 2e-3 of the value. */
TEST(timed_outputs_may_differ_in_last_bits)
{
    const double us[6] = {10, 10, 10, 10, 10, 10};
    const float value = fa_half_to_float((uint16_t)(0x3000 + 97 * 2 + COUNT - 1)); /* of the last element */
    assert_int_equal(try_scripted(1, 0.9f * 2e-3f * (1 + value), us), FA_PASS);
    assert_int_equal(try_scripted(1, 1.1f * 2e-3f * (1 + value), us), FA_WRONG);
    ends_with(try_scripted(1, -1.1f * 2e-3f * (1 + value), us), FA_WRONG, &why, "at element 63, not -0.");
    assert_int_equal(try_scripted(1, NAN, us), FA_WRONG);
    first_is_beside = true;
    assert_int_equal(try_scripted(1, 0.1f, us), FA_WRONG);
    first_is_beside = false;
    holds(why.text, "at element 0, not");
    const float of_bf16 = 8 * 2e-3f; /* the value itself is next to nothing there */
    assert_int_equal(try_scripted_of(FA_DTYPE_BF16, 1, 0.9f * of_bf16, us), FA_PASS);
    assert_int_equal(try_scripted_of(FA_DTYPE_BF16, 1, 1.1f * of_bf16, us), FA_WRONG);
}

/* Each sample after the same launches and, last, the same copies: a line a sample, with the first of q and o. */
TEST(samples_begin_alike)
{
    golden g = {0};
    memset(&gpu, 0, sizeof gpu);
    gpu.way = WAY_SCRIPTED;
    gpu.times = 1;
    gpu.trace = &g;
    for (int i = 0; i < 6; i++)
        gpu.us[i] = 10;
    assert_int_equal(try_prepared(), FA_PASS);
    golden_say(&g, "\n");
    golden_compare(&g, "invariance.txt");
}

static fa_status no_memory(fa_device *device, size_t bytes, fa_ptr *pointer, fa_reason *said)
{
    return fa_refuse(said, FA_ERROR, "no memory");
}

/* Inputs of 0 bytes or of more than 1 GiB are neither tested nor copied. The output does not count. */
TEST(large_inputs_are_left_out)
{
    const size_t quarter = (size_t)1 << 27; /* elements of a quarter of a gigabyte */
    const struct {
        size_t q, kv, o;
        bool tried;
    } cases[] = {{2 * quarter, 2 * quarter, 2 * quarter, false},
                 {0, 0, 0, false},
                 {0, 0, 4, false},
                 {2 * quarter, quarter, 2 * quarter, true},
                 {2 * quarter + 1, quarter, 2 * quarter, false},
                 {1, 0, 1, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fa_device device = {.alloc = no_memory}; /* any other call would crash */
        fa_candidate candidate = {.device = &device, .buffers = {.device = &device, .tensors = FA_L}};
        const size_t counts[] = {cases[i].q, cases[i].kv, cases[i].kv, cases[i].o};
        for (int tensor = 0; tensor < 4; tensor++) {
            candidate.buffers.count[tensor] = counts[tensor];
            candidate.buffers.layout[tensor] = (fa_layout){.blocks = 1, .block_count = counts[tensor]};
        }
        const fa_sample_request request = {.launches = 1};
        assert_int_equal(fa_timing_invariance(&candidate, &request, &ratio, &why), cases[i].tried ? FA_ERROR : FA_PASS);
        assert_true(isnan(ratio));
    }
}

TEST(an_honest_kernel_passes)
{
    assert_int_equal(try_way(WAY_HONEST), FA_PASS);
    assert_true(ratio >= 1.0 && ratio < 1.1);
}

TEST(time_must_not_depend_on_earlier_launches)
{
    ends_with(try_way(WAY_BY_CONTENTS), FA_WRONG, &why, "depends on what an earlier launch left");
    assert_true(ratio > 5);
    ends_with(try_way(WAY_WHEN_NAN), FA_WRONG, &why, "depends on what an earlier launch left");
}

TEST(an_old_output_is_wrong)
{
    ends_with(try_way(WAY_BY_POINTER), FA_WRONG, &why, "a timed launch on new inputs");
    assert_int_equal(try_way(WAY_NEVER_TIMED), FA_WRONG); /* the poison stays */
}
