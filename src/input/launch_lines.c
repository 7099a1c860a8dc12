#include "input/launch_lines.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names that the lines have from us. */
static const char own_names[] =
    " p q k v o lse dout dq dk dv batch heads kv_heads seq seq_q seq_kv dim causal scale i ";

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static char *cut(const char *from, const char *to)
{
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    return fa_format("%.*s", (int)(to - from), from);
}

/* The first character of `marks` outside brackets and template arguments from `at` on; the end of the text: none. A
 * closing bracket that has no opening one is one, too. */
static const char *find(const char *at, const char *marks)
{
    for (int depth = 0; *at != '\0'; at++) {
        const char *end = in_word(at[0]) && at[1] == '<' ? find(at + 2, ">)]}") : "";
        if (*end == '>') {
            at = end;
            continue;
        }
        if (depth == 0 && strchr(marks, *at) != NULL)
            return at;
        depth += strchr("([{", *at) != NULL;
        depth -= strchr(")]}", *at) != NULL;
    }
    return at;
}

static bool has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = text; at != NULL && (at = strstr(at, word)) != NULL; at += length) {
        const char *before = at;
        while (before > text && isspace((unsigned char)before[-1]))
            before--;
        const bool member =
            before > text && (before[-1] == '.' || (before[-1] == '>' && before - text > 1 && before[-2] == '-'));
        if (!member && (at == text || !in_word(at[-1])) && !in_word(at[length]))
            return true;
    }
    return false;
}

static fa_status refuse_form(const char *word, const char *text, fa_reason *why)
{
    const char *form = strcmp(word, "FA_LAUNCH") == 0
                           ? "KERNEL<<<GRID, BLOCK, SHARED BYTES>>>(ARGUMENTS)"
                           : "TYPE NAME[COUNT], TYPE NAME[COUNT] = VALUE or TYPE NAME = TENSOR.ORDER";
    return fa_refuse(why, FA_USAGE, "%s takes %s, not '%.200s'", word, form, text);
}

/* GRID, BLOCK, SHARED, STREAM: up to four parts. False: more. */
static bool read_parts(const char *at, const char *end, char *parts[4])
{
    char *inside = cut(at, end);
    at = inside;
    for (int count = 0; count < 4 && *at != '\0'; count++) {
        const char *comma = find(at, ",");
        parts[count] = cut(at, comma);
        at = *comma == ',' ? comma + 1 : comma;
    }
    const bool whole = *at == '\0';
    free(inside);
    return whole;
}

/* KERNEL<<<GRID, BLOCK, SHARED, STREAM>>>(ARGUMENTS); */
static fa_status read_launch(const char *text, fa_launch_line *launch, fa_reason *why)
{
    char *parts[4] = {NULL};
    const char *open = strstr(text, "<<<"), *close = open != NULL ? strstr(open, ">>>") : NULL;
    while (close != NULL && close[3 + strspn(close + 3, " \t")] != '(')
        close = strstr(close + 1, ">>>");
    if (close == NULL)
        return refuse_form("FA_LAUNCH", text, why);
    bool good = read_parts(open + 3, close, parts);
    const char *from = close + 3 + strspn(close + 3, " \t"), *to = *from == '(' ? find(from + 1, ")") : from;
    good = good && *to == ')' && to[1 + strspn(to + 1, " \t;")] == '\0';
    free(parts[3]); /* the stream is ours */
    launch->kernel = cut(text, open);
    launch->grid = parts[0];
    launch->block = parts[1];
    launch->shared = parts[2] != NULL ? parts[2] : fa_format("0");
    launch->arguments = good ? cut(from + 1, to) : fa_format("%s", "");
    good = good && launch->block != NULL && launch->kernel[0] != '\0' && launch->grid[0] != '\0' &&
           launch->block[0] != '\0' && launch->shared[0] != '\0';
    return good ? FA_PASS : refuse_form("FA_LAUNCH", text, why);
}

/* Each axis once; those that a tensor always has, and no other tensor's. */
static fa_status check_order(const fa_buffer_line *b, fa_reason *why)
{
    static const char tensors[] = "q, k, v, kv, qkv, o, lse, dout, dq, dk, dv, dkv, dqkv";
    const char *of = b->tensor, *may = strpbrk(of, "kv") != NULL ? "bhH" : "bh";
    const char *must = strstr(of, "qkv") ? "3sd" : strstr(of, "kv") ? "2sd" : strcmp(of, "lse") == 0 ? "s" : "sd";
    if (!has_word(tensors, of))
        return fa_refuse(why, FA_USAGE, "FA_BUFFER: TENSOR is one of %s, not '%s'", tensors, of);
    bool good = strchr(b->order, 'h') == NULL || strchr(b->order, 'H') == NULL;
    for (const char *c = b->order; *c != '\0'; c++)
        good = good && strchr(c + 1, *c) == NULL && (strchr(must, *c) || strchr(may, *c));
    for (const char *c = must; *c != '\0'; c++)
        good = good && strchr(b->order, *c) != NULL;
    return good ? FA_PASS
                : fa_refuse(why, FA_USAGE, "FA_BUFFER: %s has the axes %s and may have %s, each once, not '%s'", of,
                            must, may, b->order);
}

/* [COUNT] or several dimensions; NULL: not well formed. `*at` moves behind them. */
static char *read_count(const char **at)
{
    char *count = fa_format("%s", "");
    while (**at == '[') {
        const char *close = find(*at + 1, "]");
        char *one = cut(*at + 1, close);
        const bool good = *close == ']' && one[0] != '\0';
        fa_extend(&count, "%s(%s)", count[0] != '\0' ? " * " : "", one);
        free(one);
        if (!good) {
            free(count);
            return NULL;
        }
        *at = close + 1 + strspn(close + 1, " \t");
    }
    return count;
}

/* TYPE NAME[COUNT] = FIRST, TYPE NAME = TENSOR.ORDER = FIRST, TYPE NAME = TENSOR.ORDER * FACTOR; */
static fa_status read_buffer(const char *text, fa_buffer_line *b, fa_reason *why)
{
    const char *at = find(text, "[="), *name = at;
    while (name > text && isspace((unsigned char)name[-1]))
        name--;
    const char *name_end = name;
    while (name > text && in_word(name[-1]))
        name--;
    b->type = cut(text, name);
    b->name = cut(name, name_end);
    if (*at == '\0' || b->type[0] == '\0' || b->name[0] == '\0' || isdigit((unsigned char)b->name[0]))
        return refuse_form("FA_BUFFER", text, why);
    char *spaced = fa_format(" %s ", b->name);
    const bool ours = strstr(own_names, spaced) != NULL;
    free(spaced);
    if (ours)
        return fa_refuse(why, FA_USAGE, "FA_BUFFER: %s is a name that the lines have already", b->name);
    if (*at == '[') {
        b->count = read_count(&at);
        if (b->count == NULL)
            return refuse_form("FA_BUFFER", text, why);
    } else {
        int used = 0;
        if (sscanf(at, "= %4[a-z] . %7[a-zA-Z0-9] %n", b->tensor, b->order, &used) != 2 || used == 0)
            return refuse_form("FA_BUFFER", text, why);
        FA_TRY(check_order(b, why));
        at += used;
        if (*at == '*') {
            b->factor = cut(at + 1, at + strcspn(at, "=;"));
            at += strcspn(at, "=;");
        }
    }
    if (*at == '=') {
        b->first = cut(at + 1, at + strcspn(at, ";"));
        at += strcspn(at, ";");
    }
    if (b->factor != NULL && strchr(b->tensor, 'q') == NULL)
        return fa_refuse(why, FA_USAGE, "FA_BUFFER: a factor is for q, qkv, dq and dqkv, not for %s", b->tensor);
    const bool good = (b->factor == NULL || b->factor[0] != '\0') && at[strspn(at, " \t;")] == '\0' &&
                      (b->first == NULL || b->first[0] != '\0');
    return good ? FA_PASS : refuse_form("FA_BUFFER", text, why);
}

static fa_status add_statement(const char *text, bool launch, int32_t line, fa_launch_lines *lines, fa_reason *why)
{
    if (launch) {
        if (lines->launch_count == FA_LAUNCH_LINES_MAX)
            return fa_refuse(why, FA_USAGE, "more than %d lines of FA_LAUNCH", FA_LAUNCH_LINES_MAX);
        fa_launch_line *to = &lines->launches[lines->launch_count++];
        *to = (fa_launch_line){.line = line};
        return read_launch(text, to, why);
    }
    if (lines->buffer_count == FA_BUFFER_LINES_MAX)
        return fa_refuse(why, FA_USAGE, "more than %d lines of FA_BUFFER", FA_BUFFER_LINES_MAX);
    fa_buffer_line *to = &lines->buffers[lines->buffer_count++];
    *to = (fa_buffer_line){.line = line};
    return read_buffer(text, to, why);
}

/* The text of a comment from `at` on, with the lines that continue it. `*at` moves behind it. */
static char *read_comment(const char **at)
{
    char *text = fa_alloc(strlen(*at) + 1);
    for (bool more = true; more;) {
        const char *end = *at + strcspn(*at, "\r\n"), *last = end;
        while (last > *at && isspace((unsigned char)last[-1]))
            last--;
        last -= last - *at >= 2 && strncmp(last - 2, "*/", 2) == 0 ? 2 : 0;
        more = last > *at && last[-1] == '\\';
        strncat(text, *at, (size_t)(last - *at - more));
        *at = end + strspn(end, "\r");
        more = more && **at == '\n';
        if (!more)
            break;
        *at += 1 + strspn(*at + 1, " \t");
        *at += strspn(*at, "/* \t");
    }
    return text;
}

bool fa_launch_lines_have(const fa_launch_lines *lines, const char *word)
{
    bool found = false;
    for (int i = 0; i < lines->launch_count; i++) {
        const fa_launch_line *l = &lines->launches[i];
        found = found || has_word(l->kernel, word) || has_word(l->grid, word) || has_word(l->block, word) ||
                has_word(l->shared, word) || has_word(l->words, word);
    }
    for (int i = 0; i < lines->buffer_count; i++) {
        const fa_buffer_line *b = &lines->buffers[i];
        found =
            found || (b->line > 0 && has_word(b->type, word)) || has_word(b->count, word) || has_word(b->first, word);
    }
    return found;
}

/* The definition of a macro at `at`, with the lines that continue it. */
static const char *end_of_define(const char *at)
{
    for (; *at != '\0' && (*at != '\n' || at[-1] == '\\' || (at[-1] == '\r' && at[-2] == '\\')); at++)
        ;
    return at;
}

/* The arguments with the macros of the file that they name, and those that these name. */
static char *with_macros(const char *text, const char *arguments)
{
    char *words = fa_format("%s", arguments);
    size_t length = 0;
    for (int round = 0; round < 4 && length != strlen(words); round++) {
        length = strlen(words);
        for (const char *at = text; (at = strstr(at, "#define ")) != NULL;) {
            char name[64] = "";
            int used = 0;
            const char *end = end_of_define(at);
            if (sscanf(at, "#define %63[A-Za-z0-9_]%n", name, &used) == 1 && used > 0 && has_word(words, name)) {
                char *body = cut(at + used, end);
                if (strstr(words, body) == NULL)
                    fa_extend(&words, " %s", body);
                free(body);
            }
            at = end;
        }
    }
    return words;
}

/* A bare q is a packed tensor that starts on 16 bytes: a buffer without a line. Gradients make inputs of o and lse. */
static void add_bare_names(fa_launch_lines *lines)
{
    static const char *const names[] = {"dq", "dk", "dv", "q", "k", "v", "dout", "o", "lse"};
    for (int i = 0; i < lines->launch_count; i++)
        lines->gradients = lines->gradients || strstr(lines->launches[i].words, "p.dq") != NULL;
    for (int i = 0; i < lines->buffer_count; i++)
        lines->gradients = lines->gradients || lines->buffers[i].tensor[0] == 'd';
    for (int t = 0; t < 9; t++) {
        const bool lse = t == 8;
        bool used = false;
        for (int i = 0; i < lines->launch_count; i++)
            used = used || has_word(lines->launches[i].words, names[t]);
        for (int i = 0; i < lines->buffer_count && t > 2 && t < (lines->gradients ? 9 : 6); i++)
            used = used || (lines->buffers[i].line > 0 && has_word(lines->buffers[i].first, names[t]));
        if (!used)
            continue;
        fa_buffer_line *b = &lines->buffers[lines->buffer_count++];
        *b = (fa_buffer_line){.type = fa_format(lse ? "float" : "fa_element"), .name = fa_format("%s", names[t])};
        snprintf(b->tensor, sizeof b->tensor, "%s", names[t]);
        snprintf(b->order, sizeof b->order, lse ? "bhs" : "bhsd");
        lines->gradients = lines->gradients || b->tensor[0] == 'd';
    }
}

bool fa_launch_lines_output(const fa_launch_lines *lines, const fa_buffer_line *buffer)
{
    const char *of = buffer->tensor;
    return lines->gradients ? of[0] == 'd' && strcmp(of, "dout") != 0 : strcmp(of, "o") == 0 || strcmp(of, "lse") == 0;
}

/* *line: that of what is refused. */
static fa_status check_whole(const fa_launch_lines *lines, const char *text, int32_t *line, fa_reason *why)
{
    bool all = false; /* with p a kernel can write all of them */
    for (int i = 0; i < lines->buffer_count; i++) {
        const fa_buffer_line *b = &lines->buffers[i];
        if (b->first == NULL || b->count != NULL || fa_launch_lines_output(lines, b))
            continue;
        *line = b->line;
        return fa_refuse(why, FA_USAGE, "FA_BUFFER: %s is a copy of %s: it takes no value", b->name, b->tensor);
    }
    for (int i = 0; i < lines->launch_count; i++)
        all = all || has_word(lines->launches[i].words, "p");
    if (lines->launch_count == 0)
        return fa_refuse(why, FA_USAGE, "FA_BUFFER without FA_LAUNCH: no line launches a kernel");
    for (const char *tensor = lines->gradients ? "qkv" : "o"; *tensor != '\0'; tensor++) {
        bool output = all;
        for (int i = 0; i < lines->buffer_count; i++)
            output = output || (fa_launch_lines_output(lines, &lines->buffers[i]) &&
                                strchr(lines->buffers[i].tensor, *tensor) != NULL);
        if (!output)
            return fa_refuse(why, FA_USAGE,
                             "FA_LAUNCH: no argument is %s%c, nor a FA_BUFFER of it: nothing writes the output",
                             lines->gradients ? "d" : "", *tensor);
    }
    for (const char *at = text; (at = strstr(at, "FA_KERNEL_INFO")) != NULL; at++)
        if (at == text || at[-1] == '\n')
            return fa_refuse(why, FA_USAGE, "FA_LAUNCH: the lines say what FA_KERNEL_INFO says: take one of the two");
    return FA_PASS;
}

fa_status fa_launch_lines_read(const char *path, const char *text, fa_launch_lines *lines, fa_reason *why)
{
    fa_reason bare = {""};
    int32_t line = 1, first = 0;
    *lines = (fa_launch_lines){.launch_count = 0};
    fa_status status = FA_PASS;
    for (const char *at = text; *at != '\0' && status == FA_PASS;) {
        const int32_t here = line;
        const char *from = at, *word = at + strspn(at, " \t");
        word += strspn(word, "/* \t"); /* a comment of either kind */
        const bool launch = strncmp(word, "FA_LAUNCH:", 10) == 0;
        at += strcspn(at, "\n");
        if (word > from + strspn(from, " \t") && (launch || strncmp(word, "FA_BUFFER:", 10) == 0)) {
            at = word + 10 + strspn(word + 10, " \t");
            char *statement = read_comment(&at);
            first = first > 0 ? first : here;
            status = add_statement(statement, launch, here, lines, &bare);
            free(statement);
            first = status != FA_PASS ? here : first;
        }
        for (const char *c = from; c < at; c++)
            line += *c == '\n';
        line += *at == '\n';
        at += *at == '\n';
    }
    for (int i = 0; i < lines->launch_count; i++)
        lines->launches[i].words = with_macros(text, lines->launches[i].arguments);
    if (status == FA_PASS && first > 0) {
        add_bare_names(lines);
        status = check_whole(lines, text, &first, &bare);
    }
    return status == FA_PASS ? FA_PASS : fa_refuse(why, status, "%.1000s:%d: %.3000s", path, first, bare.text);
}

void fa_launch_lines_free(fa_launch_lines *lines)
{
    for (int i = 0; i < lines->launch_count; i++) {
        fa_launch_line *l = &lines->launches[i];
        char *const texts[] = {l->kernel, l->grid, l->block, l->shared, l->arguments, l->words};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            free(texts[k]);
    }
    for (int i = 0; i < lines->buffer_count; i++) {
        fa_buffer_line *b = &lines->buffers[i];
        char *const texts[] = {b->type, b->name, b->count, b->first, b->factor};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            free(texts[k]);
    }
    *lines = (fa_launch_lines){.launch_count = 0};
}
