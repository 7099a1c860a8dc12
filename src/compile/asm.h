/* Inline PTX in a kernel that g++ compiles for the emulator: asm statements of preprocessed C++ become calls of the
 * interpreter (src/emu/include/fa_emu_ptx.h). Pure text. */
#pragma once

/* Asm statements the emulator cannot run, in order. Each calls an undefined function, FA_ASM_LACKS and its number: a
 * module that needs it uses the statement. */
#define FA_ASM_LACKS "fa_emu_ptx_lacks_"
/* What the shim makes of __cluster_dims__ and __launch_bounds__. The arguments become three numbers of the object,
 * fa_emu_cluster_dims and fa_emu_launch_bounds. */
#define FA_ASM_CLUSTER "fa_emu_cluster_dims"
#define FA_ASM_BOUNDS "fa_emu_launch_bounds"
#define FA_ASM_OF "_of"
typedef struct fa_asm_lack {
    char text[760]; /* file, line, statement, why: a sentence */
} fa_asm_lack;

typedef struct fa_asm_result {
    char *text; /* malloc'd; lines keep their numbers */
    int sites;
    fa_asm_lack *lacks;
    int lack_count;
} fa_asm_result;

fa_asm_result fa_asm_rewrite(const char *preprocessed);
void fa_asm_free(fa_asm_result *result);
