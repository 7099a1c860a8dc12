/* Tensor maps of the emulator: where the rows of a box lie, in 1 to 5 dimensions and over every edge, and what is no
 * map. */
#include "emu/core/tensor_map.h"
#include "unit.h"

enum { ELEMENT = 2, COLUMNS = 16 };
static const uint64_t DIMS[] = {COLUMNS, 5, 3, 4, 2};
static const uint32_t BOX[] = {8, 3, 2, 2, 2};
static _Alignas(16) unsigned char memory[1 << 16];

/* Strides with a gap: a row is twice as long as its elements. */
static fa_emu_map map_of(int rank)
{
    fa_tensor_map bytes;
    fa_emu_map map;
    uint64_t strides[4] = {2 * COLUMNS * ELEMENT};
    for (int i = 1; i < 4; i++)
        strides[i] = strides[i - 1] * DIMS[i];
    assert_null(fa_emu_map_encode(&bytes, memory, rank, FA_EMU_MAP_F16, DIMS, strides, BOX, 0));
    assert_true(fa_emu_map_decode(&bytes, &map));
    return map;
}

TEST(rows_of_every_rank)
{
    static const int32_t at[FA_EMU_MAP_RANK] = {4, 3, -1, 3, 1};
    for (int rank = 1; rank <= FA_EMU_MAP_RANK; rank++) {
        const fa_emu_map map = map_of(rank);
        uint32_t rows = 1, inside = 0;
        for (int i = 1; i < rank; i++)
            rows *= BOX[i];
        assert_int_equal(fa_emu_map_rows(&map), rows);
        assert_int_equal(fa_emu_map_row_bytes(&map), BOX[0] * ELEMENT);
        for (uint32_t row = 0; row < rows; row++) {
            uint64_t stride = 2 * COLUMNS * ELEMENT, offset = 4 * ELEMENT;
            uint32_t rest = row;
            bool exists = true;
            for (int i = 1; i < rank; i++, rest /= BOX[i - 1]) {
                const int64_t index = at[i] + rest % BOX[i];
                exists &= index >= 0 && index < (int64_t)DIMS[i];
                offset += (uint64_t)index * stride;
                stride *= DIMS[i];
            }
            const fa_emu_row found = fa_emu_map_row(&map, at, row);
            assert_int_equal(found.from < found.to, exists);
            if (exists)
                assert_ptr_equal(found.global, memory + offset);
            inside += exists;
        }
        assert_int_equal(inside, rank == 1 ? 1 : 2);
    }
}

TEST(columns_over_the_edges)
{
    static const struct {
        int32_t at;
        uint32_t from, to;
    } cases[] = {{0, 0, 16}, {8, 0, 16}, {12, 0, 8}, {-3, 6, 16}, {16, 0, 0}, {-8, 0, 0}};
    const fa_emu_map map = map_of(2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int32_t at[FA_EMU_MAP_RANK] = {cases[i].at};
        const fa_emu_row row = fa_emu_map_row(&map, at, 0);
        assert_int_equal(row.from, cases[i].from);
        assert_int_equal(row.to, cases[i].to);
        if (row.from < row.to)
            assert_ptr_equal(row.global + row.from, memory + (cases[i].at < 0 ? 0 : cases[i].at * ELEMENT));
    }
}

TEST(what_is_no_map)
{
    static const uint64_t none[] = {16, 0}, odd[] = {40}, fine[] = {64};
    static const uint32_t long_box[] = {8, 257}, narrow[] = {4, 1}, wide[] = {32, 1};
    fa_tensor_map bytes = {.bytes = {0}};
    fa_emu_map map;
    assert_false(fa_emu_map_decode(&bytes, &map));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 0, FA_EMU_MAP_F16, DIMS, fine, BOX, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 6, FA_EMU_MAP_F16, DIMS, fine, BOX, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory + 8, 2, FA_EMU_MAP_F16, DIMS, fine, BOX, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 2, FA_EMU_MAP_F16, none, fine, BOX, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 2, FA_EMU_MAP_F16, DIMS, odd, BOX, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 2, FA_EMU_MAP_F16, DIMS, fine, long_box, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 2, FA_EMU_MAP_F16, DIMS, fine, narrow, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 2, FA_EMU_MAP_F16, DIMS, fine, wide, 32));
    assert_null(fa_emu_map_encode(&bytes, memory, 2, FA_EMU_MAP_F16, DIMS, fine, wide, 64));
    assert_true(fa_emu_map_decode(&bytes, &map));
}

/* From zeros, field by field, the map that the host would make. */
TEST(replaced_fields)
{
    static const uint64_t strides[] = {64, 320};
    fa_tensor_map made = {.bytes = {0}}, wanted;
    assert_null(fa_emu_map_encode(&wanted, memory, 3, FA_EMU_MAP_BF16, DIMS, strides, BOX, 32));
    assert_null(fa_emu_map_replace(&made, FA_EMU_MAP_RANK_LESS_1, 0, 2));
    assert_null(fa_emu_map_replace(&made, FA_EMU_MAP_TYPE, 0, 10));
    assert_null(fa_emu_map_replace(&made, FA_EMU_MAP_ADDRESS, 0, (uintptr_t)memory));
    assert_null(fa_emu_map_replace(&made, FA_EMU_MAP_SWIZZLE, 0, 1));
    assert_null(fa_emu_map_replace(&made, FA_EMU_MAP_FILL, 0, 0));
    assert_null(fa_emu_map_replace(&made, FA_EMU_MAP_INTERLEAVE, 0, 0));
    for (uint64_t i = 0; i < 3; i++) {
        assert_null(fa_emu_map_replace(&made, FA_EMU_MAP_DIM, i, DIMS[i]));
        assert_null(fa_emu_map_replace(&made, FA_EMU_MAP_BOX, i, BOX[i]));
        assert_null(fa_emu_map_replace(&made, FA_EMU_MAP_ELEMENT_STRIDE, i, 1));
    }
    for (uint64_t i = 0; i < 2; i++)
        assert_null(fa_emu_map_replace(&made, FA_EMU_MAP_STRIDE, i, strides[i]));
    assert_memory_equal(&made, &wanted, sizeof made);
}

TEST(fields_out_of_range)
{
    static const struct {
        fa_emu_map_field field;
        uint64_t which, value;
    } wrong[] = {{FA_EMU_MAP_ADDRESS, 0, 8},
                 {FA_EMU_MAP_RANK_LESS_1, 0, 5},
                 {FA_EMU_MAP_BOX, 0, 257},
                 {FA_EMU_MAP_BOX, 1, 0},
                 {FA_EMU_MAP_BOX, 5, 1},
                 {FA_EMU_MAP_DIM, 0, 0},
                 {FA_EMU_MAP_STRIDE, 0, 24},
                 {FA_EMU_MAP_STRIDE, 4, 16},
                 {FA_EMU_MAP_STRIDE, 0, 1ull << 40},
                 {FA_EMU_MAP_ELEMENT_STRIDE, 1, 9},
                 {FA_EMU_MAP_TYPE, 0, 13},
                 {FA_EMU_MAP_INTERLEAVE, 0, 3},
                 {FA_EMU_MAP_SWIZZLE, 0, 4},
                 {FA_EMU_MAP_FILL, 0, 2}};
    fa_tensor_map bytes = {.bytes = {0}}, junk = {.bytes = {1}};
    assert_non_null(fa_emu_map_replace(&junk, FA_EMU_MAP_RANK_LESS_1, 0, 0));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_non_null(fa_emu_map_replace(&bytes, wrong[i].field, wrong[i].which, wrong[i].value));
    assert_memory_equal(&bytes, &(fa_tensor_map){.bytes = {0}}, sizeof bytes);
}

/* Single fields that are right, but not together. */
TEST(what_no_copy_may_use)
{
    fa_tensor_map bytes = {.bytes = {0}};
    fa_emu_map map = map_of(2), other;
    assert_null(fa_emu_map_check(&map));
    other = map;
    other.nans = 1;
    assert_null(fa_emu_map_check(&other));
    assert_int_equal(fa_emu_map_fill(&other), 0x7ff7);
    other.type = FA_EMU_MAP_U16;
    assert_non_null(fa_emu_map_check(&other));
    other = map;
    other.interleaved = 1;
    assert_non_null(fa_emu_map_check(&other));
    other = map;
    other.rank = 3;
    other.box[2] = 0;
    assert_non_null(fa_emu_map_check(&other));
    assert_null(fa_emu_map_replace(&bytes, FA_EMU_MAP_BOX, 0, 16));
    assert_true(fa_emu_map_decode(&bytes, &other));
    assert_non_null(fa_emu_map_check(&other));
}

/* Every second row of a box of 3: 2 rows, 2 apart. */
TEST(element_strides)
{
    static const int32_t at[FA_EMU_MAP_RANK] = {0, 1};
    fa_emu_map map = map_of(2);
    map.element_strides[1] = 2;
    assert_int_equal(fa_emu_map_rows(&map), 2);
    assert_ptr_equal(fa_emu_map_row(&map, at, 1).global, memory + 3 * map.strides[1]);
}

TEST(swizzles)
{
    for (uintptr_t at = 0; at < 4096; at += 16) {
        assert_int_equal(fa_emu_swizzled(at, 0), at);
        assert_int_equal(fa_emu_swizzled(at, 128), at ^ (at / 128 % 8) * 16);
        assert_int_equal(fa_emu_swizzled(at, 64), at ^ (at / 128 % 4) * 16);
        assert_int_equal(fa_emu_swizzled(at, 32), at ^ (at / 128 % 2) * 16);
    }
}
