#include "ptx/lex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/formats.h"

static void skip_blanks(fa_ptx_lex *lex)
{
    for (;;) {
        lex->at += strspn(lex->at, " \t\r\n\v\f");
        if (lex->at[0] == '/' && lex->at[1] == '/') {
            lex->at += strcspn(lex->at, "\n");
        } else if (lex->at[0] == '/' && lex->at[1] == '*') {
            const char *end = strstr(lex->at + 2, "*/");
            lex->at = end != NULL ? end + 2 : lex->at + strlen(lex->at);
        } else {
            return;
        }
    }
}

void fa_ptx_lex_begin(fa_ptx_lex *lex)
{
    skip_blanks(lex);
    lex->statement = lex->at;
}

char fa_ptx_lex_peek(fa_ptx_lex *lex)
{
    skip_blanks(lex);
    return *lex->at;
}

bool fa_ptx_lex_take(fa_ptx_lex *lex, char c)
{
    if (fa_ptx_lex_peek(lex) != c)
        return false;
    lex->at++;
    return true;
}

static bool letter(char c) { return isalpha((unsigned char)c) || c == '_' || c == '$'; }
static bool in_name(char c) { return letter(c) || isdigit((unsigned char)c); }

fa_ptx_token fa_ptx_lex_name(fa_ptx_lex *lex)
{
    fa_ptx_token t = {0};
    skip_blanks(lex);
    const char *from = lex->at, *at = from;
    if (at[0] == '%' && isdigit((unsigned char)at[1])) {
        char *end = NULL;
        t.number = (int)strtol(at + 1, &end, 10);
        t.operand = true;
        at = end;
    } else {
        if (at[0] == '%' && at[1] == '%')
            from = ++at;
        if (*at == '%')
            at++;
        if (!letter(*at))
            return t;
        /* dots belong to special registers: %tid.x; %= is a number of its own in every statement: LOOP_%= */
        while (in_name(*at) || (*from == '%' && at[0] == '.' && letter(at[1])) || (at[0] == '%' && at[1] == '='))
            at += *at == '%' ? 2 : 1;
    }
    t.text = from;
    t.length = (size_t)(at - from);
    lex->at = at;
    return t;
}

fa_ptx_token fa_ptx_lex_opcode(fa_ptx_lex *lex)
{
    fa_ptx_token t = {0};
    skip_blanks(lex);
    t.text = lex->at;
    while (in_name(*lex->at) || *lex->at == '.' || *lex->at == ':')
        lex->at++;
    t.length = (size_t)(lex->at - t.text);
    return t;
}

fa_ptx_token fa_ptx_lex_label(fa_ptx_lex *lex)
{
    const fa_ptx_token none = {0};
    const char *before = lex->at;
    const fa_ptx_token t = fa_ptx_lex_name(lex);
    if (t.length > 0 && !t.operand && fa_ptx_lex_peek(lex) == ':') {
        lex->at++;
        return t;
    }
    lex->at = before;
    return none;
}

/* 0f3F800000 and 0d3FF0000000000000: the bits of a float or double. */
static bool hexadecimal_float(fa_ptx_lex *lex, uint64_t *bits)
{
    const bool wide = lex->at[1] == 'd' || lex->at[1] == 'D';
    char digits[17] = "", *end = NULL;
    const size_t count = wide ? 16 : 8;
    if (lex->at[0] != '0' || strchr("fFdD", lex->at[1]) == NULL || lex->at[1] == '\0')
        return false;
    strncpy(digits, lex->at + 2, count);
    *bits = strtoull(digits, &end, 16);
    if (strlen(digits) < count || *end != '\0')
        return false;
    if (!wide)
        *bits = fa_ptx_double_bits((double)fa_ptx_float(*bits));
    lex->at += 2 + count;
    return true;
}

bool fa_ptx_lex_number(fa_ptx_lex *lex, uint64_t *bits, bool *is_float)
{
    skip_blanks(lex);
    const char *start = lex->at;
    const bool minus = *lex->at == '-';
    if (minus) {
        lex->at++;
        skip_blanks(lex);
    }
    if (!isdigit((unsigned char)*lex->at)) {
        lex->at = start;
        return false;
    }
    *is_float = hexadecimal_float(lex, bits);
    if (!*is_float) {
        const char *digits = lex->at;
        const bool hexadecimal = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
        const bool binary = digits[0] == '0' && (digits[1] == 'b' || digits[1] == 'B');
        const char after = digits[strspn(digits, "0123456789")];
        char *end = NULL;
        *is_float = !hexadecimal && !binary && (after == '.' || after == 'e' || after == 'E');
        if (*is_float) {
            const double d = strtod(digits, &end);
            memcpy(bits, &d, sizeof d);
        } else {
            *bits = binary ? strtoull(digits + 2, &end, 2) : strtoull(digits, &end, 0);
            end += *end == 'U' || *end == 'u';
        }
        lex->at = end;
    }
    if (minus)
        *bits = *is_float ? *bits ^ (uint64_t)1 << 63 : 0 - *bits;
    return true;
}

void fa_ptx_lex_statement(const fa_ptx_lex *lex, char *text, size_t size)
{
    size_t used = 0;
    for (const char *c = lex->statement; *c != '\0' && *c != ';' && used + 1 < size; c++) {
        const bool blank = isspace((unsigned char)*c);
        if (!blank || (used > 0 && text[used - 1] != ' '))
            text[used++] = blank ? ' ' : *c;
    }
    while (used > 0 && text[used - 1] == ' ')
        used--;
    text[used] = '\0';
}
