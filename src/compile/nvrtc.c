#include "compile/nvrtc.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile/paths.h"

/* NVRTC documentation, "User Interface": the handful of entry points used here. Results are int, 0 is success. */
typedef struct nvrtc_program *program_handle;
static struct {
    void *library;
    char folder[PATH_MAX]; /* of the library that was opened */
    int (*version)(int *major, int *minor);
    int (*create)(program_handle *program, const char *source, const char *name, int headers, const char *const *texts,
                  const char *const *names);
    int (*compile)(program_handle program, int count, const char *const *options);
    int (*destroy)(program_handle *program);
    int (*log_size)(program_handle program, size_t *size);
    int (*log)(program_handle program, char *log);
    int (*cubin_size)(program_handle program, size_t *size);
    int (*cubin)(program_handle program, char *cubin);
    int (*ptx_size)(program_handle program, size_t *size);
    int (*ptx)(program_handle program, char *ptx);
    const char *(*error_text)(int code);
} nvrtc;

static void *symbol(const char *name)
{
    void *address = dlsym(nvrtc.library, name);
    FA_ASSERT(address != NULL, "%s", dlerror());
    return address;
}

static void remember_folder(void)
{
    Dl_info facts;
    char real[PATH_MAX];
    if (dladdr((void *)nvrtc.version, &facts) != 0 && realpath(facts.dli_fname, real) != NULL) {
        *strrchr(real, '/') = '\0';
        snprintf(nvrtc.folder, sizeof nvrtc.folder, "%s", real);
    }
}

static fa_status open_library(fa_reason *why)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so"};
    for (size_t i = 0; nvrtc.library == NULL && i < sizeof names / sizeof names[0]; i++)
        nvrtc.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (nvrtc.library == NULL)
        return fa_refuse(why, FA_NOT_RUN, "no NVRTC: %s", dlerror());
    if (nvrtc.version != NULL)
        return FA_PASS;
    *(void **)&nvrtc.version = symbol("nvrtcVersion");
    *(void **)&nvrtc.create = symbol("nvrtcCreateProgram");
    *(void **)&nvrtc.compile = symbol("nvrtcCompileProgram");
    *(void **)&nvrtc.destroy = symbol("nvrtcDestroyProgram");
    *(void **)&nvrtc.log_size = symbol("nvrtcGetProgramLogSize");
    *(void **)&nvrtc.log = symbol("nvrtcGetProgramLog");
    *(void **)&nvrtc.cubin_size = symbol("nvrtcGetCUBINSize");
    *(void **)&nvrtc.cubin = symbol("nvrtcGetCUBIN");
    *(void **)&nvrtc.ptx_size = symbol("nvrtcGetPTXSize");
    *(void **)&nvrtc.ptx = symbol("nvrtcGetPTX");
    *(void **)&nvrtc.error_text = symbol("nvrtcGetErrorString");
    remember_folder();
    return FA_PASS;
}

fa_status fa_nvrtc_version(char version[32], fa_reason *why)
{
    int major = 0, minor = 0;
    FA_TRY(open_library(why));
    FA_ASSERT(nvrtc.version(&major, &minor) == 0);
    snprintf(version, 32, "%d.%d", major, minor);
    return FA_PASS;
}

/* Takes the cubin. A virtual architecture has none (its size is 0); then takes the PTX. */
static void take_result(program_handle program, char **result, size_t *size)
{
    FA_ASSERT(nvrtc.cubin_size(program, size) == 0);
    const bool virtual = *size == 0;
    if (virtual)
        FA_ASSERT(nvrtc.ptx_size(program, size) == 0 && *size > 0);
    *result = fa_alloc(*size);
    FA_ASSERT((virtual ? nvrtc.ptx : nvrtc.cubin)(program, *result) == 0);
}

/* NVRTC from 12.9 on has a cache of its own. A cubin from there comes without ptxas's log, so without its figures. */
static int compile(program_handle program, const char *const options[], int count)
{
    int major = 0, minor = 0;
    FA_ASSERT(nvrtc.version(&major, &minor) == 0);
    if (major < 12 || (major == 12 && minor < 9))
        return nvrtc.compile(program, count, options);
    const char **all = fa_alloc(((size_t)count + 1) * sizeof *all);
    memcpy(all, options, (size_t)count * sizeof *all);
    all[count] = "--no-cache";
    const int code = nvrtc.compile(program, count + 1, all);
    free(all);
    return code;
}

fa_status fa_nvrtc_compile(const char *source, const char *name, const fa_forwards *headers,
                           const char *const options[], int count, char **cubin, size_t *cubin_size, char **log,
                           fa_reason *why)
{
    program_handle program = NULL;
    size_t log_size = 0;
    FA_TRY(open_library(why));
    char *safe_name = fa_path_to_show(name); /* NVRTC writes it between quotes without escapes */
    int code = nvrtc.create(&program, source, safe_name, headers->count, (const char *const *)headers->texts,
                            (const char *const *)headers->names);
    free(safe_name);
    FA_ASSERT(code == 0, "nvrtcCreateProgram: %s", nvrtc.error_text(code));
    code = compile(program, options, count);
    FA_ASSERT(nvrtc.log_size(program, &log_size) == 0);
    *log = fa_alloc(log_size + 1);
    FA_ASSERT(nvrtc.log(program, *log) == 0);
    *cubin = NULL;
    *cubin_size = 0;
    if (code == 0)
        take_result(program, cubin, cubin_size);
    const char *text = nvrtc.error_text(code);
    nvrtc.destroy(&program);
    if (code != 0)
        return fa_refuse(why, FA_COMPILE_ERROR, "NVRTC: %s", text);
    return FA_PASS;
}

static bool has_headers(const char *folder)
{
    char *path = fa_format("%s/cuda_fp16.h", folder);
    const bool found = access(path, R_OK) == 0;
    free(path);
    return found;
}

fa_status fa_cuda_headers(char folder[512], fa_reason *why)
{
    fa_reason ignored;
    const char *home = getenv("CUDA_HOME");
    if (home != NULL && snprintf(folder, 512, "%s/include", home) < 512 && has_headers(folder))
        return FA_PASS;
    /* lib64/../include of a toolkit, targets/x86_64-linux/lib/../include, lib/../include of a wheel */
    if (open_library(&ignored) == FA_PASS && nvrtc.folder[0] != '\0' &&
        snprintf(folder, 512, "%s/../include", nvrtc.folder) < 512 && has_headers(folder))
        return FA_PASS;
    const char *const places[] = {"/usr/local/cuda/include", "/usr/include"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(folder, 512, "%s", places[i]);
        if (has_headers(folder))
            return FA_PASS;
    }
    return fa_refuse(why, FA_NOT_RUN,
                     "no CUDA headers: cuda_fp16.h is in none of CUDA_HOME/include, /usr/local/cuda/include, "
                     "/usr/include");
}
