#include "ptx/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "ptx/check.h"
#include "ptx/formats.h"
#include "ptx/lex.h"

enum { NAMES_MAX = 256, LABELS_MAX = 64, DEPTH_MAX = 16, STATEMENT_MAX = 200 };

/* A declared register, or with count > 0 a family of them: name0, name1, ... */
typedef struct name {
    const char *text;
    size_t length;
    int reg, count;
    bool predicate;
} name;

typedef struct label {
    const char *text;
    size_t length;
    int instr;
} label;

typedef struct parser {
    fa_ptx_lex lex;
    fa_ptx_program *program;
    uint32_t capacity;
    name names[NAMES_MAX];
    int name_count, depth, block[DEPTH_MAX]; /* block: name_count at each opening brace */
    label labels[LABELS_MAX], jumps[LABELS_MAX];
    int label_count, jump_count;
    fa_ptx_error *error;
    bool failed;
} parser;

static bool fail(parser *p, const char *format, ...)
{
    va_list arguments;
    if (p->failed)
        return false;
    p->failed = true;
    va_start(arguments, format);
    vsnprintf(p->error->why, sizeof p->error->why, format, arguments);
    va_end(arguments);
    fa_ptx_lex_statement(&p->lex, p->error->statement, sizeof p->error->statement);
    p->error->offset = (size_t)(p->lex.statement - p->lex.text);
    return false;
}

static fa_ptx_instr *add(parser *p)
{
    fa_ptx_program *program = p->program;
    program->instr = fa_grow(program->instr, (uint32_t)program->count, &p->capacity, 4, sizeof *program->instr);
    fa_ptx_instr *i = &program->instr[program->count++];
    *i = (fa_ptx_instr){.guard = -1, .special = -1};
    return i;
}

static int new_register(parser *p)
{
    if (p->program->registers >= FA_PTX_REGISTERS_MAX)
        fail(p, "too many registers");
    return p->program->registers++;
}

/* Innermost declaration first. -1: not declared. */
static int find_register(const parser *p, const char *text, size_t length, bool *predicate)
{
    for (int i = p->name_count - 1; i >= 0; i--) {
        const name *n = &p->names[i];
        if (length < n->length || strncmp(text, n->text, n->length) != 0)
            continue;
        *predicate = n->predicate;
        if (n->count == 0 && length == n->length)
            return n->reg;
        if (n->count > 0 && length > n->length && length < n->length + 6) {
            char *end = NULL;
            const long at = strtol(text + n->length, &end, 10);
            if (end == text + length && at >= 0 && at < n->count)
                return n->reg + (int)at;
        }
    }
    *predicate = false;
    return -1;
}

/* .reg .b32 a, b, c<4>; */
static bool declaration(parser *p)
{
    fa_ptx_token t = fa_ptx_lex_opcode(&p->lex);
    if (t.length < 4 || strncmp(t.text, ".reg", 4) != 0)
        return fail(p, "no such directive");
    if (t.length == 4) /* or .reg.b32 */
        t = fa_ptx_lex_opcode(&p->lex);
    else
        t = (fa_ptx_token){.text = t.text + 4, .length = t.length - 4};
    if (t.length < 2 || *t.text != '.' || fa_ptx_find_type(t.text + 1, t.length - 1) < 0)
        return fail(p, "no such register type");
    const bool predicate = fa_ptx_find_type(t.text + 1, t.length - 1) == FA_PTX_PRED;
    do {
        t = fa_ptx_lex_name(&p->lex);
        if (t.length == 0 || p->name_count == NAMES_MAX)
            return fail(p, "a register's name is wanted");
        name *n = &p->names[p->name_count++];
        *n = (name){t.text, t.length, p->program->registers, 0, predicate};
        uint64_t count = 1;
        if (fa_ptx_lex_take(&p->lex, '<')) {
            bool is_float = false;
            if (!fa_ptx_lex_number(&p->lex, &count, &is_float) || count > 1024 || !fa_ptx_lex_take(&p->lex, '>'))
                return fail(p, "a count of registers is wanted");
            n->count = (int)count;
        }
        for (uint64_t i = 0; i < count; i++)
            new_register(p);
    } while (fa_ptx_lex_take(&p->lex, ','));
    return fa_ptx_lex_take(&p->lex, ';') || fail(p, "';' is wanted");
}

/* An instruction that names a special register gets one before it that reads it into a new register. */
static int special_register(parser *p, const fa_ptx_token *t, fa_ptx_instr *self)
{
    const size_t skip = *t->text == '%' ? 1 : 0;
    const int special = fa_ptx_find_special(t->text + skip, t->length - skip);
    if (skip == 0 || special < 0)
        return -1;
    const int reg = new_register(p);
    const fa_ptx_instr instr = *self;
    *self = (fa_ptx_instr){.op = FA_PTX_OP_SPECIAL,
                           .family = FA_PTX_READ_SPECIAL,
                           .guard = -1,
                           .special = (int16_t)special,
                           .args = 1,
                           .arg = {{FA_PTX_SCALAR, 1, 0}},
                           .value = {{.reg = (uint16_t)reg}}};
    self = add(p);
    *self = instr;
    return reg;
}

static fa_ptx_instr *last(parser *p) { return &p->program->instr[p->program->count - 1]; }

static uint64_t immediate(const fa_ptx_instr *i, uint64_t bits, bool is_float)
{
    const fa_ptx_type_info *type = i->types > 0 ? &fa_ptx_types[i->type[i->types - 1]] : NULL;
    if (!is_float || (type != NULL && type->bits == 64))
        return bits;
    return fa_ptx_float_bits((float)fa_ptx_double(bits));
}

/* One register, number or _ into the last instruction's next value. */
static bool value(parser *p, int *used)
{
    fa_ptx_value v = {.kind = FA_PTX_REG, .negated = fa_ptx_lex_take(&p->lex, '!')};
    bool is_float = false;
    if (*used == FA_PTX_VALUES_MAX)
        return fail(p, "too many operands");
    if (fa_ptx_lex_number(&p->lex, &v.imm, &is_float)) {
        v.kind = FA_PTX_IMM;
        v.imm = immediate(last(p), v.imm, is_float);
    } else {
        const fa_ptx_token t = fa_ptx_lex_name(&p->lex);
        int reg = t.operand ? t.number : find_register(p, t.text, t.length, &v.predicate);
        if (t.length == 0)
            return fail(p, "an operand is wanted");
        if (t.operand && t.number >= p->program->operands)
            return fail(p, "%%%d: there are %d operands", t.number, p->program->operands);
        if (t.length == 1 && *t.text == '_')
            v.kind = FA_PTX_SINK;
        else if (t.length == 7 && strncmp(t.text, "WARP_SZ", 7) == 0)
            v = (fa_ptx_value){.kind = FA_PTX_IMM, .imm = 32};
        else if (reg < 0 && (reg = special_register(p, &t, last(p))) < 0)
            return fail(p, "%.*s is not declared, nor a special register the emulator has", (int)t.length, t.text);
        v.reg = (uint16_t)(reg < 0 ? 0 : reg);
    }
    last(p)->value[(*used)++] = v;
    return true;
}

static bool argument(parser *p, int *used)
{
    if (last(p)->args == FA_PTX_ARGS_MAX)
        return fail(p, "too many operands");
    fa_ptx_arg arg = {FA_PTX_SCALAR, 1, (uint8_t)*used};
    if (fa_ptx_lex_take(&p->lex, '{')) {
        arg.shape = FA_PTX_VECTOR;
        do
            if (!value(p, used))
                return false;
        while (fa_ptx_lex_take(&p->lex, ','));
        if (!fa_ptx_lex_take(&p->lex, '}'))
            return fail(p, "'}' is wanted");
        arg.count = (uint8_t)(*used - arg.first);
    } else if (fa_ptx_lex_take(&p->lex, '[')) {
        arg.shape = FA_PTX_ADDRESS;
        arg.count = 2;
        if (!value(p, used) || *used == FA_PTX_VALUES_MAX)
            return false;
        last(p)->value[*used] = (fa_ptx_value){.kind = FA_PTX_IMM};
        if (!fa_ptx_lex_take(&p->lex, '+') && fa_ptx_lex_peek(&p->lex) != '-')
            (*used)++;
        else if (!value(p, used))
            return false;
        if (fa_ptx_lex_take(&p->lex, ',')) { /* [map, {coordinates}]: two arguments */
            fa_ptx_instr *i = last(p);
            i->arg[i->args++] = arg;
            return argument(p, used) && (fa_ptx_lex_take(&p->lex, ']') || fail(p, "']' is wanted"));
        }
        if (!fa_ptx_lex_take(&p->lex, ']'))
            return fail(p, "']' is wanted");
    } else {
        if (!value(p, used))
            return false;
        if (fa_ptx_lex_take(&p->lex, '|')) {
            arg.shape = FA_PTX_PAIR;
            arg.count = 2;
            if (!value(p, used))
                return false;
        }
    }
    fa_ptx_instr *i = last(p);
    i->arg[i->args++] = arg;
    return true;
}

/* add.rn.ftz.f32 */
static bool opcode(parser *p, fa_ptx_instr *i)
{
    const fa_ptx_token t = fa_ptx_lex_opcode(&p->lex);
    const char *end = t.text + t.length, *dot = memchr(t.text, '.', t.length);
    const int op = fa_ptx_find_op(t.text, dot != NULL ? (size_t)(dot - t.text) : t.length);
    if (op < 0)
        return fail(p, "no such instruction");
    const fa_ptx_row *row = &fa_ptx_rows[op];
    i->op = (uint8_t)op;
    i->family = row->family;
    while (dot != NULL) {
        const char *word = dot + 1;
        dot = memchr(word, '.', (size_t)(end - word));
        const size_t length = (size_t)((dot != NULL ? dot : end) - word);
        const int type = fa_ptx_find_type(word, length), other = fa_ptx_find_word(word, length);
        if (type >= 0 && fa_ptx_listed(row->types, word, length) && i->types < row->types_most)
            i->type[i->types++] = (uint8_t)type;
        else if (other >= 0 && fa_ptx_listed(row->words, word, length))
            i->words[other / 64] |= (uint64_t)1 << (other % 64);
        else
            return fail(p, "%s without .%.*s", row->name, (int)length, word);
    }
    if (i->types < row->types_least)
        return fail(p, "%s wants %d types", row->name, row->types_least);
    if (i->family == FA_PTX_ARITHMETIC)
        i->family = fa_ptx_types[i->type[0]].kind == FA_PTX_F ? FA_PTX_REAL : FA_PTX_INTEGER;
    return true;
}

static bool jump(parser *p)
{
    const fa_ptx_token t = fa_ptx_lex_name(&p->lex);
    if (t.length == 0 || p->jump_count == LABELS_MAX)
        return fail(p, "a label is wanted");
    p->jumps[p->jump_count++] = (label){t.text, t.length, p->program->count - 1};
    last(p)->args = 1;
    return true;
}

static bool instruction(parser *p)
{
    int used = 0, guard = -1;
    bool negated = false;
    if (fa_ptx_lex_take(&p->lex, '@')) {
        negated = fa_ptx_lex_take(&p->lex, '!');
        const fa_ptx_token t = fa_ptx_lex_name(&p->lex);
        bool predicate = false;
        guard = t.operand ? t.number : find_register(p, t.text, t.length, &predicate);
        if (guard < 0 || (t.operand && t.number >= p->program->operands))
            return fail(p, "the predicate is not declared");
    }
    if (!opcode(p, add(p)))
        return false;
    if (last(p)->op == FA_PTX_OP_BRA) {
        if (!jump(p))
            return false;
    } else if (fa_ptx_lex_peek(&p->lex) != ';' && fa_ptx_lex_peek(&p->lex) != '\0') {
        do
            if (!argument(p, &used))
                return false;
        while (fa_ptx_lex_take(&p->lex, ','));
    }
    fa_ptx_instr *i = last(p);
    i->guard = (int16_t)guard;
    i->guard_negated = negated;
    if (i->args < fa_ptx_rows[i->op].args_least || i->args > fa_ptx_rows[i->op].args_most)
        return fail(p, "%s takes %d to %d operands", fa_ptx_rows[i->op].name, fa_ptx_rows[i->op].args_least,
                    fa_ptx_rows[i->op].args_most);
    if (!fa_ptx_lex_take(&p->lex, ';') && fa_ptx_lex_peek(&p->lex) != '\0' && fa_ptx_lex_peek(&p->lex) != '}')
        return fail(p, "';' is wanted");
    const char *why = fa_ptx_check(i);
    if (why != NULL)
        return fail(p, "%s", why);
    i->text = malloc(STATEMENT_MAX);
    if (i->text == NULL)
        abort();
    fa_ptx_lex_statement(&p->lex, i->text, STATEMENT_MAX);
    const char *word = *i->text == '@' ? i->text + strcspn(i->text, " ") : i->text;
    word += strspn(word, " ");
    i->name = strndup(word, strcspn(word, " "));
    return true;
}

static bool statement(parser *p)
{
    fa_ptx_lex_begin(&p->lex);
    const char c = fa_ptx_lex_peek(&p->lex);
    if (fa_ptx_lex_take(&p->lex, ';'))
        return true;
    if (fa_ptx_lex_take(&p->lex, '{')) {
        if (p->depth == DEPTH_MAX)
            return fail(p, "too many braces");
        p->block[p->depth++] = p->name_count;
        return true;
    }
    if (fa_ptx_lex_take(&p->lex, '}')) {
        if (p->depth == 0)
            return fail(p, "'}' without '{'");
        p->name_count = p->block[--p->depth];
        return true;
    }
    if (c == '.')
        return declaration(p);
    const fa_ptx_token t = fa_ptx_lex_label(&p->lex);
    if (t.length == 0)
        return instruction(p);
    if (p->label_count == LABELS_MAX)
        return fail(p, "too many labels");
    p->labels[p->label_count++] = (label){t.text, t.length, p->program->count};
    return true;
}

static bool resolve(parser *p)
{
    for (int i = 0; i < p->jump_count; i++) {
        fa_ptx_instr *from = &p->program->instr[p->jumps[i].instr];
        from->target = -1;
        for (int k = 0; k < p->label_count; k++)
            if (p->labels[k].length == p->jumps[i].length &&
                strncmp(p->labels[k].text, p->jumps[i].text, p->labels[k].length) == 0)
                from->target = p->labels[k].instr;
        if (from->target < 0)
            return fail(p, "no label %.*s in this text", (int)p->jumps[i].length, p->jumps[i].text);
    }
    return p->depth == 0 || fail(p, "'}' is wanted");
}

fa_ptx_program *fa_ptx_parse(const char *text, int operands, fa_ptx_error *error)
{
    parser *p = calloc(1, sizeof *p);
    fa_ptx_program *program = calloc(1, sizeof *program);
    if (p == NULL || program == NULL)
        abort();
    program->operands = program->registers = operands;
    *error = (fa_ptx_error){.offset = 0};
    p->lex = (fa_ptx_lex){.text = text, .at = text, .statement = text};
    p->program = program;
    p->error = error;
    while (!p->failed && fa_ptx_lex_peek(&p->lex) != '\0')
        statement(p);
    if (p->failed || !resolve(p)) {
        fa_ptx_free(program);
        program = NULL;
    }
    free(p);
    return program;
}

void fa_ptx_free(fa_ptx_program *program)
{
    for (int i = 0; program != NULL && i < program->count; i++) {
        free(program->instr[i].text);
        free(program->instr[i].name);
    }
    if (program != NULL)
        free(program->instr);
    free(program);
}
