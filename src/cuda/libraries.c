#include "cuda/libraries.h"

#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cuda/cublas.h"
#include "cuda/cudnn.h"
#include "cuda/lib_open.h"

typedef struct library_file {
    void (*info)(const fa_library_question *question, fa_library_answer *answer);
    const char *(*forward)(const fa_params *params, void *stream);
    char name[64];
} library_file;

/* One line of ASCII, whatever the library wrote. */
static void copy_text(char *to, size_t room, const char *from, size_t size)
{
    const size_t length = strnlen(from, size);
    snprintf(to, room, "%.*s", (int)length, from);
    for (char *c = to; *c != '\0'; c++)
        if (!isprint((unsigned char)*c))
            *c = ' ';
}

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#else
#define OWN_MACHINE EM_AARCH64
#endif

/* The loader cannot name a file for another processor, and maps a truncated one, which ends in SIGBUS. */
static fa_status check_elf(const char *path, fa_digest *sha256, fa_reason *why)
{
    char *bytes = NULL;
    size_t size = 0;
    FA_TRY(fa_read_file(path, &bytes, &size, why));
    Elf64_Ehdr head = {.e_shoff = 0};
    memcpy(&head, bytes, size < sizeof head ? size : sizeof head);
    *sha256 = fa_sha256(bytes, size);
    free(bytes);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || size < sizeof head)
        return fa_refuse(why, FA_ERROR, "%s is not a shared object: it does not begin as an ELF file", path);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != OWN_MACHINE)
        return fa_refuse(why, FA_ERROR, "%s is for another processor: its ELF machine is %d, this fa_bench's %d", path,
                         head.e_machine, OWN_MACHINE);
    if (head.e_shoff > size || (uint64_t)head.e_shnum * head.e_shentsize > size - head.e_shoff)
        return fa_refuse(why, FA_ERROR, "%s is cut off: its section headers lie behind its end", path);
    return FA_PASS;
}

/* A path with a slash: dlopen looks for other names in the loader's folders. The loader's message is the same for a
 * missing file and for one that lacks a library; this file has just been read. */
static fa_status open_file(const char *path, library_file *file, fa_reason *why)
{
    char real[PATH_MAX];
    if (realpath(path, real) == NULL)
        return fa_refuse(why, FA_ERROR, "cannot read %s", path);
    void *opened = dlopen(real, RTLD_NOW | RTLD_LOCAL);
    if (opened == NULL) {
        const char *words = dlerror();
        const bool missing = strstr(words, "cannot open shared object file") != NULL;
        return fa_refuse(why, missing ? FA_NOT_RUN : FA_ERROR, "%s does not load: %s", path, words);
    }
    const char *lacks = !fa_library_find(opened, "fa_library_info", &file->info) ? "fa_library_info"
                        : !fa_library_find(opened, "fa_forward", &file->forward) ? "fa_forward"
                                                                                 : NULL;
    return lacks == NULL ? FA_PASS
                         : fa_refuse(why, FA_ERROR,
                                     "%s does not export %s: include/fa_library.h declares it, extern \"C\" and "
                                     "with default visibility",
                                     path, lacks);
}

static fa_status describe(const fa_spec *spec, const fa_library_question *question, fa_library_facts *facts,
                          fa_reason *why)
{
    library_file file;
    fa_library_answer answer = {.abi = 0};
    char refusal[sizeof answer.refusal];
    *facts = (fa_library_facts){.workspace_bytes = 0};
    FA_TRY(check_elf(spec->source, &facts->sha256, why));
    FA_TRY(open_file(spec->source, &file, why));
    file.info(question, &answer);
    if (answer.abi < 2 || answer.abi > FA_LIBRARY_ABI) /* ABI 3 appends to 2 */
        return fa_refuse(why, FA_ERROR, "%s was built for ABI %d of include/fa_library.h, this fa_bench takes 2 to %d",
                         spec->source, answer.abi, FA_LIBRARY_ABI);
    copy_text(facts->name, sizeof facts->name, answer.name, sizeof answer.name - 1);
    copy_text(facts->version, sizeof facts->version, answer.version, sizeof answer.version - 1);
    copy_text(refusal, sizeof refusal, answer.refusal, sizeof answer.refusal - 1);
    if (facts->name[0] == '\0')
        snprintf(facts->name, sizeof facts->name, "%s", spec->name);
    if (refusal[0] != '\0')
        return fa_refuse(why, FA_INFEASIBLE, "%s: %s", facts->name, refusal);
    if (answer.workspace_bytes < 0)
        return fa_refuse(why, FA_ERROR, "%s asks for a workspace of %lld bytes", facts->name, answer.workspace_bytes);
    if (answer.abi >= 3 && (answer.needs & ~FA_NEEDS_ALL) != 0)
        return fa_refuse(why, FA_ERROR, "%s has needs that this fa_bench does not know: %#x", facts->name,
                         (unsigned)answer.needs);
    facts->nondeterministic = answer.nondeterministic != 0;
    facts->writes_lse = answer.writes_lse != 0;
    facts->serves_bf16 = answer.serves_bf16 != 0;
    facts->serves = answer.abi >= 3 ? answer.serves : 0;
    facts->needs = answer.abi >= 3 ? answer.needs : 0;
    facts->workspace_bytes = answer.workspace_bytes;
    return FA_PASS;
}

/* The library may leave another context current: ours is made current again. */
static fa_status enqueue(fa_kernel *kernel, const fa_launch *launch, const fa_params *params, CUstream stream,
                         fa_reason *why)
{
    (void)launch;
    const library_file *self = kernel->self;
    fa_cuda *cuda = kernel->cuda;
    const char *failed = self->forward(params, stream);
    FA_CUDA_TRY(cuda, cuCtxSetCurrent, (cuda->context));
    if (failed == NULL)
        return FA_PASS;
    char words[1024];
    copy_text(words, sizeof words, failed, sizeof words - 1);
    return fa_refuse(why, FA_ERROR, "%s: fa_forward: %s", self->name, words);
}

static fa_status create(fa_cuda *cuda, const fa_spec *spec, const fa_problem *problem, fa_kernel **kernel,
                        fa_reason *why)
{
    (void)problem;
    fa_kernel *made = fa_cuda_kernel_new(cuda, sizeof(library_file), enqueue, NULL);
    library_file *self = made->self;
    snprintf(self->name, sizeof self->name, "%s", spec->name);
    return fa_cuda_kernel_made(made, open_file(spec->source, self, why), kernel);
}

/* A shared object of --library (include/fa_library.h). It is loaded once and stays loaded, as its CUDA runtime may have
 * work to do until the process ends. */
static const fa_library file_library = {.describe = describe, .create = create};

const fa_library *fa_library_of(const fa_spec *spec)
{
    static const struct {
        const char *name; /* name of the row in kernels.def */
        const fa_library *library;
    } rows[] = {{"cublas", &fa_cublas_library}, {"cudnn", &fa_cudnn_library}};
    FA_ASSERT(spec->kind == FA_KIND_LIBRARY, "%s is no library", spec->name);
    if (spec->row == NULL)
        return &file_library;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, spec->row->name) == 0)
            return rows[i].library;
    fa_die_at(__FILE__, __LINE__, spec->row->name, "the registry names a library that src/cuda/ lacks");
}
