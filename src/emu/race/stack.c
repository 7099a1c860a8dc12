#include "emu/race/stack.h"

#include <stdlib.h>

#include "base/status.h"

static uint32_t *slot_of(const fa_race_stacks *stacks, uint32_t outer, uint32_t place)
{
    uint32_t slot = (uint32_t)(((uint64_t)outer << 32 | place) * 0x9e3779b97f4a7c15u >> 33) & (stacks->slot_count - 1);
    for (;; slot = (slot + 1) & (stacks->slot_count - 1)) {
        const uint32_t number = stacks->slots[slot];
        if (number == 0 || (stacks->at[number].outer == outer && stacks->at[number].place == place))
            return &stacks->slots[slot];
    }
}

static void grow(fa_race_stacks *stacks)
{
    stacks->capacity = stacks->capacity > 0 ? 2 * stacks->capacity : 64;
    stacks->slot_count = 2 * stacks->capacity;
    stacks->at = fa_resize(stacks->at, stacks->capacity * sizeof *stacks->at);
    free(stacks->slots);
    stacks->slots = fa_alloc(stacks->slot_count * sizeof *stacks->slots);
    if (stacks->count == 0)
        stacks->at[stacks->count++] = (fa_race_call){0, 0};
    for (uint32_t i = 1; i < stacks->count; i++)
        *slot_of(stacks, stacks->at[i].outer, stacks->at[i].place) = i;
}

uint32_t fa_race_stack_push(fa_race_stacks *stacks, uint32_t outer, uint32_t place)
{
    if (stacks->count == stacks->capacity)
        grow(stacks);
    uint32_t *slot = slot_of(stacks, outer, place);
    if (*slot == 0) {
        stacks->at[stacks->count] = (fa_race_call){outer, place};
        *slot = stacks->count++;
    }
    return *slot;
}

uint32_t fa_race_stack_pop(const fa_race_stacks *stacks, uint32_t stack)
{
    return stack < stacks->count ? stacks->at[stack].outer : 0;
}

size_t fa_race_stack_places(const fa_race_stacks *stacks, uint32_t stack, uint32_t *places, size_t size)
{
    size_t count = 0;
    for (; stack != 0 && stack < stacks->count && count < size; stack = stacks->at[stack].outer)
        places[count++] = stacks->at[stack].place;
    return count;
}

void fa_race_stacks_free(fa_race_stacks *stacks)
{
    free(stacks->at);
    free(stacks->slots);
    *stacks = (fa_race_stacks){0};
}
