/* Vector clocks: what a thread knows of others, by block. A thread that is known up to an epoch: all that it did until
 * the end of that epoch happened before what the knowing thread does next. */
#pragma once

#include <stdint.h>

/* The epochs of the threads of one block. Shared, never changed. */
typedef struct fa_race_epochs {
    uint32_t references;
    uint32_t of[];
} fa_race_epochs;

typedef struct fa_race_block {
    uint32_t block;
    fa_race_epochs *epochs;
} fa_race_block;

/* Blocks in ascending order. Shared, never changed; NULL: nothing is known. */
typedef struct fa_race_known {
    uint32_t references, count;
    fa_race_block at[];
} fa_race_known;

void fa_race_epochs_join(uint32_t *into, const uint32_t *from, uint32_t threads);
/* The epoch of a thread of a block, 0 when nothing is known of it. */
uint32_t fa_race_known_epoch(const fa_race_known *known, uint32_t block, uint32_t thread);
/* NULL: nothing is known of the block. */
const fa_race_epochs *fa_race_known_block(const fa_race_known *known, uint32_t block);
fa_race_known *fa_race_known_of_block(uint32_t block, const uint32_t *epochs, uint32_t threads);
fa_race_known *fa_race_known_hold(fa_race_known *known); /* adds a reference */
void fa_race_known_drop(fa_race_known *known);
/* *known becomes the union of both. */
void fa_race_known_add(fa_race_known **known, fa_race_known *more, uint32_t threads);
