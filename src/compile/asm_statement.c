#include "compile/asm_statement.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "compile/cxx.h"
#include "ptx/hopper.h"
#include "ptx/parse.h"

/* The text of an asm statement while its literals are decoded, with the source line of each character. */
typedef struct decoded {
    char *text;
    int *line;
    size_t length;
} decoded;

typedef struct reader {
    const char *at;
    int line, first_line; /* line: lines since the first one, which has that number in its file */
    fa_asm_statement *s;
    decoded text;
} reader;

/* Moves past one character. A line marker (# 12 "file") that follows a line break is skipped, too, up to its own line
 * break. Macros of system headers, such as NAN, leave markers inside a statement. */
static void step(reader *r)
{
    r->line += *r->at == '\n';
    if (*r->at++ == '\n' && *r->at == '#') {
        r->line = atoi(r->at + 1) - 1 - r->first_line;
        r->at += strcspn(r->at, "\n");
    }
}

static void skip_blanks(reader *r)
{
    while (isspace((unsigned char)*r->at))
        step(r);
}

static bool take(reader *r, char c)
{
    skip_blanks(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static bool take_word(reader *r, const char *word)
{
    skip_blanks(r);
    const size_t length = strlen(word);
    if (strncmp(r->at, word, length) != 0 || isalnum((unsigned char)r->at[length]) || r->at[length] == '_')
        return false;
    r->at += length;
    return true;
}

static void put(decoded *d, char c, int line)
{
    if ((d->length & (d->length + 1)) == 0) { /* 0, 1, 3, 7, ... */
        d->text = fa_resize(d->text, 2 * d->length + 2);
        d->line = fa_resize(d->line, (2 * d->length + 2) * sizeof *d->line);
    }
    d->text[d->length] = c;
    d->line[d->length] = line;
    if (c != '\0')
        d->length++;
}

/* One literal, escapes resolved, at the end of the text. */
static void decode(reader *r, const char *from, const char *end)
{
    const char *quote = from + fa_cxx_literal_prefix(from);
    const bool raw = quote > from && quote[-1] == 'R';
    int line = r->line;
    if (raw) {
        const size_t delimiter = strcspn(quote + 1, "(");
        from = quote + 2 + delimiter;
        end -= 2 + delimiter;
    } else {
        from = quote + 1;
        end--;
    }
    for (const char *c = from; c < end; c++) {
        char value = *c;
        if (!raw && *c == '\\' && c + 1 < end) {
            c++;
            const char *which = strchr("ntrv", *c);
            value = which != NULL ? "\n\t\r\v"[which - "ntrv"] : *c;
            if (*c >= '0' && *c <= '7')
                value = ' ';
        }
        put(&r->text, value, line);
        line += *c == '\n';
    }
}

/* Adjacent literals. strings (may be NULL) receives them as they stand. */
static bool literals(reader *r, FILE *strings)
{
    int count = 0;
    for (;; count++) {
        skip_blanks(r);
        const char *end = fa_cxx_skip_literal(r->at);
        if (end == r->at)
            break;
        decode(r, r->at, end);
        if (strings != NULL) {
            fwrite(r->at, 1, (size_t)(end - r->at), strings);
            fputc(' ', strings);
        }
        for (; r->at < end; r->at++)
            r->line += *r->at == '\n';
    }
    return count > 0;
}

/* ( expression ), literals and parentheses inside respected. */
static bool parenthesised(reader *r, fa_asm_operand *o)
{
    int depth = 1;
    if (!take(r, '('))
        return false;
    o->expression = r->at;
    while (*r->at != '\0') {
        const char *end = fa_cxx_skip_literal(r->at);
        if (end == r->at) {
            depth += *r->at == '(' ? 1 : *r->at == ')' ? -1 : 0;
            if (depth == 0)
                break;
            end++;
        }
        while (r->at < end)
            step(r);
    }
    o->length = (size_t)(r->at - o->expression);
    return take(r, ')');
}

static void lack(fa_asm_statement *s, const char *statement, const char *why, int line)
{
    if (s->lacks)
        return;
    s->lacks = true;
    snprintf(s->lack_statement, sizeof s->lack_statement, "%s", statement);
    snprintf(s->lack_why, sizeof s->lack_why, "%s", why);
    s->lack_line = line;
}

/* "=r"(x), "+f"(y), "l"(p), ... */
static bool operands(reader *r, bool outputs)
{
    fa_asm_statement *s = r->s;
    for (;;) {
        skip_blanks(r);
        if (*r->at == ':' || *r->at == ')')
            return true;
        if (s->count == FA_ASM_OPERANDS_MAX)
            return false;
        fa_asm_operand *o = &s->operand[s->count++];
        if (take(r, '[')) {
            lack(s, "[name]", "operands are named by number", r->line);
            r->at += strcspn(r->at, "]") + 1;
        }
        const size_t before = r->text.length;
        char text[32];
        if (!literals(r, NULL))
            return false;
        snprintf(text, sizeof text, "%.*s", (int)(r->text.length - before), r->text.text + before);
        r->text.length = before;
        const char *letter = text + strspn(text, "=+&");
        o->kind = !outputs ? FA_ASM_IN : strchr(text, '+') != NULL ? FA_ASM_INOUT : FA_ASM_OUT;
        o->constraint = *letter;
        if (strlen(letter) != 1 || strchr("rlhfdn", *letter) == NULL) {
            lack(s, text, "a constraint other than r, l, h, f, d and n", r->line);
            o->constraint = 'x';
        }
        if (!parenthesised(r, o))
            return false;
        take(r, ','); /* nvcc does without */
    }
}

static bool clobbers(reader *r)
{
    skip_blanks(r);
    while (*r->at != ')') {
        const char *end = fa_cxx_skip_literal(r->at);
        if (end == r->at && *r->at != ',')
            return false;
        r->at = end == r->at ? end + 1 : end;
        skip_blanks(r);
    }
    return true;
}

/* Parses the text with the interpreter's parser. */
static void check(reader *r)
{
    fa_asm_statement *s = r->s;
    fa_ptx_error error;
    put(&r->text, '\0', 0);
    if (s->lacks)
        return;
    fa_ptx_program *program = fa_ptx_parse(r->text.text, s->count, &error);
    s->empty = program != NULL && program->count == 0;
    s->hopper = program != NULL && fa_ptx_is_hopper(program);
    s->late = program != NULL && fa_ptx_is_late(program);
    if (program == NULL)
        lack(s, error.statement, error.why, error.offset < r->text.length ? r->text.line[error.offset] : 0);
    fa_ptx_free(program);
}

static bool read_statement(reader *r, bool after_paren)
{
    fa_asm_statement *s = r->s;
    size_t size = 0;
    bool qualified = false;
    while (take_word(r, "volatile") || take_word(r, "__volatile__") || take_word(r, "__volatile") ||
           take_word(r, "inline"))
        qualified = true;
    if (!take(r, '('))
        return false;
    FILE *strings = fa_open_text(&s->strings, &size);
    bool good = literals(r, strings);
    fclose(strings);
    skip_blanks(r);
    if (good && *r->at == ')' && after_paren && !qualified && r->text.length > 0 &&
        memchr(r->text.text, ';', r->text.length) == NULL)
        good = false; /* the label of a declaration */
    for (int part = 0; good && take(r, ':'); part++)
        good = part < 2 ? operands(r, part == 0) : part == 2 && clobbers(r);
    good = good && take(r, ')');
    s->lines = r->line;
    if (good)
        check(r);
    return good;
}

fa_asm_statement *fa_asm_statement_read(const char *at, int line, bool after_paren, const char **end)
{
    fa_asm_statement *s = fa_alloc(sizeof *s);
    reader r = {.at = at, .first_line = line, .s = s};
    const bool good = read_statement(&r, after_paren);
    free(r.text.text);
    free(r.text.line);
    if (good) {
        *end = r.at;
        return s;
    }
    fa_asm_statement_free(s);
    return NULL;
}

void fa_asm_statement_free(fa_asm_statement *s)
{
    free(s->strings);
    free(s);
}
