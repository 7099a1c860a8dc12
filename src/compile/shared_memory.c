#include "compile/shared_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

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

bool fa_shared_array_read(const fa_cxx_tokens *t, size_t first, size_t last, fa_shared_array *array)
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

/* A variable of the block: every alignas in front, which g++ takes there alone, then the section. g++ refuses variables
 * of templates and others in one section; fa_shared.ld joins them. */
static void put_variable(FILE *out, const fa_cxx_tokens *t, size_t first, size_t last, int number)
{
    const char *at = t->at[first].at;
    for (size_t i = first; i < last; i++)
        if (fa_cxx_is(&t->at[i], "alignas"))
            fprintf(out, "%.*s ", (int)(fa_cxx_end(&t->at[fa_cxx_close(t, i + 1)]) - t->at[i].at), t->at[i].at);
    fprintf(out, "static __attribute__((section(\"fa_shared%d\"))) ", number);
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

char *fa_shared_rewrite(const char *preprocessed)
{
    fa_cxx_tokens tokens = fa_cxx_read(preprocessed);
    const fa_cxx_tokens *t = &tokens;
    const char *at = preprocessed;
    char *text = NULL;
    size_t start = 0;
    int number = 0;
    FILE *out = fa_open_text(&text, NULL);
    for (size_t i = 0; i < t->count; i++) {
        if (t->at[i].kind == FA_CXX_DIRECTIVE || is_mark(&t->at[i], ";{}"))
            start = i + 1;
        if (!fa_cxx_is(&t->at[i], "__shared__"))
            continue;
        size_t last = i;
        while (last < t->count && !is_mark(&t->at[last], ";="))
            last = is_mark(&t->at[last], "{([") ? fa_cxx_close(t, last) + 1 : last + 1;
        if (last >= t->count)
            break;
        fa_shared_array array;
        fwrite(at, 1, (size_t)(t->at[start].at - at), out);
        at = t->at[last].at;
        if (fa_shared_array_read(t, start, last, &array)) {
            fputs(array.declaration, out);
            fa_cxx_put_breaks(out, t->at[start].at, at++);
            free(array.declaration);
        } else {
            put_variable(out, t, start, last, number++);
        }
        i = last;
        start = last + 1;
    }
    fputs(at, out);
    fclose(out);
    free(tokens.at);
    return text;
}
