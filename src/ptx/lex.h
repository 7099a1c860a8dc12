/* Characters of a PTX text: blanks and comments skipped, names, numbers. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fa_ptx_lex {
    const char *text, *at;
    const char *statement; /* where the present one begins */
} fa_ptx_lex;

/* length 0: there is none here. operand: %3; then number is 3. A name written %%r is "%r". */
typedef struct fa_ptx_token {
    const char *text;
    size_t length;
    bool operand;
    int number;
} fa_ptx_token;

void fa_ptx_lex_begin(fa_ptx_lex *lex);
char fa_ptx_lex_peek(fa_ptx_lex *lex); /* 0: the end */
bool fa_ptx_lex_take(fa_ptx_lex *lex, char c);
fa_ptx_token fa_ptx_lex_name(fa_ptx_lex *lex);
fa_ptx_token fa_ptx_lex_opcode(fa_ptx_lex *lex);
fa_ptx_token fa_ptx_lex_label(fa_ptx_lex *lex); /* a name and the colon after it */
/* A number's bits: two's complement, or those of a double when is_float. */
bool fa_ptx_lex_number(fa_ptx_lex *lex, uint64_t *bits, bool *is_float);
/* The statement up to its end, on one line. */
void fa_ptx_lex_statement(const fa_ptx_lex *lex, char *text, size_t size);
