#include "cuda/lib_open.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where wheels put their libraries below site-packages: the folder itself, CUDA 13, CUDA 12. */
static const char *const FOLDERS[] = {"", "nvidia/cu13/lib", "nvidia/cudnn/lib", "nvidia/cublas/lib",
                                      "nvidia/cuda_nvrtc/lib"};

static void *open_below(const char *root, size_t root_size, const char *name)
{
    for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
        char *path = fa_format("%.*s/%s/%s", (int)root_size, root, FOLDERS[i], name);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        free(path);
        if (library)
            return library;
    }
    return NULL;
}

static void *open_one(const char *name, char *words, size_t words_size)
{
    const char *roots = getenv("FA_LIBRARY_PATH");
    while (roots && *roots) {
        const size_t size = strcspn(roots, ":");
        void *library = size ? open_below(roots, size, name) : NULL;
        if (library)
            return library;
        roots += size + (roots[size] == ':');
    }
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library)
        return library;
    snprintf(words, words_size, "%s", dlerror());
    static const char cuda[] = "/usr/local/cuda/lib64";
    return open_below(cuda, sizeof cuda - 1, name);
}

fa_status fa_library_open(const char *const names[], void **library, fa_reason *why)
{
    char words[1024] = "";
    for (size_t i = 0; names[i]; i++) {
        *library = open_one(names[i], words, sizeof words);
        if (*library)
            return FA_PASS;
    }
    return fa_refuse(why, FA_NOT_RUN, "no %s: %s (FA_LIBRARY_PATH names further folders)", names[0], words);
}

/* POSIX gives dlsym as an object pointer; copying its bytes is the conversion ISO C does not have. */
bool fa_library_find(void *library, const char *symbol, void *function_pointer)
{
    void *address = dlsym(library, symbol);
    memcpy(function_pointer, &address, sizeof address);
    return address != NULL;
}

fa_status fa_library_open_all(const char *what, const char *const names[], const fa_library_symbol *symbols,
                              size_t count, void **library, fa_reason *why)
{
    FA_TRY(fa_library_open(names, library, why));
    for (size_t i = 0; i < count; i++)
        if (!fa_library_find(*library, symbols[i].name, symbols[i].function_pointer))
            return fa_refuse(why, FA_NOT_RUN, "the %s library is too old: it has no %s", what, symbols[i].name);
    return FA_PASS;
}
