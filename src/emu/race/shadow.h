/* The shadow of memory: for every 8 bytes, the accesses that a later one could race with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FA_RACE_WRITE = 1,
    FA_RACE_ATOMIC = 2,
    FA_RACE_VOLATILE = 4,
    FA_RACE_FENCED = 8,       /* a volatile write after a fence: a release */
    FA_RACE_ASYNC = 32,       /* an actor's, through the async proxy */
    FA_RACE_GENERIC = 128,    /* an actor's, through the generic proxy like a thread's */
    FA_RACE_MAP = 64,         /* an actor reads its tensor map */
    FA_RACE_SCOPE_BLOCK = 16, /* an atomic of block scope */
};

typedef struct fa_race_access {
    uint32_t epoch, block;
    uint32_t place, stack; /* offset of the instruction in the module; the calls it is in (fa_race_stack) */
    uint32_t time;         /* number of an atomic or volatile access in the launch */
    uint16_t thread;
    uint8_t bytes, kind; /* bytes: a bit for each of the 8 */
} fa_race_access;

typedef struct fa_race_shadow {
    struct fa_race_page **pages; /* a hash table */
    size_t used, capacity;
    struct fa_race_page *last;
    bool raced; /* from now on each instruction of a thread is judged by itself */
} fa_race_shadow;

/* Whether the access happened before the present one; FENCE_MISSING: yes, but through another proxy. */
typedef enum { FA_RACE_UNORDERED, FA_RACE_ORDERED, FA_RACE_FENCE_MISSING } fa_race_order;
typedef fa_race_order fa_race_ordered(const void *context, const fa_race_access *access);

/* Records an access to some of the 8 bytes at `address` (a multiple of 8). `conflict` is called with each earlier one
 * that it races with. */
typedef void fa_race_conflict(const void *context, const fa_race_access *access, fa_race_order order);
void fa_race_shadow_touch(fa_race_shadow *shadow, uint64_t address, const fa_race_access *now, fa_race_ordered *ordered,
                          fa_race_conflict *conflict, const void *context);
/* The first access to a range that `wanted` takes. False: there is none. */
typedef bool fa_race_wanted(const void *context, const fa_race_access *access);
bool fa_race_shadow_find(fa_race_shadow *shadow, uint64_t address, size_t size, fa_race_wanted *wanted,
                         const void *context, fa_race_access *found);
/* Forgets the accesses to a range: it becomes other memory. */
void fa_race_shadow_clear(fa_race_shadow *shadow, uint64_t address, size_t size);
void fa_race_shadow_free(fa_race_shadow *shadow);
