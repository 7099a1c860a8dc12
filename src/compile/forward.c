#include "compile/forward.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"

/* target: what they include. more: they also include the header of their name there; NULL: nothing else. */
static const struct family {
    fa_forward_compiler compiler;
    const char *folder, *target; /* of the home folder */
    const char *prefix, *names, *more;
} families[] = {
    {FA_FORWARD_NVRTC, "include/nvrtc", "fa_std.h", "",
     "algorithm assert.h cassert cfloat climits cmath cstddef cstdint cstdio cstdlib cstring float.h functional limits "
     "limits.h math.h new stdalign.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h tuple type_traits utility",
     NULL},
    {FA_FORWARD_NVRTC, "include/nvrtc", "fa_std.h", "",
     "array bit bitset complex concepts initializer_list iterator numbers optional span variant", "cuda/std/"},
    {FA_FORWARD_EMULATOR, "src/emu/include", "fa_emu_std.h", "cuda/std/",
     "algorithm array atomic bit cassert cfloat climits cmath cstddef cstdint cstring functional limits numeric "
     "optional span tuple type_traits utility",
     NULL},
    {FA_FORWARD_EMULATOR, "src/emu/include", "fa_emu_std.h", "cuda/std/",
     "bitset chrono complex concepts cstdlib ctime initializer_list iterator numbers ratio source_location variant "
     "version",
     ""},
    {FA_FORWARD_EMULATOR, "src/emu/include", "fa_emu.h", "",
     "builtin_types.h cuda_device_runtime_api.h cuda_runtime.h cuda_runtime_api.h device_functions.h "
     "device_launch_parameters.h driver_types.h host_defines.h vector_functions.h vector_types.h",
     NULL},
    {FA_FORWARD_EMULATOR, "src/emu/include", "cuda_pipeline.h", "", "cuda_pipeline_primitives.h", NULL},
    {FA_FORWARD_EMULATOR, "src/emu/include", "cuda_fp16.h", "", "cuda_fp16.hpp", NULL},
    {FA_FORWARD_EMULATOR, "src/emu/include", "cuda_bf16.h", "", "cuda_bf16.hpp", NULL},
    {FA_FORWARD_EMULATOR, "src/emu/include", "cuda_fp8.h", "", "cuda_fp8.hpp", NULL},
};

static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; length > 0 && (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static void add(fa_forwards *forwards, const struct family *family, const char *word, int length, const char *own)
{
    char *name = fa_format("%s%.*s", family->prefix, length, word);
    if (has_word(own, name)) {
        free(name);
        return;
    }
    FA_ASSERT(forwards->count < FA_FORWARDS_MAX);
    char *text = fa_format("#include \"%s\"\n", family->target);
    if (family->more != NULL)
        fa_extend(&text, "#if __has_include(<%s%.*s>)\n#include <%s%.*s>\n#endif\n", family->more, length, word,
                  family->more, length, word);
    forwards->texts[forwards->count] = text;
    forwards->names[forwards->count++] = name;
}

fa_forwards fa_forwards_make(fa_forward_compiler compiler, const char *own)
{
    fa_forwards forwards = {.count = 0};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const struct family *family = &families[i];
        for (const char *word = family->names; *word != '\0' && family->compiler == compiler;) {
            const size_t length = strcspn(word, " ");
            add(&forwards, family, word, (int)length, own);
            word += length + strspn(word + length, " ");
        }
    }
    return forwards;
}

void fa_forwards_free(fa_forwards *forwards)
{
    for (int i = 0; i < forwards->count; i++) {
        free(forwards->names[i]);
        free(forwards->texts[i]);
    }
    forwards->count = 0;
}

fa_digest fa_forwards_digest(fa_forward_compiler compiler)
{
    fa_forwards all = fa_forwards_make(compiler, "");
    char *text = fa_format("%d\n", all.count);
    for (int i = 0; i < all.count; i++)
        fa_extend(&text, "%s\n%s", all.names[i], all.texts[i]);
    const fa_digest digest = fa_sha256(text, strlen(text));
    free(text);
    fa_forwards_free(&all);
    return digest;
}

bool fa_forward_target(const char *name, char path[PATH_MAX])
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const struct family *family = &families[i];
        const size_t prefix = strlen(family->prefix);
        if (strncmp(name, family->prefix, prefix) != 0 || !has_word(family->names, name + prefix))
            continue;
        snprintf(path, PATH_MAX, "%s/%s/%s", fa_home(), family->folder, family->target);
        return access(path, R_OK) == 0;
    }
    return false;
}

static fa_status write_one(const char *folder, const char *name, const char *text, fa_reason *why)
{
    char *path = fa_format("%s/%s", folder, name), *found = NULL;
    size_t size = 0;
    fa_reason ignored;
    const bool there = fa_read_file(path, &found, &size, &ignored) == FA_PASS && strcmp(found, text) == 0;
    const fa_status status = there ? FA_PASS : fa_write_file(path, text, strlen(text), why);
    free(found);
    free(path);
    return status;
}

fa_status fa_forward_write(const char *folder, fa_reason *why)
{
    fa_forwards all = fa_forwards_make(FA_FORWARD_EMULATOR, "");
    char *inner = fa_format("%s/cuda/std", folder);
    fa_status status = fa_make_dirs(inner, why);
    for (int i = 0; i < all.count && status == FA_PASS; i++)
        status = write_one(folder, all.names[i], all.texts[i], why);
    free(inner);
    fa_forwards_free(&all);
    return status;
}
