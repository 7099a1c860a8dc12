#include "compile/asm.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "compile/asm_statement.h"
#include "compile/cxx.h"

enum { ATTRIBUTES = 2 };
static const char *const attributes[ATTRIBUTES] = {FA_ASM_CLUSTER, FA_ASM_BOUNDS};

typedef struct pass {
    fa_asm_result result;
    FILE *out;
    char file[1024]; /* of the current line, from the line markers */
    int line;
    bool foreign; /* a system header, or the core of the emulator's own */
    bool hopper;  /* a statement has instructions of sm_90a */
    /* arguments of the attributes: of fa_kernel; of the declaration being read */
    char numbers[ATTRIBUTES][200], pending[ATTRIBUTES][200];
    char before;  /* last character that is not a blank */
    char word[8]; /* last identifier, if only blanks follow it */
} pass;

/* # 12 "file" flags; flag 3: a system header. The file's name stays as a C string writes it: \" is in it. */
static const char *line_marker(pass *p, const char *at)
{
    const char *end = at + strcspn(at, "\n");
    int line = 0, used = 0;
    if (sscanf(at, "# %d %n", &line, &used) == 1 && used > 0 && at[used] == '"') {
        const char *file = at + used + 1, *flags = fa_cxx_skip_literal(at + used);
        snprintf(p->file, sizeof p->file, "%.*s", (int)(flags - 1 - file), file);
        p->line = line - 1; /* the line break after the marker counts */
        p->foreign =
            memchr(flags, '3', (size_t)(end - flags)) != NULL || strstr(p->file, "src/emu/include/fa_emu") != NULL;
    }
    return end;
}

static void refuse(pass *p, const fa_asm_statement *s)
{
    fa_asm_result *r = &p->result;
    r->lacks = fa_resize(r->lacks, (size_t)(r->lack_count + 1) * sizeof *r->lacks);
    snprintf(r->lacks[r->lack_count++].text, sizeof r->lacks->text,
             "%.300s:%d: the emulator does not run this PTX: %.200s (%.100s)", p->file, p->line + s->lack_line,
             s->lack_statement, s->lack_why);
}

static int breaks(const char *text, size_t length)
{
    int count = 0;
    for (size_t i = 0; i < length; i++)
        count += text[i] == '\n';
    return count;
}

/* The call that replaces the statement, with as many line breaks. */
static void replace(pass *p, const fa_asm_statement *s)
{
    FILE *out = p->out;
    int lines = s->lines;
    p->result.sites++;
    p->hopper |= s->hopper;
    if (s->lacks) {
        fprintf(out, FA_ASM_LACKS "%d(", p->result.lack_count);
        refuse(p, s);
    } else if (s->empty) {
        fputs("fa_emu_ptx_nothing(", out);
    } else {
        fprintf(
            out,
            "fa_emu_ptx%s([]() -> fa_emu_ptx_site & { static fa_emu_ptx_site site = {%s, {\"%s\", %d}, %d, nullptr}; "
            "return site; }(), fa_emu_caller",
            s->late ? "_start" : "", s->strings, p->file, p->line, s->count);
        lines -= breaks(s->strings, strlen(s->strings));
    }
    for (int i = 0; i < s->count; i++) {
        const fa_asm_operand *o = &s->operand[i];
        fprintf(out, "%sfa_emu_ptx_%s<'%c'>((%.*s))", i > 0 || (!s->lacks && !s->empty) ? ", " : "",
                o->kind == FA_ASM_OUT     ? "out"
                : o->kind == FA_ASM_INOUT ? "inout"
                : s->late                 ? "late"
                                          : "in",
                o->constraint, (int)o->length, o->expression);
        lines -= breaks(o->expression, o->length);
    }
    fputc(')', out);
    for (int i = 0; i < lines; i++)
        fputc('\n', out);
}

/* Whether an asm statement may start here: after a statement, a label or the condition of an if. The asm label of a
 * declaration, `int f() asm("g")`, follows a declarator. */
static bool may_begin(const pass *p)
{
    return p->before == '\0' || strchr(";{}:)", p->before) != NULL || strcmp(p->word, "else") == 0 ||
           strcmp(p->word, "do") == 0;
}

static bool names_asm(const char *at, size_t length)
{
    return (length == 3 && strncmp(at, "asm", 3) == 0) || (length == 5 && strncmp(at, "__asm", 5) == 0) ||
           (length == 7 && strncmp(at, "__asm__", 7) == 0);
}

/* The shim made an attribute a word (...): it is removed. NULL: another word. */
static const char *attribute(pass *p, const char *at, size_t length)
{
    const size_t stem = length - strlen(FA_ASM_OF);
    int which = 0;
    while (which < ATTRIBUTES &&
           (length <= strlen(FA_ASM_OF) || strlen(attributes[which]) != stem ||
            strncmp(at, attributes[which], stem) != 0 || strncmp(at + stem, FA_ASM_OF, strlen(FA_ASM_OF)) != 0))
        which++;
    if (which == ATTRIBUTES)
        return NULL;
    const char *open = at + length + strspn(at + length, " ");
    size_t size = 0;
    for (int depth = 0; open[size] != '\0'; size++) {
        depth += (open[size] == '(') - (open[size] == ')');
        if (depth == 0)
            break;
    }
    if (*open != '(' || open[size] != ')' || memchr(open, '\n', size) != NULL)
        return NULL;
    if (size < sizeof p->pending[which])
        snprintf(p->pending[which], sizeof p->pending[which], "%.*s", (int)size - 1, open + 1);
    return open + size + 1;
}

/* An identifier, or the whole statement if it is asm. */
static const char *identifier(pass *p, const char *at)
{
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_' || at[length] == '$')
        length++;
    fa_asm_statement *s = NULL;
    const char *end = attribute(p, at, length);
    if (end != NULL)
        return end;
    end = at + length;
    if (!p->foreign && names_asm(at, length) && may_begin(p))
        s = fa_asm_statement_read(at + length, p->line, p->before == ')', &end);
    if (s != NULL) {
        replace(p, s);
        p->line += s->lines;
        fa_asm_statement_free(s);
        p->before = ')';
        p->word[0] = '\0';
        return end;
    }
    for (int i = 0; i < ATTRIBUTES && length == strlen("fa_kernel") && strncmp(at, "fa_kernel", length) == 0; i++)
        if (p->pending[i][0] != '\0')
            memcpy(p->numbers[i], p->pending[i], sizeof p->numbers[i]);
    fwrite(at, 1, length, p->out);
    snprintf(p->word, sizeof p->word, "%.*s", (int)(length < sizeof p->word ? length : 0), at);
    p->before = 'a';
    return at + length;
}

/* A number, a literal or one other character. */
static const char *other(pass *p, const char *at)
{
    const char *end = fa_cxx_skip_literal(at);
    if (end == at && isdigit((unsigned char)*at)) /* 1'000 has no character literal */
        while (isalnum((unsigned char)*end) || *end == '_' || *end == '.' ||
               (*end == '\'' && isalnum((unsigned char)end[1])))
            end++;
    if (end == at)
        end++;
    for (const char *c = at; c < end; c++)
        p->line += *c == '\n';
    fwrite(at, 1, (size_t)(end - at), p->out);
    if (strchr(";{}", *at) != NULL)
        p->pending[0][0] = p->pending[1][0] = '\0';
    if (!isspace((unsigned char)*at)) {
        p->before = *at;
        p->word[0] = '\0';
    }
    return end;
}

/* The text after a "#pragma unroll 4" inside a line (macros of CUTLASS leave it there): nvcc takes it, g++ does not. */
static const char *skip_pragma(const char *at)
{
    static const char pragma[] = "#pragma unroll";
    if (strncmp(at, pragma, sizeof pragma - 1) != 0)
        return at;
    at += sizeof pragma - 1;
    at += strspn(at, " ");
    return at + strspn(at, "0123456789");
}

fa_asm_result fa_asm_rewrite(const char *preprocessed)
{
    pass p = {.line = 1};
    char *body = NULL, *head = NULL;
    p.out = fa_open_text(&body, NULL);
    bool line_start = true;
    for (const char *at = preprocessed; *at != '\0';) {
        const char *from = at;
        if (line_start && *at == '#') {
            at = line_marker(&p, at);
            fwrite(from, 1, (size_t)(at - from), p.out);
        } else if ((isalpha((unsigned char)*at) || *at == '_') && fa_cxx_skip_literal(at) == at) {
            at = identifier(&p, at);
        } else if ((at = skip_pragma(at)) == from) {
            at = other(&p, at);
        }
        line_start = at[-1] == '\n';
    }
    fclose(p.out);
    FILE *out = fa_open_text(&head, NULL);
    for (int i = 0; i < p.result.lack_count; i++)
        fprintf(out, "extern \"C\" void " FA_ASM_LACKS "%d(...);\n", i);
    if (p.hopper)
        fputs("extern \"C\" __attribute__((visibility(\"default\"))) int fa_emu_hopper = 1;\n", out);
    fputs(body, out);
    for (int i = 0; i < ATTRIBUTES; i++)
        if (p.numbers[i][0] != '\0' && (p.hopper || i == 0))
            fprintf(out,
                    "\nextern \"C\" __attribute__((visibility(\"default\"))) const int %s[3];\n"
                    "const int %s[3] = {%s};\n",
                    attributes[i], attributes[i], p.numbers[i]);
    fclose(out);
    free(body);
    p.result.text = head;
    return p.result;
}

void fa_asm_free(fa_asm_result *result)
{
    free(result->text);
    free(result->lacks);
    *result = (fa_asm_result){0};
}
