/* The table of PTX instructions (instructions.def) and the words they are spelled with (words.def). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
#define FA_PTX_TYPE(id, text, bits, kind, elements) FA_PTX_##id,
#include "ptx/words.def"
    FA_PTX_TYPES
} fa_ptx_type;

typedef enum {
#define FA_PTX_WORD(id, text) FA_PTX_W_##id,
#include "ptx/words.def"
    FA_PTX_WORDS
} fa_ptx_word;

typedef enum { FA_PTX_B, FA_PTX_U, FA_PTX_S, FA_PTX_F, FA_PTX_P } fa_ptx_kind;

typedef struct fa_ptx_type_info {
    const char *text;
    uint8_t bits, kind, elements;
} fa_ptx_type_info;
extern const fa_ptx_type_info fa_ptx_types[FA_PTX_TYPES];

typedef enum {
#define FA_PTX(id, ...) FA_PTX_OP_##id,
#include "ptx/instructions.def"
    FA_PTX_OPS,
    FA_PTX_OP_SPECIAL = FA_PTX_OPS /* made by the parser: reads a special register */
} fa_ptx_op;

/* Who runs an instruction. ARITHMETIC becomes INTEGER or REAL by its type. */
typedef enum {
    FA_PTX_MOVE,
    FA_PTX_ARITHMETIC,
    FA_PTX_INTEGER,
    FA_PTX_REAL,
    FA_PTX_BITS,
    FA_PTX_COMPARE,
    FA_PTX_CONVERT,
    FA_PTX_SPACE,
    FA_PTX_MEMORY,
    FA_PTX_FENCES,
    FA_PTX_FLOW,
    FA_PTX_GROUP,
    FA_PTX_MATRIX,
    FA_PTX_ASYNC, /* Hopper: hopper.h */
    FA_PTX_NOTHING,
    FA_PTX_READ_SPECIAL,
} fa_ptx_family;

typedef struct fa_ptx_row {
    const char *name;
    uint8_t family;
    const char *types;
    uint8_t types_least, types_most;
    const char *words;
    uint8_t args_least, args_most;
    const char *meaning;
} fa_ptx_row;
extern const fa_ptx_row fa_ptx_rows[FA_PTX_OPS];

/* -1: there is none of that name. Texts need no terminating 0. */
int fa_ptx_find_op(const char *text, size_t length);
int fa_ptx_find_type(const char *text, size_t length);
int fa_ptx_find_word(const char *text, size_t length);

/* Whether `text` is one of the blank-separated words of `list`. */
bool fa_ptx_listed(const char *list, const char *text, size_t length);

/* Special registers: %tid.x and so on, by number; -1: not one of them. */
typedef enum {
#define FA_PTX_SPECIAL(id, text) FA_PTX_SREG_##id,
#include "ptx/special.def"
    FA_PTX_SREGS
} fa_ptx_special;
int fa_ptx_find_special(const char *text, size_t length);
const char *fa_ptx_special_name(fa_ptx_special special);
