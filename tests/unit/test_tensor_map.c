/* Tensor maps of the emulator: where the rows of a box lie, in 1 to 5 dimensions and over every edge, and what is no
 * map. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "emu/tensor_map.h"

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
    assert_null(fa_emu_map_encode(&bytes, memory, rank, ELEMENT, DIMS, strides, BOX, 0));
    assert_true(fa_emu_map_decode(&bytes, &map));
    return map;
}

static void rows_of_every_rank(void **state)
{
    (void)state;
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

static void columns_over_the_edges(void **state)
{
    (void)state;
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

static void what_is_no_map(void **state)
{
    (void)state;
    static const uint64_t none[] = {16, 0}, odd[] = {40}, fine[] = {64};
    static const uint32_t long_box[] = {8, 257}, narrow[] = {4, 1}, wide[] = {32, 1};
    fa_tensor_map bytes = {.bytes = {0}};
    fa_emu_map map;
    assert_false(fa_emu_map_decode(&bytes, &map));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 0, ELEMENT, DIMS, fine, BOX, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 6, ELEMENT, DIMS, fine, BOX, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory + 8, 2, ELEMENT, DIMS, fine, BOX, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 2, ELEMENT, none, fine, BOX, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 2, ELEMENT, DIMS, odd, BOX, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 2, ELEMENT, DIMS, fine, long_box, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 2, ELEMENT, DIMS, fine, narrow, 0));
    assert_non_null(fa_emu_map_encode(&bytes, memory, 2, ELEMENT, DIMS, fine, wide, 32));
    assert_null(fa_emu_map_encode(&bytes, memory, 2, ELEMENT, DIMS, fine, wide, 64));
    assert_true(fa_emu_map_decode(&bytes, &map));
}

static void swizzles(void **state)
{
    (void)state;
    for (uintptr_t at = 0; at < 4096; at += 16) {
        assert_int_equal(fa_emu_swizzled(at, 0), at);
        assert_int_equal(fa_emu_swizzled(at, 128), at ^ (at / 128 % 8) * 16);
        assert_int_equal(fa_emu_swizzled(at, 64), at ^ (at / 128 % 4) * 16);
        assert_int_equal(fa_emu_swizzled(at, 32), at ^ (at / 128 % 2) * 16);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_every_rank),
        cmocka_unit_test(columns_over_the_edges),
        cmocka_unit_test(what_is_no_map),
        cmocka_unit_test(swizzles),
    };
    return cmocka_run_group_tests_name("tensor maps", tests, NULL, NULL);
}
