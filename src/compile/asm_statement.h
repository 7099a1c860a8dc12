/* One asm statement of C++ source, taken apart: its text, its operands. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define FA_ASM_OPERANDS_MAX 140

typedef enum { FA_ASM_OUT, FA_ASM_INOUT, FA_ASM_IN } fa_asm_kind;
typedef struct fa_asm_operand {
    fa_asm_kind kind;
    char constraint;
    const char *expression; /* within the source */
    size_t length;
} fa_asm_operand;

typedef struct fa_asm_statement {
    char *strings; /* the literals as written */
    fa_asm_operand operand[FA_ASM_OPERANDS_MAX];
    int count, lines;  /* lines: from its first to its last */
    bool empty;        /* the text has no instruction */
    bool hopper, late; /* has instructions of sm_90a; a later statement delivers its results */
    bool lacks;        /* why the emulator cannot run it: */
    char lack_statement[200], lack_why[120];
    int lack_line; /* from the statement's first line on */
} fa_asm_statement;

/* `at`: after the word asm, in line `line` of its file. NULL: no asm statement, or one that cannot be read.
 * after_paren: a ')' stands before it, so that it may be the label of a declaration. end: after its last ')'. */
fa_asm_statement *fa_asm_statement_read(const char *at, int line, bool after_paren, const char **end);
void fa_asm_statement_free(fa_asm_statement *s);
