#include "cuda/libraries.h"

#include <string.h>

#include "cuda/cublas.h"
#include "cuda/cudnn.h"
#include "cuda/library_file.h"

const fa_library *fa_library_of(const fa_spec *spec)
{
    static const struct {
        const char *name; /* name of the row in kernels.def */
        const fa_library *library;
    } rows[] = {{"cublas", &fa_cublas_library}, {"cudnn", &fa_cudnn_library}};
    FA_ASSERT(spec->kind == FA_KIND_LIBRARY, "%s is no library", spec->name);
    if (spec->row == NULL)
        return &fa_file_library;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, spec->row->name) == 0)
            return rows[i].library;
    fa_die_at(__FILE__, __LINE__, spec->row->name, "the registry names a library that src/cuda/ lacks");
}
