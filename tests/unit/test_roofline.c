/* Rooflines and peaks of known problems on a known GPU. Pure. */
#include "timing/roofline.h"
#include "unit.h"

#include <math.h>

static const fa_problem canonical = {.batch = 2, .heads = 8, .kv_heads = 8, .seq_q = 512, .seq_kv = 512, .dim = 64};
static const fa_device_info h200 = {
    .name = "H200", .arch = "sm_90", .sm_count = 132, .clock_mhz_max = 1980, .memory_gbytes_per_s = 4800};

TEST(rooflines)
{
    near(fa_roofline_us(&canonical, &h200, FA_L2_WARM), 1.0030, 1e-4);
    fa_problem decode = {.batch = 1, .heads = 8, .kv_heads = 8, .seq_q = 1, .seq_kv = 8192, .dim = 128};
    near(fa_roofline_us(&decode, &h200, FA_L2_COLD), (2.0 * 8 * 8192 + 8) * 128 * 2 / 4800e9 * 1e6, 1e-9);
    fa_problem blind = {.batch = 1, .heads = 1, .kv_heads = 1, .seq_q = 4096, .seq_kv = 1, .dim = 64, .causal = true};
    near(fa_roofline_us(&blind, &h200, FA_L2_COLD), 3.0 * 64 * 2 / 4800e9 * 1e6, 1e-9); /* one row sees the one key */
    fa_problem fp8 = decode, cache = decode; /* bytes of one for each element; twice the rate for FP8 queries alone */
    fp8.dtype = FA_DTYPE_E4M3;
    cache.fp8_kv = true;
    near(fa_roofline_us(&fp8, &h200, FA_L2_COLD), (2.0 * 8 * 8192 + 8) * 128 / 4800e9 * 1e6, 1e-9);
    near(fa_roofline_us(&cache, &h200, FA_L2_COLD), (8 * 8192 + 8) * 2.0 * 128 / 4800e9 * 1e6, 1e-9);
    near(fa_roofline_us(&fp8, &h200, FA_L2_WARM), 0.5 * fa_roofline_us(&decode, &h200, FA_L2_WARM), 1e-9);
    near(fa_roofline_us(&cache, &h200, FA_L2_WARM), fa_roofline_us(&decode, &h200, FA_L2_WARM), 1e-9);
    near(fa_problem_bytes(&fp8), 2.0 * 8 * 8192 * 128 + 8 * 128 * 3, 0.5); /* O has 16 bits */
    fa_device_info slow = h200;
    slow.memory_gbytes_per_s = 0.5;
    near(fa_roofline_us(&blind, &slow, FA_L2_COLD), 3.0 * 64 * 2 / 0.5e9 * 1e6, 1e-9);
    fa_device_info unknown = h200;
    strcpy(unknown.arch, "sm_00");
    assert_true(fa_roofline_us(&canonical, &unknown, FA_L2_WARM) == 0);
    assert_true(fa_throughput_of(10.0, 0, &canonical, &unknown).fraction_of_peak == 0);
}

/* What must be read at least: keys that some row sees, through pages or not, once for a K/V head; V in K not again. */
TEST(bytes_of_serving)
{
    fa_problem mla = {.batch = 2, .heads = 16, .kv_heads = 1, .seq_q = 1, .seq_kv = 100, .dim = 576, .dim_v = 512};
    near(fa_input_bytes(&mla), 2.0 * 2 * (16 * 576 + 100 * (576 + 512)), 0.5);
    mla.v_in_k = true;
    near(fa_input_bytes(&mla), 2.0 * 2 * (16 * 576 + 100 * 576), 0.5);
    fa_pages pages = {.size = 16, .count = 40};
    fa_problem paged = {.batch = 2, .heads = 8, .kv_heads = 2, .seq_q = 1, .seq_kv = 100, .dim = 64, .pages = &pages};
    near(fa_input_bytes(&paged), 2.0 * 2 * (8 * 64 + 2 * 100 * 128), 0.5);
    paged.windowed = true, paged.window_left = 9, paged.window_right = 0;
    near(fa_input_bytes(&paged), 2.0 * 2 * (8 * 64 + 2 * 10 * 128), 0.5);
}

TEST(without_a_time_there_is_no_rate)
{
    assert_true(fa_throughput_of(0, 990, &canonical, &h200).tflops == 0);
    assert_true(fa_throughput_of(NAN, 990, &canonical, &h200).tflops == 0);
}
