/* Layouts of --strides: strides, gaps, blocks, and that scatter and gather are each other's inverse. */
#include "input/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GAP = 0xFFFF };

static const fa_problem problem = {2, 6, 3, 5, 7, 16, false, 0.25f};

static void strides_of_each_word(void **state)
{
    (void)state;
    const fa_layout packed = fa_layout_of(&problem, FA_STRIDES_PACKED, FA_K);
    assert_true(packed.stride_s == 16 && packed.stride_h == 7 * 16 && packed.stride_b == 3 * 7 * 16);
    assert_int_equal(fa_layout_span(&packed), 2 * 3 * 7 * 16);
    const fa_layout bshd = fa_layout_of(&problem, FA_STRIDES_BSHD, FA_Q);
    assert_true(bshd.stride_h == 16 && bshd.stride_s == 6 * 16 && bshd.stride_b == 5 * 6 * 16);
    assert_int_equal(fa_layout_span(&bshd), 2 * 6 * 5 * 16);
    for (int tensor = FA_Q; tensor < FA_L; tensor++) {
        const fa_layout padded = fa_layout_of(&problem, FA_STRIDES_PADDED, tensor);
        assert_true(padded.stride_s > 16 && padded.stride_h > padded.seq * padded.stride_s);
        assert_true(padded.stride_b > padded.heads * padded.stride_h);
        for (int other = FA_Q; other < tensor; other++)
            assert_true(fa_layout_of(&problem, FA_STRIDES_PADDED, other).stride_s != padded.stride_s);
    }
}

/* Every element keeps its place by the strides; gaps hold the filler; nothing is lost. */
static void scatter_and_gather(void **state)
{
    (void)state;
    const fa_problem shapes[] = {problem,
                                 {1, 6, 3, 5, 7, 16, false, 0.25f},
                                 {1, 1, 1, 5, 7, 24, false, 0.25f},
                                 {1, 1, 1, 1, 1, 16, false, 0.25f}};
    for (int of = 0; of < 4; of++)
        for (fa_strides strides = FA_STRIDES_PACKED; strides <= FA_STRIDES_FAR; strides++)
            for (int tensor = FA_Q; tensor < FA_L; tensor++) {
                const fa_layout l = fa_layout_of(&shapes[of], strides, tensor);
                assert_true(l.stride_b % 8 == 0 && l.stride_h % 8 == 0 && l.stride_s % 8 == 0);
                const size_t count = (size_t)l.blocks * fa_layout_dense(&l);
                assert_int_equal(count, (size_t)l.batch * (size_t)l.heads * (size_t)(l.seq * l.dim));
                uint16_t *dense = fa_alloc(count * 2), *back = fa_alloc(count * 2);
                uint16_t *image = fa_alloc(l.block_count * 2);
                for (size_t i = 0; i < count; i++)
                    dense[i] = (uint16_t)i;
                for (int64_t block = 0; block < l.blocks; block++) {
                    size_t filled = 0, first = 0;
                    fa_layout_scatter(&l, block, dense, GAP, image);
                    for (size_t i = 0; i < l.block_count; i++)
                        filled += image[i] != GAP;
                    assert_int_equal(filled, fa_layout_dense(&l));
                    assert_int_equal(fa_layout_gaps_changed(&l, block, image, GAP, &first), 0);
                    fa_layout_gather(&l, block, image, back);
                }
                assert_memory_equal(dense, back, count * 2);
                free(image);
                free(back);
                free(dense);
            }
}

static void an_element_lies_where_the_strides_say(void **state)
{
    (void)state;
    const fa_layout l = fa_layout_of(&problem, FA_STRIDES_PADDED, FA_V);
    uint16_t *dense = fa_alloc(2 * 3 * 7 * 16 * 2), *image = fa_alloc(l.block_count * 2);
    dense[((1 * 3 + 2) * 7 + 4) * 16 + 9] = 0x1234;
    fa_layout_scatter(&l, 0, dense, GAP, image);
    assert_int_equal(image[l.stride_b + 2 * l.stride_h + 4 * l.stride_s + 9], 0x1234);
    size_t first = 0;
    image[l.dim + 1] = 7;
    image[l.stride_h - 1] = 7;
    assert_int_equal(fa_layout_gaps_changed(&l, 0, image, GAP, &first), 2);
    assert_int_equal(first, l.dim + 1);
    free(image);
    free(dense);
}

/* The last part of a far tensor begins beyond what 32 bits count, whichever dimension is stretched. */
static void far_is_beyond_32_bits(void **state)
{
    (void)state;
    const fa_problem shapes[] = {problem, {1, 6, 3, 5, 7, 16, false, 0.25f}, {1, 1, 1, 5, 7, 24, false, 0.25f}};
    const int64_t blocks[] = {2, 3, 7};
    for (int of = 0; of < 3; of++) {
        const fa_layout l = fa_layout_of(&shapes[of], FA_STRIDES_FAR, FA_K);
        assert_int_equal(l.blocks, blocks[of]);
        const int64_t last = (l.batch - 1) * l.stride_b + (l.heads - 1) * l.stride_h + (l.seq - 1) * l.stride_s;
        assert_true(last > INT32_MAX);
        assert_int_equal(fa_layout_span(&l), last + l.dim);
        assert_true(l.blocks * (int64_t)l.block_count < 1 << 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strides_of_each_word),
        cmocka_unit_test(scatter_and_gather),
        cmocka_unit_test(an_element_lies_where_the_strides_say),
        cmocka_unit_test(far_is_beyond_32_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
