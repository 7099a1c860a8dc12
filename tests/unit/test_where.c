/* Which tensor an address lies beside, and which element it would be. */
#include "emu/core/where.h"
#include "unit.h"

/* Two batches, three heads (one of K and V), four rows of 16; rows of Q 20 apart, O as [B, S, H, D]. */
static fa_params launch(void)
{
    const uintptr_t base = 1u << 28;
    fa_params p = {.batch = 2, .heads = 3, .kv_heads = 1, .seq_q = 4, .seq_kv = 5, .dim = 16};
    p.q = (void *)base;
    p.k = (void *)(base + 100000);
    p.v = (void *)(base + 200000);
    p.o = (void *)(base + 300000);
    p.q_stride_b = 240, p.q_stride_h = 80, p.q_stride_s = 20;
    p.k_stride_b = p.v_stride_b = p.k_stride_h = p.v_stride_h = 80;
    p.k_stride_s = p.v_stride_s = 16;
    p.o_stride_b = 192, p.o_stride_h = 16, p.o_stride_s = 48;
    return p;
}

static void says(const fa_params *p, const void *tensor, int64_t bytes, const char *words)
{
    char text[256];
    assert_true(fa_emu_where(p, (const char *)tensor + bytes, text, sizeof text));
    assert_string_equal(text, words);
}

TEST(beside_a_tensor)
{
    const fa_params p = launch();
    says(&p, p.k, 2 * 160, "K, 1 element past its end: batch 1, head 0, row 5 (rows 0 to 4), column 0");
    says(&p, p.k, 2 * 180 + 1, "K, 21 elements past its end: batch 1, head 0, row 6 (rows 0 to 4), column 4");
    says(&p, p.v, -2, "V, 1 element before its start: batch 0, head 0, row -1 (rows 0 to 4), column 15");
    says(&p, p.q, 2 * (240 + 2 * 80 + 20 + 17), "Q, between its rows: batch 1, head 2, row 1 (rows 0 to 3), column 17");
    says(&p, p.q, 0, "Q, inside: batch 0, head 0, row 0 (rows 0 to 3), column 0");
}

TEST(by_the_largest_stride_first)
{
    const fa_params p = launch();
    says(&p, p.o, 2 * (192 + 3 * 48 + 2 * 16 + 5), "O, inside: batch 1, head 2, row 3 (rows 0 to 3), column 5");
}

TEST(the_log_sums_have_wider_elements)
{
    fa_params p = launch();
    p.lse = (fa_f32 *)(uintptr_t)((1u << 28) + 400000);
    p.lse_stride_b = 12;
    p.lse_stride_h = 4;
    p.lse_stride_s = 1;
    says(&p, p.lse, 4 * 24, "LSE, 1 element past its end: batch 1, head 2, row 4 (rows 0 to 3), column 0");
}

TEST(gradients_are_known)
{
    fa_params p = launch();
    p.dim_v = 8;
    p.dk = (void *)(uintptr_t)((1u << 28) + 500000);
    p.dv = (void *)(uintptr_t)((1u << 28) + 600000);
    const fa_i64 strides[2][3] = {{80, 80, 16}, {40, 40, 8}};
    memcpy(p.grad_stride[2], strides, sizeof strides);
    says(&p, p.dk, 2 * 160, "dK, 1 element past its end: batch 1, head 0, row 5 (rows 0 to 4), column 0");
    says(&p, p.dv, 2 * (40 + 3 * 8 + 7), "dV, inside: batch 1, head 0, row 3 (rows 0 to 4), column 7");
}

TEST(far_from_all)
{
    const fa_params p = launch();
    char text[256];
    assert_false(fa_emu_where(&p, NULL, text, sizeof text));
    assert_false(fa_emu_where(&p, (const char *)p.o + (2 << 20), text, sizeof text));
}
