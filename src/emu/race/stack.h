/* Call stacks of memory accesses, as numbers: equal stacks have equal numbers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The stack of a call at `place` (offset in the module) inside stack `outer`; 0 is the empty stack. */
typedef struct fa_race_call {
    uint32_t outer, place;
} fa_race_call;

typedef struct fa_race_stacks {
    fa_race_call *at;
    uint32_t *slots; /* a hash table of numbers, 0: free */
    uint32_t count, capacity, slot_count;
} fa_race_stacks;

uint32_t fa_race_stack_push(fa_race_stacks *stacks, uint32_t outer, uint32_t place);
uint32_t fa_race_stack_pop(const fa_race_stacks *stacks, uint32_t stack);
/* The places of the calls, innermost first, at most `size` of them. Returns how many. */
size_t fa_race_stack_places(const fa_race_stacks *stacks, uint32_t stack, uint32_t *places, size_t size);
void fa_race_stacks_free(fa_race_stacks *stacks);
