/* The shadow of memory: what it finds, and that it forgets what later accesses stand for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emu/race/shadow.h"

static fa_race_order all_ordered(const void *context, const fa_race_access *access) { return FA_RACE_ORDERED; }

static fa_race_order none_ordered(const void *context, const fa_race_access *access) { return FA_RACE_UNORDERED; }

static bool counted(const void *context, const fa_race_access *access)
{
    ++**(int *const *)context;
    return false;
}

static int kept(fa_race_shadow *shadow)
{
    int count = 0, *counter = &count;
    fa_race_access found;
    assert_false(fa_race_shadow_find(shadow, 64, 8, counted, &counter, &found));
    return count;
}

/* Four threads read 8 bytes 2 by 2, again and again, with a barrier between. */
static void reads_in_parts_are_forgotten(void **state)
{
    fa_race_shadow shadow = {0};
    fa_race_access other;
    for (uint32_t epoch = 1; epoch <= 50; epoch++)
        for (uint16_t thread = 0; thread < 4; thread++)
            for (int part = 0; part < 4; part++) {
                const fa_race_access read = {.epoch = epoch, .thread = thread, .bytes = (uint8_t)(3 << 2 * part)};
                assert_false(fa_race_shadow_touch(&shadow, 64, &read, all_ordered, NULL, &other));
            }
    assert_in_range(kept(&shadow), 1, 8);
    fa_race_shadow_free(&shadow);
}

/* What was read in parts is still there as a whole: a write to any byte of it races. */
static void every_part_still_races(void **state)
{
    for (int byte = 0; byte < 8; byte++) {
        fa_race_shadow shadow = {0};
        fa_race_access other;
        for (int part = 0; part < 4; part++) {
            const fa_race_access read = {.epoch = 1, .bytes = (uint8_t)(3 << 2 * part)};
            assert_false(fa_race_shadow_touch(&shadow, 64, &read, none_ordered, NULL, &other));
        }
        const fa_race_access write = {.epoch = 1, .thread = 1, .bytes = (uint8_t)(1 << byte), .kind = FA_RACE_WRITE};
        assert_true(fa_race_shadow_touch(&shadow, 64, &write, none_ordered, NULL, &other));
        assert_int_equal(other.thread, 0);
        fa_race_shadow_free(&shadow);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_in_parts_are_forgotten),
        cmocka_unit_test(every_part_still_races),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
