/* PTX text of one asm statement -> program. Pure. */
#pragma once

#include "ptx/program.h"

/* An error: the statement as written, the reason, and where it begins in the text. */
typedef struct fa_ptx_error {
    char statement[200], why[120];
    size_t offset;
} fa_ptx_error;

/* `operands`: how many %0, %1, ... there are; a text without any may have none. NULL: error. */
fa_ptx_program *fa_ptx_parse(const char *text, int operands, fa_ptx_error *error);
void fa_ptx_free(fa_ptx_program *program);
