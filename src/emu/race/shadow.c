#include "emu/race/shadow.h"

#include <stdlib.h>

#include "base/status.h"

/* FOREIGN_READS: the number of reads by finished blocks that are kept for 8 bytes. This bounds the memory of large
 * grids: any one of them that is not ordered before a write is the race. RACING: beyond it, accesses that raced with a
 * later one are dropped for it. */
enum { PAGE_BYTES = 4096, CELLS = PAGE_BYTES / 8, FOREIGN_READS = 8, RACING = 128 };

typedef struct cell {
    fa_race_access *at;
    uint32_t count, capacity;
} cell;

typedef struct fa_race_page {
    uint64_t number;
    cell cells[CELLS];
} fa_race_page;

static size_t slot_of(const fa_race_shadow *shadow, uint64_t number)
{
    size_t slot = (number * 0x9e3779b97f4a7c15u >> 20) & (shadow->capacity - 1);
    while (shadow->pages[slot] != NULL && shadow->pages[slot]->number != number)
        slot = (slot + 1) & (shadow->capacity - 1);
    return slot;
}

static void grow(fa_race_shadow *shadow)
{
    fa_race_shadow larger = {.capacity = shadow->capacity > 0 ? 2 * shadow->capacity : 256, .used = shadow->used};
    larger.pages = fa_alloc(larger.capacity * sizeof *larger.pages);
    for (size_t i = 0; i < shadow->capacity; i++)
        if (shadow->pages[i] != NULL)
            larger.pages[slot_of(&larger, shadow->pages[i]->number)] = shadow->pages[i];
    free(shadow->pages);
    *shadow = larger;
}

static fa_race_page *page_of(fa_race_shadow *shadow, uint64_t address, bool make)
{
    const uint64_t number = address / PAGE_BYTES;
    if (shadow->last != NULL && shadow->last->number == number)
        return shadow->last;
    if (make && 2 * shadow->used >= shadow->capacity)
        grow(shadow);
    if (shadow->capacity == 0)
        return NULL;
    const size_t slot = slot_of(shadow, number);
    if (shadow->pages[slot] == NULL && make) {
        shadow->pages[slot] = fa_alloc(sizeof(fa_race_page));
        shadow->pages[slot]->number = number;
        shadow->used++;
    }
    if (shadow->pages[slot] != NULL)
        shadow->last = shadow->pages[slot];
    return shadow->pages[slot];
}

static bool same_thread(const fa_race_access *a, const fa_race_access *b)
{
    /* accesses of an actor in two epochs are not ordered */
    return a->block == b->block && a->thread == b->thread && (!(a->kind & FA_RACE_ASYNC) || a->epoch == b->epoch);
}

/* Strong accesses do not race with one another: atomics in each other's scope, and volatile accesses where the writer
 * had a fence before it. A volatile write without one is no release: it counts as a plain write. So does one that a
 * lane of the same warp reads: lanes do not run in step. */
static bool strong_pair(const fa_race_access *a, const fa_race_access *b)
{
    const int strong = FA_RACE_ATOMIC | FA_RACE_VOLATILE;
    if (!(a->kind & strong) || !(b->kind & strong))
        return false;
    if (a->block != b->block && ((a->kind | b->kind) & FA_RACE_SCOPE_BLOCK))
        return false;
    if (a->block == b->block && a->thread / 32 == b->thread / 32 && ((a->kind | b->kind) & FA_RACE_VOLATILE))
        return false;
    const bool a_fine = !(a->kind & FA_RACE_WRITE) || (a->kind & (FA_RACE_ATOMIC | FA_RACE_FENCED));
    const bool b_fine = !(b->kind & FA_RACE_WRITE) || (b->kind & (FA_RACE_ATOMIC | FA_RACE_FENCED));
    return a_fine && b_fine;
}

static bool in_conflict(const fa_race_access *a, const fa_race_access *b)
{
    return (a->bytes & b->bytes) && ((a->kind | b->kind) & FA_RACE_WRITE) && !strong_pair(a, b);
}

/* `old` happened before `now`: what races with `old` also races with `now`, so `old` can be dropped. */
static bool stands_for(const fa_race_access *now, const fa_race_access *old)
{
    const bool as_wide = (old->bytes & ~now->bytes) == 0;
    const bool as_strict = (now->kind & FA_RACE_WRITE) >= (old->kind & FA_RACE_WRITE);
    const int plain = FA_RACE_ATOMIC | FA_RACE_VOLATILE;
    return as_wide && as_strict && (!(now->kind & plain) || now->kind == old->kind);
}

/* Merges bytes of one thread's access by one instruction. */
static bool continues(const fa_race_access *now, const fa_race_access *old)
{
    return same_thread(now, old) && now->epoch == old->epoch && now->kind == old->kind && now->place == old->place &&
           now->stack == old->stack;
}

static void append(cell *c, const fa_race_access *access)
{
    c->at = fa_grow(c->at, c->count, &c->capacity, 2, sizeof *c->at);
    c->at[c->count++] = *access;
}

void fa_race_shadow_touch(fa_race_shadow *shadow, uint64_t address, const fa_race_access *now, fa_race_ordered *ordered,
                          fa_race_conflict *conflict, const void *context)
{
    cell *c = &page_of(shadow, address, true)->cells[address % PAGE_BYTES / 8];
    fa_race_access merged = *now;
    uint32_t foreign = 0;
    if (c->count > 0) {
        const fa_race_access *last = &c->at[c->count - 1];
        if (same_thread(last, now) && last->epoch == now->epoch && last->kind == now->kind &&
            (now->bytes & ~last->bytes) == 0 && (now->place == last->place || !shadow->raced))
            return;
    }
    for (uint32_t i = 0; i < c->count; i++)
        if (continues(now, &c->at[i]))
            merged.bytes |= c->at[i].bytes;
    for (uint32_t i = 0; i < c->count;) {
        const fa_race_access old = c->at[i];
        const fa_race_order order = same_thread(&old, now) ? FA_RACE_ORDERED : ordered(context, &old);
        const bool races = order != FA_RACE_ORDERED && in_conflict(&old, now);
        const bool before = races ? c->count > RACING : order != FA_RACE_UNORDERED;
        shadow->raced |= races;
        if (races)
            conflict(context, &old, order);
        foreign += old.block != now->block && !(old.kind & FA_RACE_WRITE);
        if (continues(now, &old) || (before && stands_for(&merged, &old)) ||
            (foreign > FOREIGN_READS && old.block != now->block && !(old.kind & FA_RACE_WRITE)))
            c->at[i] = c->at[--c->count];
        else
            i++;
    }
    append(c, &merged);
}

static const fa_race_access *find_in(const cell *c, fa_race_wanted *wanted, const void *context)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (wanted(context, &c->at[i]))
            return &c->at[i];
    return NULL;
}

bool fa_race_shadow_find(fa_race_shadow *shadow, uint64_t address, size_t size, fa_race_wanted *wanted,
                         const void *context, fa_race_access *found)
{
    for (uint64_t at = address & ~7ull; at < address + size; at += 8) {
        const fa_race_page *page = page_of(shadow, at, false);
        const fa_race_access *access =
            page != NULL ? find_in(&page->cells[at % PAGE_BYTES / 8], wanted, context) : NULL;
        if (access == NULL)
            continue;
        *found = *access;
        return true;
    }
    return false;
}

void fa_race_shadow_clear(fa_race_shadow *shadow, uint64_t address, size_t size)
{
    const uint64_t end = address + size;
    for (uint64_t at = address & ~7ull; at < end;) {
        const uint64_t page_end = at / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES, stop = page_end < end ? page_end : end;
        fa_race_page *page = page_of(shadow, at, false);
        for (; page != NULL && at < stop; at += 8)
            page->cells[at % PAGE_BYTES / 8].count = 0;
        at = stop;
    }
}

void fa_race_shadow_free(fa_race_shadow *shadow)
{
    for (size_t i = 0; i < shadow->capacity; i++) {
        for (int k = 0; shadow->pages[i] != NULL && k < CELLS; k++)
            free(shadow->pages[i]->cells[k].at);
        free(shadow->pages[i]);
    }
    free(shadow->pages);
    *shadow = (fa_race_shadow){0};
}
