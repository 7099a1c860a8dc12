/* The shadow of memory: what it finds, and that it forgets what later accesses stand for. */
#include "emu/race/shadow.h"
#include "unit.h"

static fa_race_order all_ordered(const void *context, const fa_race_access *access) { return FA_RACE_ORDERED; }

static fa_race_order none_ordered(const void *context, const fa_race_access *access) { return FA_RACE_UNORDERED; }

typedef struct races {
    int count, threads; /* threads: a bit for each that the access races with */
} races;

static void noted(const void *context, const fa_race_access *access, fa_race_order order)
{
    races *found = *(races *const *)context;
    assert_int_equal(order, FA_RACE_UNORDERED);
    found->count++;
    found->threads |= 1 << access->thread;
}

static races touch(fa_race_shadow *shadow, const fa_race_access *access, fa_race_ordered *ordered)
{
    races found = {0}, *pointer = &found;
    fa_race_shadow_touch(shadow, 64, access, ordered, noted, &pointer);
    return found;
}

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
TEST(reads_in_parts_are_forgotten)
{
    CLEANUP(fa_race_shadow_free) fa_race_shadow shadow = {0};
    for (uint32_t epoch = 1; epoch <= 50; epoch++)
        for (uint16_t thread = 0; thread < 4; thread++)
            for (int part = 0; part < 4; part++) {
                const fa_race_access read = {.epoch = epoch, .thread = thread, .bytes = (uint8_t)(3 << 2 * part)};
                assert_int_equal(touch(&shadow, &read, all_ordered).count, 0);
            }
    assert_in_range(kept(&shadow), 1, 8);
}

/* What was read in parts is still there as a whole: a write to any byte of it races. */
TEST(every_part_still_races)
{
    for (int byte = 0; byte < 8; byte++) {
        CLEANUP(fa_race_shadow_free) fa_race_shadow shadow = {0};
        for (int part = 0; part < 4; part++) {
            const fa_race_access read = {.epoch = 1, .bytes = (uint8_t)(3 << 2 * part)};
            assert_int_equal(touch(&shadow, &read, none_ordered).count, 0);
        }
        const fa_race_access write = {.epoch = 1, .thread = 1, .bytes = (uint8_t)(1 << byte), .kind = FA_RACE_WRITE};
        assert_int_equal(touch(&shadow, &write, none_ordered).threads, 1);
    }
}

/* An access races with every earlier one, also with those that raced already; a cell of many racing threads is
 * bounded. */
TEST(one_race_hides_no_other)
{
    CLEANUP(fa_race_shadow_free) fa_race_shadow shadow = {0};
    for (uint16_t thread = 0; thread < 4; thread++) {
        const fa_race_access write = {.epoch = 1, .thread = thread, .bytes = 0xff, .kind = FA_RACE_WRITE};
        const races found = touch(&shadow, &write, none_ordered);
        assert_int_equal(found.threads, (1 << thread) - 1);
    }
    for (uint16_t thread = 4; thread < 1024; thread++) {
        const fa_race_access write = {.epoch = 1, .thread = thread, .bytes = 0xff, .kind = FA_RACE_WRITE};
        assert_in_range(touch(&shadow, &write, none_ordered).count, 1, 200);
    }
    assert_in_range(kept(&shadow), 1, 200);
}

/* Two stores of one thread in a row by two instructions: the second is judged, too. */
TEST(another_store_is_another_access)
{
    CLEANUP(fa_race_shadow_free) fa_race_shadow shadow = {0};
    fa_race_access write = {.epoch = 1, .bytes = 0xf, .kind = FA_RACE_WRITE};
    touch(&shadow, &write, none_ordered);
    write.thread = 1;
    assert_int_equal(touch(&shadow, &write, none_ordered).count, 1);
    assert_int_equal(touch(&shadow, &write, none_ordered).count, 0);
    write.place = 8;
    assert_int_equal(touch(&shadow, &write, none_ordered).count, 1);
}
