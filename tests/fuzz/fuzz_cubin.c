/* The reader of cubins: an object, a function and the code of whatever lies in the cache. */
#include <stdlib.h>
#include <string.h>

#include "fa_params.h"
#include "compile/cubin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *cubin = malloc(size); /* exactly: one byte past the end is seen */
    fa_kernel_info info;
    FA_ASSERT(cubin != NULL || size == 0);
    if (size > 0)
        memcpy(cubin, data, size);
    fa_cubin_object(cubin, size, "fa_info", &info, sizeof info);
    fa_cubin_function(cubin, size, "fa_kernel");
    FA_ASSERT(strlen(fa_cubin_code_digest(cubin, size).hex) == 64);
    free(cubin);
    return 0;
}
