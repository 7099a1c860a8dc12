#include "golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void golden_say(golden *g, const char *format, ...)
{
    if (g->room - g->used < 4096)
        g->text = realloc(g->text, g->room += 1 << 20);
    va_list arguments;
    va_start(arguments, format);
    g->used += (size_t)vsnprintf(g->text + g->used, 4096, format, arguments);
    va_end(arguments);
}

static void compare_lines(const char *want, const char *got, const char *path)
{
    for (int line = 1; *want != '\0' || *got != '\0'; line++) {
        const size_t wants = strcspn(want, "\n"), gets = strcspn(got, "\n");
        size_t same = 0;
        while (same < wants && same < gets && want[same] == got[same])
            same++;
        const size_t from = same > 80 ? same - 80 : 0; /* a message of cmocka has 1 kB, a line may have more */
        if (same < wants || same < gets)
            fail_msg("%s:%d:%zu\n  want: %.*s\n  got:  %.*s", path, line, same + 1, (int)(wants - from), want + from,
                     (int)(gets - from), got + from);
        want += wants + (want[wants] == '\n');
        got += gets + (got[gets] == '\n');
    }
}

void golden_compare(golden *g, const char *name)
{
    char path[200];
    const char *mode = getenv("FA_GOLDEN");
    snprintf(path, sizeof path, "tests/golden/%s", name); /* tests run in the root of the tree */
    if (mode != NULL && strcmp(mode, "write") == 0) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(g->text, 1, g->used, file), g->used);
        fclose(file);
    }
    FILE *file = fopen(path, "r");
    if (file == NULL)
        fail_msg("no file %s", path);
    char *want = calloc(1, g->used + (1 << 20));
    fread(want, 1, g->used + (1 << 20) - 1, file);
    fclose(file);
    compare_lines(want, g->text, path);
    free(want);
    free(g->text);
    *g = (golden){0};
}

/* FNV-1a. */
uint64_t golden_digest(uint64_t digest, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    digest = digest != 0 ? digest : 0xCBF29CE484222325u;
    for (size_t i = 0; i < count; i++)
        digest = (digest ^ at[i]) * 0x100000001B3u;
    return digest;
}
