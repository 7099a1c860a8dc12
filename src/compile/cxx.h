/* Tokens of C++ text: enough to find where declarations begin and end. Pure text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum { FA_CXX_WORD, FA_CXX_NUMBER, FA_CXX_LITERAL, FA_CXX_MARK, FA_CXX_DIRECTIVE } fa_cxx_kind;

/* A mark is one character; a directive goes to the end of its last line. Comments are no tokens. */
typedef struct fa_cxx_token {
    fa_cxx_kind kind;
    const char *at;
    size_t length;
} fa_cxx_token;

typedef struct fa_cxx_tokens {
    fa_cxx_token *at;
    size_t count;
} fa_cxx_tokens;

/* Length of the prefix (u8, L, R, ...) of a string or character literal that starts here; 0: none, or no literal. */
size_t fa_cxx_literal_prefix(const char *at);
/* Behind a string or character literal at `at`, raw ones and prefixes included; `at` itself when there is none. */
const char *fa_cxx_skip_literal(const char *at);

fa_cxx_tokens fa_cxx_read(const char *text); /* `at` is malloc'd; it points into the text */
bool fa_cxx_is(const fa_cxx_token *token, const char *text);
/* Whether one of the tokens from `first` to before `last` is the text. */
bool fa_cxx_has(const fa_cxx_tokens *tokens, size_t first, size_t last, const char *text);
const char *fa_cxx_end(const fa_cxx_token *token);                   /* behind it */
void fa_cxx_put_breaks(FILE *out, const char *from, const char *to); /* the line breaks of a text, for its place */
/* The bracket that closes the one at index `open`, of ( [ {; `count` when none does. */
size_t fa_cxx_close(const fa_cxx_tokens *tokens, size_t open);
