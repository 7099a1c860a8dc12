#include "compile/cxx.h"

#include <ctype.h>
#include <string.h>

#include "base/status.h"

size_t fa_cxx_literal_prefix(const char *at)
{
    const size_t letters = strspn(at, "uUL8R");
    return letters <= 3 && (at[letters] == '"' || (at[letters] == '\'' && letters > 0)) ? letters : 0;
}

static const char *end_of_raw(const char *quote)
{
    char close[24];
    const size_t delimiter = strcspn(quote + 1, "(");
    if (delimiter > 16)
        return quote + 1;
    snprintf(close, sizeof close, ")%.*s\"", (int)delimiter, quote + 1);
    const char *end = strstr(quote, close);
    return end != NULL ? end + strlen(close) : quote + strlen(quote);
}

const char *fa_cxx_skip_literal(const char *at)
{
    const char *quote = at + fa_cxx_literal_prefix(at);
    if (*quote != '"' && *quote != '\'')
        return at;
    if (quote > at && quote[-1] == 'R')
        return end_of_raw(quote);
    const char *end = quote + 1;
    while (*end != '\0' && *end != *quote && *end != '\n')
        end += *end == '\\' && end[1] != '\0' ? 2 : 1;
    return end + (*end == *quote);
}

static const char *end_of_comment(const char *at)
{
    if (at[1] == '/')
        return at + strcspn(at, "\n");
    const char *end = strstr(at + 2, "*/");
    return end != NULL ? end + 2 : at + strlen(at);
}

/* A backslash and what it stands before; the line break may be CR LF. */
static const char *skip_escape(const char *at)
{
    return at + (at[1] == '\r' && at[2] == '\n' ? 3 : at[1] != '\0' ? 2 : 1);
}

/* Lines that end with a backslash go on; a comment of several lines does, too. */
static const char *end_of_directive(const char *at)
{
    while (*at != '\0' && *at != '\n') {
        if (*at == '/' && (at[1] == '/' || at[1] == '*'))
            at = end_of_comment(at);
        else if (*at == '"')
            at = fa_cxx_skip_literal(at);
        else
            at = *at == '\\' ? skip_escape(at) : at + 1;
    }
    return at;
}

static const char *end_of_word(const char *at, const char *more)
{
    while (isalnum((unsigned char)*at) || *at == '_' || (*at != '\0' && strchr(more, *at) != NULL))
        at++;
    return at;
}

static const char *end_of_token(const char *at, bool line_start, fa_cxx_kind *kind)
{
    *kind = *at == '#' && line_start ? FA_CXX_DIRECTIVE : FA_CXX_MARK;
    if (*kind == FA_CXX_DIRECTIVE)
        return end_of_directive(at);
    if (*at == '"' || *at == '\'' || fa_cxx_literal_prefix(at) > 0) {
        *kind = FA_CXX_LITERAL;
        return fa_cxx_skip_literal(at);
    }
    if (isdigit((unsigned char)*at)) {
        *kind = FA_CXX_NUMBER;
        return end_of_word(at, ".'");
    }
    if (!isalpha((unsigned char)*at) && *at != '_')
        return at + 1;
    *kind = FA_CXX_WORD;
    return end_of_word(at, "$");
}

fa_cxx_tokens fa_cxx_read(const char *text)
{
    fa_cxx_tokens tokens = {.at = NULL};
    size_t room = 0;
    bool line_start = true;
    for (const char *at = text; *at != '\0';) {
        if (isspace((unsigned char)*at)) {
            line_start = line_start || *at == '\n';
            at++;
            continue;
        }
        if (*at == '/' && (at[1] == '/' || at[1] == '*')) {
            at = end_of_comment(at);
            continue;
        }
        if (tokens.count == room) {
            room = 2 * room + 256;
            tokens.at = fa_resize(tokens.at, room * sizeof *tokens.at);
        }
        fa_cxx_token *token = &tokens.at[tokens.count++];
        token->at = at;
        at = end_of_token(at, line_start, &token->kind);
        token->length = (size_t)(at - token->at);
        line_start = false;
    }
    return tokens;
}

bool fa_cxx_is(const fa_cxx_token *token, const char *text)
{
    return strncmp(token->at, text, token->length) == 0 && text[token->length] == '\0';
}

bool fa_cxx_has(const fa_cxx_tokens *tokens, size_t first, size_t last, const char *text)
{
    while (first < last && !fa_cxx_is(&tokens->at[first], text))
        first++;
    return first < last;
}

const char *fa_cxx_end(const fa_cxx_token *token) { return token->at + token->length; }

void fa_cxx_put_breaks(FILE *out, const char *from, const char *to)
{
    for (; from < to; from++)
        if (*from == '\n')
            fputc('\n', out);
}

size_t fa_cxx_close(const fa_cxx_tokens *tokens, size_t open)
{
    size_t depth = 0;
    for (size_t i = open; i < tokens->count; i++) {
        if (tokens->at[i].kind != FA_CXX_MARK)
            continue;
        const char mark = *tokens->at[i].at;
        if (mark == '(' || mark == '[' || mark == '{')
            depth++;
        else if ((mark == ')' || mark == ']' || mark == '}') && --depth == 0)
            return i;
    }
    return tokens->count;
}
