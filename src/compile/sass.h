/* Machine code as a graph: nvdisasm's listing cut into basic blocks with their successors. */
#pragma once

#include "base/status.h"

/* One instruction. The texts point into the listing. */
typedef struct fa_instruction {
    const char *opcode;   /* "FFMA", "HMMA.16816.F32", "LDS.128": name and modifiers, without the predicate */
    const char *operands; /* operands: the rest of the line */
    bool predicated;      /* by a predicate that is not constantly true: threads may skip it */
} fa_instruction;

typedef struct fa_basic_block {
    int32_t first, count;                /* instructions */
    int32_t first_successor, successors; /* in fa_sass.successor */
    bool exits;                          /* threads may end here */
} fa_basic_block;

/* Block 0 is the entry. Every path that a thread can take is a path of the graph; the reverse need not hold. */
typedef struct fa_sass {
    char *listing;
    fa_instruction *instruction;
    fa_basic_block *block;
    int32_t *successor;
    int32_t instructions, blocks, edges;
} fa_sass;

/* Whether an opcode is this instruction, with whatever modifiers: "LDS.128" is "LDS". */
bool fa_opcode_is(const char *opcode, const char *name);

/* Runs nvdisasm (in PATH, beside the toolkit or in build/tools) on a cubin, or takes its listing from the cache.
 * FA_NOT_RUN when there is none. */
fa_status fa_sass_read(const char *cubin_path, fa_sass *sass, fa_reason *why);
/* The graph of a listing (`nvdisasm -c`), which it takes over. FA_NOT_RUN: with a jump whose targets are unknown. */
fa_status fa_sass_parse(char *listing, fa_sass *sass, fa_reason *why);
void fa_sass_free(fa_sass *sass);
