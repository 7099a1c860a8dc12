/* Prints what inline PTX the emulator runs, as a page in Markdown, from the interpreter's own table:
 *     build/tests/emu/ptx_table */
#include <stdio.h>

#include "ptx/table.h"

static const char *const families[] = {
    [FA_PTX_MOVE] = "Moves and selections",
    [FA_PTX_ARITHMETIC] = "Arithmetic",
    [FA_PTX_BITS] = "Bits",
    [FA_PTX_COMPARE] = "Comparisons",
    [FA_PTX_CONVERT] = "Conversions",
    [FA_PTX_SPACE] = "Addresses",
    [FA_PTX_MEMORY] = "Memory",
    [FA_PTX_FENCES] = "Fences",
    [FA_PTX_FLOW] = "Flow",
    [FA_PTX_GROUP] = "Warps and blocks",
    [FA_PTX_MATRIX] = "Matrices",
    [FA_PTX_ASYNC] = "Barrier objects and products of a warpgroup",
    [FA_PTX_NOTHING] = "Without effect on the emulator",
};

/* '|' would end a cell. */
static void cell(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '|')
            fputs("\\|", stdout);
        else
            putchar(*text);
}

int main(void)
{
    printf(
        "# Inline PTX on the emulator\n\n"
        "Instructions with the types and words that may stand after their dots. Any other is `not_run`, with its text "
        "and line.\n");
    for (size_t family = 0; family < sizeof families / sizeof families[0]; family++) {
        if (families[family] == NULL)
            continue;
        printf("\n## %s\n\n| instruction | types | words | meaning |\n|---|---|---|---|\n", families[family]);
        for (int i = 0; i < FA_PTX_OPS; i++) {
            const fa_ptx_row *row = &fa_ptx_rows[i];
            if (row->family != family)
                continue;
            printf("| `%s` | %s | %s | ", row->name, row->types, row->words);
            cell(row->meaning);
            printf(" |\n");
        }
    }
    printf("\n## Special registers\n\n");
    for (int i = 0; i < FA_PTX_SREGS; i++)
        printf("%s`%%%s`", i > 0 ? ", " : "", fa_ptx_special_name((fa_ptx_special)i));
    printf("\n");
    return 0;
}
