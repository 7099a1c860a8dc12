/* Layouts of --strides: gaps, blocks. The strides, scatter and gather: tests/golden/layouts.txt (test_diagnose.c) */
#include "input/layout.h"
#include "run/elements.h"
#include "unit.h"

enum { GAP = 0xFFFF };

static const fa_problem problem = {2, 6, 3, 5, 7, 16, false, 0.25f};

TEST(padded_tensors_have_gaps_of_their_own)
{
    for (int tensor = FA_Q; tensor < FA_L; tensor++) {
        const fa_layout padded = fa_layout_of(&problem, FA_STRIDES_PADDED, 0, tensor);
        assert_true(padded.stride_s > 16 && padded.stride_h > padded.seq * padded.stride_s);
        assert_true(padded.stride_b > padded.heads * padded.stride_h);
        for (int other = FA_Q; other < tensor; other++)
            assert_true(fa_layout_of(&problem, FA_STRIDES_PADDED, 0, other).stride_s != padded.stride_s);
    }
}

/* The heads of a row lie together, and each is followed by a gap, as is each row and each page. */
TEST(pages_have_gaps)
{
    const fa_pages pages = {.size = 4, .nhd = true, .count = 6};
    fa_problem paged = problem;
    paged.pages = &pages;
    const fa_layout k = fa_layout_of(&paged, FA_STRIDES_PADDED, 0, FA_K);
    const fa_layout v = fa_layout_of(&paged, FA_STRIDES_PADDED, 0, FA_V);
    assert_true(k.stride_h == 32 && k.stride_s == 3 * 32 + 56 && k.stride_b == 4 * k.stride_s + 208);
    assert_true(v.stride_h == 40 && v.stride_s == 3 * 40 + 72 && v.stride_b == 4 * v.stride_s + 232);
}

/* Rows, heads and columns of each tensor, where V has another head dimension than Q and K. */
TEST(a_tensor_has_its_own_shape)
{
    const fa_problem p = {2, 6, 3, 5, 7, 16, false, 0.25f, .dim_v = 24, .backward = true, .sinks = true};
    const int32_t shapes[FA_TENSORS][4] = {
        [FA_Q] = {2, 6, 5, 16},  [FA_K] = {2, 3, 7, 16},    [FA_V] = {2, 3, 7, 24},  [FA_O] = {2, 6, 5, 24},
        [FA_L] = {2, 6, 5, 2},   [FA_DO] = {2, 6, 5, 24},   [FA_DQ] = {2, 6, 5, 16}, [FA_DK] = {2, 3, 7, 16},
        [FA_DV] = {2, 3, 7, 24}, [FA_DSINKS] = {1, 1, 6, 2}};
    for (int tensor = FA_Q; tensor < FA_TENSORS; tensor++) {
        const fa_layout l = fa_layout_of(&p, FA_STRIDES_PACKED, 0, tensor);
        const int32_t shape[4] = {l.batch, l.heads, l.seq, l.dim};
        assert_memory_equal(shape, shapes[tensor], sizeof shape);
    }
    assert_int_equal(fa_problem_o_count(&p), 2 * 6 * 5 * 24);
    const fa_problem latent = {2, 6, 1, 5, 7, 24, false, 0.25f, .dim_v = 16, .v_in_k = true};
    const fa_layout k = fa_layout_of(&latent, FA_STRIDES_PADDED, 0, FA_K),
                    v = fa_layout_of(&latent, FA_STRIDES_PADDED, 0, FA_V);
    assert_true(k.dim == 24 && v.dim == 16 && v.stride_s == k.stride_s && v.block_count == k.block_count - 8);
}

TEST(rows_of_bytes_begin_on_16_bytes)
{
    fa_problem p = problem;
    p.dtype = FA_DTYPE_E4M3;
    for (fa_strides strides = FA_STRIDES_PACKED; strides <= FA_STRIDES_FAR; strides++)
        for (int tensor = FA_Q; tensor <= FA_V; tensor++) {
            const fa_layout l = fa_layout_of(&p, strides, 0, tensor);
            assert_true(fa_layout_bytes(&l) == 1 && (l.stride_s | l.stride_h | l.stride_b) % 16 == 0);
        }
}

/* Rows of an odd length leave room for all of them. */
TEST(odd_strides_hold_what_is_inside)
{
    for (int32_t seq = 1; seq <= 9; seq++)
        for (uint64_t seed = 0; seed < 90; seed++)
            for (int tensor = FA_Q; tensor < FA_L; tensor++) {
                const fa_problem p = {2, seq, seq, seq, seq, 16, false, 0.25f};
                const fa_layout l = fa_layout_of(&p, FA_STRIDES_ODD, seed, tensor);
                assert_true(l.stride_h >= l.seq * l.stride_s && l.stride_h < l.seq * l.stride_s + 8 + 4);
                assert_true(l.stride_b >= l.heads * l.stride_h && l.stride_b < l.heads * l.stride_h + 8 + 4);
            }
}

/* Parts of any size lie one behind the other, and hold what the whole block holds. */
TEST(parts_make_up_the_tensor)
{
    const fa_problem shapes[] = {{7, 6, 3, 5, 7, 16, false, 0.25f},
                                 {1, 6, 3, 5, 7, 16, false, 0.25f},
                                 {5, 1, 1, 1, 1, 16, false, 0.25f},
                                 {5, 6, 3, 5, 0, 16, false, 0.25f}};
    for (int of = 0; of < 4; of++)
        for (fa_strides strides = FA_STRIDES_PACKED; strides <= FA_STRIDES_ODD; strides++)
            for (size_t most = 1; most < 1 << 20; most *= 3) {
                const fa_layout l = fa_layout_of(&shapes[of], strides, 7, FA_K);
                const size_t dense_count = (size_t)l.blocks * fa_layout_dense(&l);
                FREED uint16_t *dense = fa_alloc(dense_count * 2), *image = fa_alloc((l.block_count + 1) * 2);
                FREED uint16_t *scratch = NULL;
                size_t next = 0, parts = 0, largest = 0;
                for (size_t i = 0; i < dense_count; i++)
                    dense[i] = (uint16_t)i;
                for (fa_part p = {.first = 0}; fa_part_next(&l, most, &p); parts++) {
                    const bool far = l.blocks > 1;
                    assert_int_equal(p.at, far ? (size_t)(p.block * l.block_pitch) : next);
                    assert_true(parts == 0 || p.count <= largest);
                    largest = parts == 0 ? p.count : largest;
                    const uint16_t *part = fa_part_image(&p, dense, false, &scratch);
                    const uint16_t *all = fa_layout_image(&l, p.block, dense, GAP, image);
                    assert_memory_equal(part, all + (far ? 0 : p.at), p.count * 2);
                    next = p.at + p.count;
                }
                assert_int_equal(next, fa_layout_span(&l));
                if (of == 0 && l.blocks == 1) {
                    const size_t fit = most / (size_t)l.stride_b, many = fit < 1 ? 1 : fit < 7 ? fit : 7;
                    assert_int_equal(parts, (7 + many - 1) / many);
                }
            }
}

/* The last part of a far tensor begins beyond what 32 bits count, whichever dimension is stretched. */
TEST(far_is_beyond_32_bits)
{
    const fa_problem shapes[] = {problem,
                                 {1, 6, 3, 5, 7, 16, false, 0.25f},
                                 {1, 4, 2, 5, 7, 16, false, 0.25f},
                                 {1, 1, 1, 5, 7, 24, false, 0.25f}};
    const int64_t blocks[] = {2, 3, 2, 7};
    for (int of = 0; of < 4; of++) {
        const fa_layout l = fa_layout_of(&shapes[of], FA_STRIDES_FAR, 0, FA_K);
        assert_int_equal(l.blocks, blocks[of]);
        const int64_t last = (l.batch - 1) * l.stride_b + (l.heads - 1) * l.stride_h + (l.seq - 1) * l.stride_s;
        assert_true(last > INT32_MAX);
        assert_int_equal(fa_layout_span(&l), last + l.dim);
        assert_true(l.blocks * (int64_t)l.block_count < 1 << 20);
    }
}

/* 15 seeds in a row: one dimension of one tensor, or of all four, has a remainder, and each such pattern comes once. */
TEST(odd_strides_take_turns)
{
    const fa_problem heads_of_5 = {2, 5, 1, 3, 7, 24, false, 0.25f};
    for (uint64_t first = 41; first < 44; first++) {
        int seen[3][16] = {{0}}, most = 0;
        for (uint64_t seed = first; seed < first + 15; seed++) {
            int tensors[3] = {0};
            for (int tensor = FA_Q; tensor < FA_L; tensor++) {
                const fa_layout l = fa_layout_of(&heads_of_5, FA_STRIDES_ODD, seed, tensor);
                const int64_t rests[] = {l.stride_s % 8, l.stride_h % 8, l.stride_b % 8};
                assert_true(l.stride_s >= 24 && l.stride_h >= l.seq * l.stride_s && l.stride_b >= l.heads * l.stride_h);
                for (int i = 0; i < 3; i++) {
                    assert_true(rests[i] == 0 || rests[i] == 1 << seed % 3);
                    tensors[i] |= (rests[i] != 0) << tensor;
                }
            }
            assert_int_equal((tensors[0] != 0) + (tensors[1] != 0) + (tensors[2] != 0), 1);
            for (int i = 0; i < 3; i++)
                most += tensors[i] != 0 && seen[i][tensors[i]]++ == 0;
        }
        assert_int_equal(most, 15);
        for (int i = 0; i < 3; i++)
            assert_true(seen[i][1] && seen[i][2] && seen[i][4] && seen[i][8] && seen[i][15]);
    }
    const fa_layout lse = fa_layout_of(&heads_of_5, FA_STRIDES_ODD, 0, FA_L);
    assert_int_equal(fa_layout_span(&lse), 2 * 5 * 3 * 2);
}
