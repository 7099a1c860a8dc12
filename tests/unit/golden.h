/* Lines that a test says, compared with those of a committed file: what they say is the contract. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct golden {
    char *text;
    size_t used, room;
} golden;

__attribute__((format(printf, 2, 3))) void golden_say(golden *g, const char *format, ...);
/* Fails at the first line that differs from tests/golden/NAME. FA_GOLDEN=write in the environment writes the file. */
void golden_compare(golden *g, const char *name);
uint64_t golden_digest(uint64_t digest, const void *bytes, size_t count);
