#include "compile/shared_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "compile/host_code.h"

static bool is_mark(const fa_cxx_token *token, const char *marks)
{
    return token->kind == FA_CXX_MARK && strchr(marks, *token->at) != NULL;
}

static bool is_alignment(const fa_cxx_token *token)
{
    return fa_cxx_is(token, "alignas") || fa_cxx_is(token, "__align__") || fa_cxx_is(token, "__attribute__");
}

/* The token before the first bracket: the name of an array. 0: none. */
static size_t find_name(const fa_cxx_tokens *t, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        if (is_alignment(&t->at[i]))
            i = fa_cxx_close(t, i + 1);
        else if (i > first && is_mark(&t->at[i], "[") && t->at[i - 1].kind == FA_CXX_WORD)
            return i - 1;
    }
    return 0;
}

/* extern __shared__ T name[]: the block's dynamic memory. */
typedef struct shared_array {
    char name[64];
    char *declaration; /* the pointer to that memory that replaces it in a function */
} shared_array;

/* The statement of tokens first to last, a ';'. False: another one. */
static bool read_array(const fa_cxx_tokens *t, size_t first, size_t last, shared_array *array)
{
    const size_t name = find_name(t, first, last);
    if (name == 0 || t->at[name].length >= sizeof array->name || !fa_cxx_has(t, first, last, "extern") ||
        !fa_cxx_has(t, first, last, "__shared__"))
        return false;
    char *type = fa_format("%s", "");
    for (size_t i = first; i < name; i++) {
        const fa_cxx_token *token = &t->at[i];
        if (is_alignment(token)) {
            i = fa_cxx_close(t, i + 1);
            continue;
        }
        if (fa_cxx_is(token, "extern") || fa_cxx_is(token, "__shared__") || token->kind == FA_CXX_LITERAL ||
            token->kind == FA_CXX_DIRECTIVE)
            continue;
        fa_extend(&type, "%.*s ", (int)token->length, token->at);
    }
    const size_t after = fa_cxx_close(t, name + 1) + 1; /* further dimensions, or attributes */
    size_t end = after;
    while (end < last && is_mark(&t->at[end], "["))
        end = fa_cxx_close(t, end) + 1;
    const int rest = end > after ? (int)(fa_cxx_end(&t->at[end - 1]) - t->at[after].at) : 0;
    const char *dimensions = t->at[after].at;
    snprintf(array->name, sizeof array->name, "%.*s", (int)t->at[name].length, t->at[name].at);
    array->declaration = fa_format("%s(*const %s)%.*s = reinterpret_cast<%s(*)%.*s>(fa_emu_now()->smem);", type,
                                   array->name, rest, dimensions, type, rest, dimensions);
    free(type);
    return true;
}

/* A variable of the block: alignas first, as g++ needs it, then the section. g++ refuses variables
 * of templates and others in one section; fa_shared.ld joins them. */
static void put_variable(FILE *out, const fa_cxx_tokens *t, size_t first, size_t last, int number, bool of_function)
{
    const char *at = t->at[first].at;
    for (size_t i = first; i < last; i++)
        if (fa_cxx_is(&t->at[i], "alignas"))
            fprintf(out, "%.*s ", (int)(fa_cxx_end(&t->at[fa_cxx_close(t, i + 1)]) - t->at[i].at), t->at[i].at);
    fprintf(out, "static __attribute__((used, section(\"fa_shared%d\")%s)) ", number,
            of_function ? ", abi_tag(\"fa_shared\")" : "");
    for (size_t i = first; i < last; i++) {
        const bool aligned = fa_cxx_is(&t->at[i], "alignas");
        if (!aligned && !fa_cxx_is(&t->at[i], "static") && !fa_cxx_is(&t->at[i], "__shared__"))
            continue;
        fwrite(at, 1, (size_t)(t->at[i].at - at), out);
        if (aligned)
            i = fa_cxx_close(t, i + 1);
        at = fa_cxx_end(&t->at[i]);
    }
    fwrite(at, 1, (size_t)(t->at[last].at - at), out);
}

/* The arrays of namespace scope, and the declarations there. */
typedef struct scope {
    fa_cuda_file file;
    shared_array *arrays;
    size_t count, next; /* next: the declaration that is being read */
    size_t until;       /* in the body of a function of a type that has them, up to this token */
} scope;

static void read_scope(scope *s, const char *text)
{
    *s = (scope){.file = {.text = text}};
    const bool whole = fa_host_code_split(&s->file);
    for (size_t i = 0; i < s->file.count; i++) {
        const fa_declaration *d = &s->file.declarations[i];
        shared_array array;
        if (!whole || d->body > 0 || d->type || !read_array(&s->file.tokens, d->first, d->last, &array))
            continue;
        s->arrays = fa_resize(s->arrays, (s->count + 1) * sizeof *s->arrays);
        s->arrays[s->count++] = array;
    }
}

static void free_scope(scope *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->arrays[i].declaration);
    free(s->arrays);
    fa_host_code_free(&s->file);
}

/* The declaration that token i is in; NULL: in none. */
static const fa_declaration *declaration_of(scope *s, size_t i)
{
    while (s->next < s->file.count && s->file.declarations[s->next].last < i)
        s->next++;
    const fa_declaration *d = s->next < s->file.count ? &s->file.declarations[s->next] : NULL;
    return d != NULL && d->first <= i ? d : NULL;
}

/* Token i opens the body of a function, of a type's too, whose head begins at *head. */
static bool opens_function(const scope *s, const fa_declaration *d, size_t i, size_t *head)
{
    const fa_cxx_tokens *t = &s->file.tokens;
    *head = d->first;
    if (!d->type)
        return i == d->body && i > 0;
    const fa_cxx_token *before = &t->at[i - 1];
    const bool body = is_mark(before, ")") || fa_cxx_is(before, "const") || fa_cxx_is(before, "noexcept");
    if (i <= d->first || !is_mark(&t->at[i], "{") || !body || i < s->until)
        return false;
    for (*head = i; *head > d->first && !is_mark(&t->at[*head - 1], ";{}"); --*head)
        ;
    return true;
}

/* After the opening brace of a function: the arrays that it uses and that no parameter hides. */
static void put_arrays(FILE *out, scope *s, size_t i)
{
    const fa_cxx_tokens *t = &s->file.tokens;
    const fa_declaration *d = s->count > 0 ? declaration_of(s, i) : NULL;
    size_t head;
    if (d == NULL || !opens_function(s, d, i, &head))
        return;
    s->until = fa_cxx_close(t, i);
    for (size_t k = 0; k < s->count; k++)
        if (fa_cxx_has(t, i, s->until, s->arrays[k].name) && !fa_cxx_has(t, head, i, s->arrays[k].name))
            fprintf(out, " %s", s->arrays[k].declaration);
}

/* At namespace scope it is removed: the functions declare it. */
static bool is_of_scope(scope *s, size_t i)
{
    const fa_declaration *d = declaration_of(s, i);
    return d != NULL && d->body == 0 && !d->type;
}

/* The statement of tokens `start` to `last` - 1. Returns where the text goes on. */
static const char *put_statement(FILE *out, scope *s, size_t start, size_t last, int *number)
{
    const fa_cxx_tokens *t = &s->file.tokens;
    shared_array array;
    if (!read_array(t, start, last, &array)) {
        put_variable(out, t, start, last, (*number)++, !is_of_scope(s, start));
        return t->at[last].at;
    }
    if (!is_of_scope(s, start))
        fputs(array.declaration, out);
    fa_cxx_put_breaks(out, t->at[start].at, t->at[last].at);
    free(array.declaration);
    return t->at[last].at + 1;
}

char *fa_shared_rewrite(const char *preprocessed)
{
    scope s;
    read_scope(&s, preprocessed);
    const fa_cxx_tokens *t = &s.file.tokens;
    const char *at = preprocessed;
    char *text = NULL;
    size_t start = 0;
    int number = 0;
    FILE *out = fa_open_text(&text, NULL);
    for (size_t i = 0; i < t->count; i++) {
        if (t->at[i].kind == FA_CXX_DIRECTIVE || is_mark(&t->at[i], ";{}"))
            start = i + 1;
        if (s.count > 0 && is_mark(&t->at[i], "{")) {
            fwrite(at, 1, (size_t)(fa_cxx_end(&t->at[i]) - at), out);
            at = fa_cxx_end(&t->at[i]);
            put_arrays(out, &s, i);
        }
        if (!fa_cxx_is(&t->at[i], "__shared__"))
            continue;
        size_t last = i;
        while (last < t->count && !is_mark(&t->at[last], ";="))
            last = is_mark(&t->at[last], "{([") ? fa_cxx_close(t, last) + 1 : last + 1;
        if (last >= t->count)
            break;
        fwrite(at, 1, (size_t)(t->at[start].at - at), out);
        at = put_statement(out, &s, start, last, &number);
        i = last;
        start = last + 1;
    }
    fputs(at, out);
    fclose(out);
    free_scope(&s);
    return text;
}
