/* The kernel's file through g++ and the shim: a shared object the emulator runs. Same spec and same cache as the cubin. */
#include "compile.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "compile_log.h"

#define COMPILER "g++"
#define OPTIONS_MAX 40
#define OPTION_LENGTH 640

typedef struct emu_job {
    const fa_spec *spec;
    char compiler_name[64];
    char options[OPTIONS_MAX][OPTION_LENGTH];
    int count;
    fa_digest source_digest, key;
} emu_job;

static void add_option(emu_job *work, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_option(emu_job *work, const char *format, ...)
{
    va_list arguments;
    FA_ASSERT(work->count < OPTIONS_MAX);
    va_start(arguments, format);
    vsnprintf(work->options[work->count++], OPTION_LENGTH, format, arguments);
    va_end(arguments);
}

static fa_status name_compiler(emu_job *work, fa_reason *why)
{
    char *output = NULL;
    const char *const command[] = {COMPILER, "-dumpfullversion", NULL};
    const int code = fa_run(command, &output);
    if (code == 0)
        snprintf(work->compiler_name, sizeof work->compiler_name, COMPILER " %.*s", (int)strcspn(output, "\n"), output);
    free(output);
    return code == 0 ? FA_PASS : fa_refuse(why, FA_NOT_RUN, "no " COMPILER " in PATH: the emulator compiles kernels with it");
}

/* The object cannot be opened unless the process was started with the sanitizer's runtime (fa_emu_preload). */
static fa_status need_runtime(fa_sanitize sanitize, fa_reason *why)
{
    const char *symbol = sanitize == FA_SANITIZE_ADDRESS ? "__asan_init" : sanitize == FA_SANITIZE_THREAD ? "__tsan_init" : NULL;
    if (symbol == NULL || dlsym(RTLD_DEFAULT, symbol) != NULL)
        return FA_PASS;
    return fa_refuse(why, FA_NOT_RUN, "the runtime of this sanitizer is not loaded: " COMPILER " has no lib%s.so",
                     sanitize == FA_SANITIZE_ADDRESS ? "asan" : "tsan");
}

static void add_sanitizer(emu_job *work, fa_sanitize sanitize)
{
    if (sanitize == FA_SANITIZE_NONE) {
        add_option(work, "-O2");
        return;
    }
    add_option(work, "-Og");
    add_option(work, "-g");
    add_option(work, "-fno-omit-frame-pointer");
    if (sanitize == FA_SANITIZE_ADDRESS)
        add_option(work, "-fsanitize=address");
    if (sanitize == FA_SANITIZE_ADDRESS)
        add_option(work, "-fsanitize-sections=fa_shared"); /* red zones between __shared__ variables, too */
    if (sanitize == FA_SANITIZE_UNDEFINED)
        add_option(work, "-fsanitize=undefined");
    if (sanitize == FA_SANITIZE_UNDEFINED)
        add_option(work, "-fno-sanitize-recover=all");
    if (sanitize == FA_SANITIZE_THREAD)
        add_option(work, "-fsanitize=thread");
}

/* Halves in hardware where the CPU has that; the results are the same. */
static void add_cpu(emu_job *work)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
        add_option(work, "-mavx2");
        add_option(work, "-mfma");
        add_option(work, "-mf16c");
    }
#else
    (void)work;
#endif
}

/* Everything that can change the code: the kernel, the shim, the compiler, the options without the folders. */
static fa_status make_key(emu_job *work, fa_reason *why)
{
    static const char *const shim[] = {"fa_emu.h", "mma.h"};
    char *text = NULL;
    size_t size = 0;
    fa_status status = fa_source_digest(work->spec->source, &work->source_digest, why);
    FILE *out = open_memstream(&text, &size);
    FA_ASSERT(out != NULL);
    fprintf(out, "emu %d %zu %zu\n%s\n%s\n", FA_ABI, sizeof(fa_params), sizeof(fa_kernel_info), work->source_digest.hex,
            work->compiler_name);
    for (size_t i = 0; i < sizeof shim / sizeof shim[0] && status == FA_PASS; i++) {
        fa_digest digest;
        char *path = fa_format("%s/src/emu/include/%s", fa_home(), shim[i]);
        status = fa_source_digest(path, &digest, why);
        if (status == FA_PASS)
            fprintf(out, "%s\n", digest.hex);
        free(path);
    }
    for (int i = 0; i < work->count; i++)
        if (strncmp(work->options[i], "-I", 2) != 0)
            fprintf(out, "%s\n", work->options[i]);
    fclose(out);
    work->key = fa_sha256(text, size);
    free(text);
    return status;
}

static fa_status make_job(const fa_spec *spec, fa_sanitize sanitize, emu_job *work, fa_reason *why)
{
    static const char *const fixed[] = {"-std=c++20", "-x", "c++", "-shared", "-fPIC", "-w", "-Wno-psabi",
                                        "-ffp-contract=off", "-fno-strict-aliasing", "-fdiagnostics-color=never", "-DFA_EMU"};
    *work = (emu_job){.spec = spec};
    fa_arch_limits limits;
    fa_define defines[FA_SPEC_DEFINES_MAX];
    FA_TRY(name_compiler(work, why));
    FA_TRY(fa_arch_limits_of(spec->arch, &limits, why));
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        add_option(work, "%s", fixed[i]);
    add_option(work, "-D__CUDA_ARCH__=%d", limits.cc * 10);
    add_sanitizer(work, sanitize);
    add_cpu(work);
    const size_t count = fa_spec_defines(spec, defines);
    for (size_t i = 0; i < count; i++)
        add_option(work, "%s", defines[i].text);
    const char *slash = strrchr(spec->source, '/');
    add_option(work, "-I%.*s", slash != NULL ? (int)(slash - spec->source) : 1, slash != NULL ? spec->source : ".");
    add_option(work, "-I%s/src/emu/include", fa_home());
    add_option(work, "-I%s/include", fa_home());
    add_option(work, "-I%s/kernels", fa_home());
    return make_key(work, why);
}

static fa_status explain_failure(const char *log, fa_reason *why)
{
    char text[3500];
    if (fa_log_static_assert(log, text, sizeof text))
        return fa_refuse(why, FA_INFEASIBLE, "%s", text);
    fa_log_errors(log, text, sizeof text);
    const bool dynamic = strstr(log, "extern __shared__") != NULL;
    return fa_refuse(why, FA_COMPILE_ERROR, "%s%s", text,
                     dynamic ? "\n(dynamic shared memory: FA_SHARED(type, name) of kernels/prims.cuh works on both devices)" : "");
}

static fa_status build(const emu_job *work, fa_cache_entry *entry, fa_reason *why)
{
    const char *command[OPTIONS_MAX + 8] = {COMPILER};
    char *object = fa_format("%s/module.so", entry->folder), *copy = fa_format("%s/source.cu", entry->folder);
    char *source = NULL, *log = NULL;
    size_t size = 0;
    int count = 1;
    for (int i = 0; i < work->count; i++)
        command[count++] = work->options[i];
    command[count++] = "-include";
    command[count++] = "fa_emu.h";
    command[count++] = "-o";
    command[count++] = object;
    command[count++] = work->spec->source;
    fa_status status = fa_read_file(work->spec->source, &source, &size, why);
    const int code = status == FA_PASS ? fa_run(command, &log) : 0;
    if (code < 0)
        status = fa_refuse(why, FA_NOT_RUN, "no " COMPILER " in PATH");
    else if (code > 0)
        status = explain_failure(log, why);
    if (status == FA_PASS)
        status = fa_write_file(copy, source, size, why);
    if (status == FA_PASS)
        status = fa_cache_publish(&work->key, entry, why);
    free(log);
    free(source);
    free(copy);
    free(object);
    return status;
}

/* fa_info out of the object, by opening it. */
static fa_status read_info(const fa_spec *spec, fa_module *module, fa_reason *why)
{
    void *handle = dlopen(module->path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return fa_refuse(why, FA_ERROR, "%s: %s", spec->source, dlerror());
    const fa_kernel_info *info = dlsym(handle, "fa_info");
    fa_status status = FA_PASS;
    if (dlsym(handle, "fa_kernel") == NULL)
        status = fa_refuse(why, FA_ERROR, "%s has no entry point: extern \"C\" __global__ void fa_kernel(const "
                                          "__grid_constant__ fa_params p)", spec->source);
    else if (info == NULL || info->abi != FA_ABI)
        status = fa_refuse(why, FA_ERROR, "%s exports no constants of this ABI: FA_KERNEL_INFO(.threads = ..., "
                                          ".smem_dynamic_bytes = ...);", spec->source);
    else
        module->info = *info;
    dlclose(handle);
    return status;
}

static fa_status check_limits(const fa_spec *spec, const fa_kernel_info *info, fa_reason *why)
{
    fa_arch_limits limits;
    FA_TRY(fa_arch_limits_of(spec->arch, &limits, why));
    if (info->threads < 1 || info->threads > limits.threads_block)
        return fa_refuse(why, FA_INFEASIBLE, "%d threads per block against the limit of %d on %s", info->threads,
                         limits.threads_block, spec->arch);
    if (info->smem_dynamic_bytes > limits.smem_block_bytes)
        return fa_refuse(why, FA_INFEASIBLE, "%d bytes of shared memory per block against the limit of %d on %s",
                         info->smem_dynamic_bytes, limits.smem_block_bytes, spec->arch);
    if (info->cluster > 1 || info->tma_q_rows || info->tma_k_rows || info->tma_v_rows || info->tma_o_rows)
        return fa_refuse(why, FA_NOT_RUN, "%s uses clusters or TMA, which the emulator does not have", spec->name);
    return FA_PASS;
}

static fa_status describe(const fa_spec *spec, const emu_job *work, const fa_cache_entry *entry, fa_module *module, fa_reason *why)
{
    char *object = NULL;
    size_t size = 0;
    memcpy(module->compiler, work->compiler_name, sizeof module->compiler);
    module->source_sha256 = work->source_digest;
    module->cache_hit = entry->hit;
    for (int i = 0; i < work->count; i++)
        if (strncmp(work->options[i], "-I", 2) != 0)
            snprintf(module->options + strlen(module->options), sizeof module->options - strlen(module->options), "%s%s",
                     i > 0 ? " " : "", work->options[i]);
    snprintf(module->path, sizeof module->path, "%s/module.so", entry->folder);
    snprintf(module->ptxas.arch, sizeof module->ptxas.arch, "%s", spec->arch);
    snprintf(module->ptxas.unknown_reason, sizeof module->ptxas.unknown_reason,
             "compiled by %.60s for the emulator: no ptxas", work->compiler_name);
    FA_TRY(fa_read_file(module->path, &object, &size, why));
    module->object_sha256 = module->code_sha256 = fa_sha256(object, size);
    free(object);
    FA_TRY(read_info(spec, module, why));
    module->ptxas.smem_dynamic_bytes = module->ptxas.smem_total_bytes = module->info.smem_dynamic_bytes;
    return check_limits(spec, &module->info, why);
}

fa_status fa_compile_emu(const fa_spec *spec, fa_sanitize sanitize, fa_module *module, fa_reason *why)
{
    const double start = fa_now_s();
    fa_cache_entry entry = {.hit = false};
    *module = (fa_module){.cache_hit = false};
    if (spec->row != NULL && spec->row->traits.emu_not_run)
        return fa_refuse(why, FA_NOT_RUN, "%s uses instructions the emulator does not have", spec->name);
    FA_TRY(need_runtime(sanitize, why));
    emu_job *work = fa_alloc(sizeof *work);
    fa_status status = make_job(spec, sanitize, work, why);
    if (status == FA_PASS)
        status = fa_cache_open(&work->key, &entry, why);
    if (status == FA_PASS && !entry.hit) {
        status = build(work, &entry, why);
        if (status != FA_PASS)
            fa_cache_discard(&entry);
        entry.hit = false;
    }
    if (status == FA_PASS)
        status = describe(spec, work, &entry, module, why);
    free(work);
    module->seconds = fa_now_s() - start;
    return status;
}
