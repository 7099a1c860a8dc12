/* A parsed PTX text, for the interpreter. Registers are numbered; the operands %0, %1, ... come first. */
#pragma once

#include "ptx/table.h"

#define FA_PTX_ARGS_MAX 8
#define FA_PTX_VALUES_MAX 144
#define FA_PTX_REGISTERS_MAX 4096

typedef enum { FA_PTX_REG, FA_PTX_IMM, FA_PTX_SINK } fa_ptx_value_kind;
typedef struct fa_ptx_value {
    uint8_t kind;
    bool negated;   /* !p */
    bool predicate; /* declared so */
    uint16_t reg;
    uint64_t imm;
} fa_ptx_value;

/* ADDRESS: value `first` plus value `first + 1`. PAIR: d|p. */
typedef enum { FA_PTX_SCALAR, FA_PTX_VECTOR, FA_PTX_ADDRESS, FA_PTX_PAIR } fa_ptx_shape;
typedef struct fa_ptx_arg {
    uint8_t shape, count, first;
} fa_ptx_arg;

struct fa_ptx_tile;

typedef struct fa_ptx_instr {
    uint8_t op, family, types, args;
    uint8_t type[4];
    int16_t guard; /* register, -1: always */
    bool guard_negated;
    int16_t special;
    int32_t target;          /* bra: index of the instruction to go to */
    uint16_t columns, depth; /* wgmma: N, K */
    uint64_t words[5];
    const struct fa_ptx_tile *tile; /* mma */
    fa_ptx_arg arg[FA_PTX_ARGS_MAX];
    fa_ptx_value value[FA_PTX_VALUES_MAX];
    char *text, *name; /* as written; its first word, bar.sync */
} fa_ptx_instr;

typedef struct fa_ptx_program {
    fa_ptx_instr *instr;
    int count, operands, registers;
} fa_ptx_program;

/* A row of a switch over i->op. */
#define FA_PTX_ON(OP, expression) \
    case FA_PTX_OP_##OP:          \
        return expression

static inline bool fa_ptx_has(const fa_ptx_instr *i, fa_ptx_word word)
{
    return i->words[word / 64] >> (word % 64) & 1;
}

/* ldmatrix, stmatrix */
static inline int fa_ptx_matrices(const fa_ptx_instr *i)
{
    return fa_ptx_has(i, FA_PTX_W_X4) ? 4 : fa_ptx_has(i, FA_PTX_W_X2) ? 2 : 1;
}

static inline const fa_ptx_type_info *fa_ptx_type_of(const fa_ptx_instr *i, int at)
{
    return &fa_ptx_types[i->type[at]];
}

static inline uint64_t fa_ptx_mask(unsigned bits) { return bits >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1; }

static inline uint64_t fa_ptx_read(const fa_ptx_value *value, const uint64_t *r)
{
    const uint64_t bits = value->kind == FA_PTX_REG ? r[value->reg] : value->imm;
    return value->negated ? !bits : bits;
}
static inline void fa_ptx_write(const fa_ptx_value *value, uint64_t *r, uint64_t bits)
{
    if (value->kind == FA_PTX_REG)
        r[value->reg] = bits;
}

/* The scalar operand `at`, and where the result goes. */
static inline uint64_t fa_ptx_in(const fa_ptx_instr *i, int at, const uint64_t *r)
{
    return fa_ptx_read(&i->value[i->arg[at].first], r);
}
static inline void fa_ptx_out(const fa_ptx_instr *i, uint64_t *r, uint64_t bits)
{
    fa_ptx_write(&i->value[0], r, bits);
}

/* As a number of that type: cut to its width, with the sign for signed ones. */
static inline uint64_t fa_ptx_fit(uint64_t bits, const fa_ptx_type_info *type)
{
    const unsigned width = type->bits;
    if (width >= 64)
        return bits;
    if (type->kind == FA_PTX_S && type->elements == 1)
        return (uint64_t)((int64_t)(bits << (64 - width)) >> (64 - width));
    return bits & fa_ptx_mask(width);
}
