/* The compiler's log: ptxas figures, static_assert sentences, shared-memory overflows, error lines. */
#include <stdlib.h>
#include <string.h>

#include "compile/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *log = fa_alloc(size + 1), text[257];
    fa_ptxas ptxas = {.known = false};
    memcpy(log, data, size);
    FA_ASSERT(fa_log_ptxas(log, "fa_kernel", &ptxas) == ptxas.known);
    FA_ASSERT(ptxas.warning_count >= 0 && ptxas.warning_count <= FA_WARNINGS_MAX);
    FA_ASSERT(memchr(ptxas.arch, '\0', sizeof ptxas.arch) != NULL);
    memset(text, 'x', sizeof text);
    if (fa_log_static_assert(log, text, sizeof text - 1))
        FA_ASSERT(memchr(text, '\0', sizeof text - 1) != NULL);
    fa_log_errors(log, text, sizeof text - 1);
    FA_ASSERT(memchr(text, '\0', sizeof text - 1) != NULL && text[256] == 'x');
    const int32_t bytes = fa_log_static_smem_overflow(log);
    FA_ASSERT(bytes == 0 || bytes > 48 << 10, "%d", bytes);
    free(log);
    return 0;
}
