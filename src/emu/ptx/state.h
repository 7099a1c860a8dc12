/* The state of one run of an asm statement, and its failures. */
#pragma once

#include "emu/core/state.h"
#include "ptx/program.h"

/* One run of one statement by one CUDA thread. */
typedef struct fa_emu_ptx_run {
    const fa_emu_place *at; /* the place that reports name */
    const fa_ptx_instr *instr;
    uint64_t *r;
    int operands; /* operands of the statement */
    unsigned carry;
    void *const *places;    /* of the operands, for a statement with late results; or NULL */
    const void *pc, *frame; /* the kernel's, for the sanitizers' reports */
} fa_emu_ptx_run;

/* An operation of the warp at the place of the instruction. name: instr->name or instr->text. */
static inline fa_emu_op fa_emu_ptx_op(const fa_emu_ptx_run *run, fa_emu_kind kind, const char *name)
{
    return (fa_emu_op){.kind = kind, .name = name, .file = run->at->file, .line = run->at->line, .mask = ~0u};
}

/* Waits in the operation as the kernel's own primitives do. */
static inline void fa_emu_ptx_wait(fa_emu_op *op) { fa_emu_self->current->thread.api->wait(op); }
/* ... in one that only brings threads together or lets others run. */
static inline void fa_emu_ptx_meet(const fa_emu_ptx_run *run, fa_emu_kind kind, const char *name)
{
    fa_emu_op op = fa_emu_ptx_op(run, kind, name);
    fa_emu_ptx_wait(&op);
}

_Noreturn void fa_emu_ptx_fail(const fa_emu_ptx_run *run, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
