#include "compile/emu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "compile/asm.h"
#include "compile/cache.h"
#include "compile/forward.h"
#include "compile/job.h"
#include "compile/log.h"
#include "compile/shared_memory.h"
#include "compile/source_digest.h"

#define COMPILER "g++"
#define FORWARD "FA_FORWARD" /* placeholder for the folder of forward.h's headers: only a build knows it */

static fa_status name_compiler(fa_job *work, fa_reason *why)
{
    char *output = NULL;
    const char *const command[] = {COMPILER, "-dumpfullversion", NULL};
    const int code = fa_run(command, &output);
    if (code == 0)
        snprintf(work->compiler_name, sizeof work->compiler_name, COMPILER " %.*s", (int)strcspn(output, "\n"), output);
    free(output);
    return code == 0 ? FA_PASS
                     : fa_refuse(why, FA_NOT_RUN, "no " COMPILER " in PATH: the emulator compiles kernels with it");
}

/* The object cannot be opened unless the process was started with the sanitizer's runtime (fa_emu_preload). */
static fa_status need_runtime(fa_sanitize sanitize, fa_reason *why)
{
    const bool asan = dlsym(RTLD_DEFAULT, "__asan_init") != NULL;
    if (asan && sanitize == FA_SANITIZE_UNDEFINED)
        return fa_refuse(why, FA_NOT_RUN,
                         "this fa_bench is itself built with AddressSanitizer, beside which no other sanitizer runs");
    const char *symbol = sanitize == FA_SANITIZE_ADDRESS     ? "__asan_init"
                         : sanitize == FA_SANITIZE_UNDEFINED ? "__ubsan_handle_shift_out_of_bounds"
                                                             : NULL;
    if (symbol == NULL || dlsym(RTLD_DEFAULT, symbol) != NULL)
        return FA_PASS;
    return fa_refuse(why, FA_NOT_RUN,
                     "the runtime of this sanitizer does not start here: " COMPILER
                     " has no lib%s.so, or %s or a limit on "
                     "memory (ulimit -v) keeps it from starting",
                     sanitize == FA_SANITIZE_ADDRESS ? "asan" : "ubsan",
                     sanitize == FA_SANITIZE_ADDRESS ? "ASAN_OPTIONS" : "UBSAN_OPTIONS");
}

/* The race detector stands in for the compiler's runtime (src/emu/race/hooks.c): the object is linked without it. */
static const char *const race_links[] = {
    "-nodefaultlibs",     "-lstdc++",          "-lm", "-lgcc_s", "-lgcc", "-lc", "-Wl,--wrap=memcpy",
    "-Wl,--wrap=memmove", "-Wl,--wrap=memset", NULL};

/* g++ makes no hook for a struct that a call takes by value from memory, nor for one whose result it stores there: as
 * few calls as possible remain. */
static const char race_options[] =
    "-fsanitize=thread --param=tsan-distinguish-volatile=1 -finline-functions -finline-small-functions "
    "-findirect-inlining -fipa-cp -finline-limit=1000000 --param=early-inlining-insns=10000 "
    "--param=inline-min-speedup=0 --param=inline-unit-growth=1000000 --param=large-function-growth=1000000 "
    "--param=large-stack-frame-growth=1000000";

/* The plugin for calls that stay (src/emu/race/calls.cc), where the Makefile could build it for this g++. */
static void add_plugin(fa_job *work)
{
    char *path = fa_format("%s/build/race_calls-%s.so", fa_home(), work->compiler_name + sizeof COMPILER), *text = NULL;
    size_t size = 0;
    fa_reason why;
    if (fa_read_file(path, &text, &size, &why) == FA_PASS) {
        fa_job_add(work, FA_EMU_ALL_CALLS "%.16s", fa_sha256(text, size).hex);
        work->is_folder[work->count] = true;
        fa_job_add(work, "-fplugin=%s", path);
    }
    free(text);
    free(path);
}

static void add_sanitizer(fa_job *work, fa_sanitize sanitize)
{
    if (sanitize == FA_SANITIZE_NONE) {
        fa_job_add(work, "-O1"); /* most kernels compile longer than they run */
        fa_job_add(work, "-gdwarf-4");
        fa_job_add(work, "-g1");
        return;
    }
    fa_job_add(work, "-Og");
    fa_job_add(work, "-gdwarf-4"); /* addr2line 2.40 takes files of version 5 for each other */
    fa_job_add(work, "-fno-omit-frame-pointer");
    if (sanitize == FA_SANITIZE_ADDRESS) /* with red zones between __shared__ variables */
        fa_job_add_words(work, "-fsanitize=address -fsanitize-sections=fa_shared*");
    if (sanitize == FA_SANITIZE_UNDEFINED)
        fa_job_add_words(work, "-fsanitize=undefined -fno-sanitize-recover=all");
    if (sanitize == FA_SANITIZE_THREAD) {
        fa_job_add_words(work, race_options);
        add_plugin(work);
        work->links = race_links;
    }
}

/* FP16 conversions by the CPU where it has them; the results do not differ. */
static void add_cpu(fa_job *work)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
        fa_job_add(work, "-mavx2");
        fa_job_add(work, "-mfma");
        fa_job_add(work, "-mf16c");
    }
#else
    (void)work;
#endif
}

/* Everything that can change the code: the kernel, the shim, the compiler, the options without the folders. */
static fa_status make_key(fa_job *work, fa_reason *why)
{
    static const char *const shim[] = {"fa_emu.h",
                                       "mma.h",
                                       "cuComplex.h",
                                       "cuda_bf16.h",
                                       "cuda_fp8.h",
                                       "cuda_pipeline.h",
                                       "cooperative_groups.h",
                                       "cooperative_groups/reduce.h",
                                       "cooperative_groups/scan.h",
                                       "cooperative_groups/memcpy_async.h",
                                       "cuda/atomic",
                                       "cuda/barrier",
                                       "cuda/pipeline"};
    char *digests = fa_format("emu text 7\n%s", fa_forwards_digest(FA_FORWARD_EMULATOR).hex);
    fa_status status = fa_job_read_source(work, why);
    for (size_t i = 0; i < sizeof shim / sizeof shim[0] && status == FA_PASS; i++) {
        fa_digest digest;
        char *path = fa_format("%s/src/emu/include/%s", fa_home(), shim[i]);
        status = fa_source_digest(path, NULL, &digest, why);
        if (status == FA_PASS)
            fa_extend(&digests, "\n%s", digest.hex);
        free(path);
    }
    fa_job_make_key(work, digests);
    free(digests);
    return status;
}

static fa_status make_job(const fa_spec *spec, fa_sanitize sanitize, fa_job *work, fa_reason *why)
{
    static const char fixed[] = "-std=c++20 -x c++ -shared -fPIC -w -Wno-psabi -ffp-contract=off -fno-strict-aliasing "
                                "-fstack-clash-protection " /* large frames hit the guard page, not the next stack */
                                "-fstack-reuse=none "       /* registers of a product may outlive their scope */
                                "-U_FORTIFY_SOURCE " /* Ubuntu's g++ sets it: inline functions in the place of memcpy */
                                "-fvisibility=hidden -ffunction-sections "
                                "-fdata-sections "   /* fa_shared.ld takes variables by their names */
                                "-Wl,--gc-sections " /* functions that are not called need no definitions of theirs */
                                "-fdiagnostics-color=never -DFA_EMU";
    *work = (fa_job){.source = spec->source};
    fa_arch_limits limits;
    FA_TRY(name_compiler(work, why));
    FA_TRY(fa_job_find_headers(work, spec, why));
    FA_TRY(fa_device_source_read(spec, FA_FOR_EMULATOR, &work->device_source, why));
    FA_TRY(fa_arch_limits_of(spec->arch, &limits, why));
    fa_job_add_words(work, fixed);
    if (work->folders.count > 0)
        fa_job_add(work, "-fpermissive"); /* CUTLASS has `using T = T;` in classes, which the CUDA compiler takes */
    fa_job_add(work, "-D__CUDA_ARCH__=%d", limits.cc * 10);
    if (strchr(spec->arch, 'a') != NULL)
        fa_job_add(work, "-D__CUDA_ARCH_FEAT_SM%d_ALL", limits.cc);
    add_sanitizer(work, sanitize);
    add_cpu(work);
    fa_job_add_defines(work, spec);
    fa_job_add_source_folder(work);
    fa_job_add_folder(work, "%s/src/emu/include", fa_home());
    fa_job_add_folder(work, FORWARD);
    fa_job_add_includes(work, spec);
    fa_job_add_folder(work, "%s/include", fa_home());
    fa_job_add_folder(work, "%s/kernels", fa_home());
    return make_key(work, why);
}

/* One build: leave out host code, preprocess, rewrite asm statements, compile. */
typedef struct steps {
    const fa_job *job;
    char *source, *object, *preprocessed, *rewritten, *forward, **log;
    fa_asm_result asms;
} steps;

/* Runs g++ with the job's options and those of `more`. */
static fa_status run_compiler(const steps *s, const char *const *more, fa_reason *why)
{
    const char *command[FA_JOB_OPTIONS_MAX + 24] = {COMPILER};
    int count = 1;
    fa_job_options(s->job, command + count);
    for (const int end = count + s->job->count; count < end; count++)
        if (strcmp(command[count], "-I" FORWARD) == 0)
            command[count] = s->forward;
    while (*more != NULL)
        command[count++] = *more++;
    for (const char *const *link = s->job->links; link != NULL && *link != NULL; link++)
        command[count++] = *link;
    command[count] = NULL;
    free(*s->log);
    *s->log = NULL;
    const int code = fa_run(command, s->log);
    if (code < 0)
        return fa_refuse(why, FA_NOT_RUN, "no " COMPILER " in PATH");
    return code == 0 ? FA_PASS : fa_log_explain(*s->log, why);
}

/* FA_NOT_RUN with the unsupported asm statement if the text needs one; else `status`. */
static fa_status name_lack(const steps *s, const char *text, fa_status status, fa_reason *why)
{
    const char *number = text != NULL ? strstr(text, FA_ASM_LACKS) : NULL;
    const int which = number != NULL ? atoi(number + strlen(FA_ASM_LACKS)) : -1;
    return which < 0 || which >= s->asms.lack_count ? status
                                                    : fa_refuse(why, FA_NOT_RUN, "%s", s->asms.lacks[which].text);
}

/* If the module calls an unsupported asm statement, it cannot be opened. read_info reports other errors. */
static fa_status need_asms(const steps *s, fa_reason *why)
{
    void *handle = s->asms.lack_count > 0 ? dlopen(s->object, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (handle != NULL)
        dlclose(handle);
    return handle != NULL || s->asms.lack_count == 0 ? FA_PASS : name_lack(s, dlerror(), FA_PASS, why);
}

static fa_status preprocess(steps *s, fa_reason *why)
{
    const char *const more[] = {"-include", "fa_emu.h", "-E", "-o", s->preprocessed, s->source, NULL};
    char *text = NULL;
    size_t size = 0;
    FA_TRY(run_compiler(s, more, why));
    FA_TRY(fa_read_file(s->preprocessed, &text, &size, why));
    char *shared = fa_shared_rewrite(text);
    s->asms = fa_asm_rewrite(shared);
    free(shared);
    free(text);
    return fa_write_file(s->rewritten, s->asms.text, strlen(s->asms.text), why);
}

static fa_status compile(const steps *s, fa_reason *why)
{
    char *script = fa_format("-Wl,-T,%s/src/emu/include/fa_shared.ld", fa_home());
    const char *const more[] = {script, "-x", "c++-cpp-output", "-o", s->object, s->rewritten, NULL};
    const fa_status status = run_compiler(s, more, why);
    free(script);
    return status == FA_PASS ? need_asms(s, why) : name_lack(s, *s->log, status, why);
}

/* In the cache's folder, for all builds; in the build's own folder where no cache can be written. */
static char *forward_option(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    const bool cached = strncmp(slash, "/building.", strlen("/building.")) == 0;
    return fa_format("-I%.*s/headers/%.16s", cached ? (int)(slash - folder) : (int)strlen(folder), folder,
                     fa_forwards_digest(FA_FORWARD_EMULATOR).hex);
}

static fa_status build(const fa_job *work, const char *text, const char *folder, char **log, fa_reason *why)
{
    (void)text;
    steps s = {.job = work,
               .log = log,
               .object = fa_format("%s/module.so", folder),
               .preprocessed = fa_format("%s/source.ii", folder),
               .rewritten = fa_format("%s/kernel.ii", folder),
               .forward = forward_option(folder)};
    fa_status status = fa_forward_write(s.forward + strlen("-I"), why);
    FA_THEN(status, fa_device_source_write(&work->device_source, work->source, folder, &s.source, why));
    FA_THEN(status, preprocess(&s, why));
    FA_THEN(status, compile(&s, why));
    fa_device_source_unlink(&work->device_source, folder);
    unlink(s.preprocessed);
    unlink(s.rewritten);
    fa_asm_free(&s.asms);
    free(s.source);
    free(s.object);
    free(s.preprocessed);
    free(s.rewritten);
    free(s.forward);
    return status;
}

static fa_status read_info(const fa_spec *spec, fa_module *module, fa_reason *why)
{
    void *handle = dlopen(module->path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return fa_refuse(why, FA_ERROR, "%s: %s", spec->source, dlerror());
    const fa_kernel_info *info = dlsym(handle, "fa_info");
    fa_status status =
        fa_job_need_symbols(spec, dlsym(handle, "fa_kernel") != NULL, info != NULL && info->abi == FA_ABI, why);
    FA_THEN(status, fa_job_check_info(spec, info, why));
    module->has_before = dlsym(handle, "fa_before") != NULL;
    module->has_after = dlsym(handle, "fa_after") != NULL;
    const fa_plan *plan = dlsym(handle, "fa_launch_plan");
    if (status == FA_PASS)
        module->info = *info;
    if (status == FA_PASS && spec->launches && plan != NULL)
        module->plan = *plan;
    dlclose(handle);
    return status;
}

static fa_status check_limits(const fa_spec *spec, const fa_module *module, fa_reason *why)
{
    const fa_kernel_info *info = &module->info;
    fa_arch_limits limits;
    FA_TRY(fa_arch_limits_of(spec->arch, &limits, why));
    FA_TRY(fa_job_check_plan(spec, &limits, &module->plan, why));
    return fa_job_check_block(spec, &limits, info->threads, info->smem_dynamic_bytes, why);
}

static fa_status describe(const fa_spec *spec, const fa_job *work, const fa_cache_entry *entry, fa_module *module,
                          fa_reason *why)
{
    char *object = NULL;
    size_t size = 0;
    fa_job_describe(work, module);
    module->cache_hit = entry->hit;
    snprintf(module->path, sizeof module->path, "%s/module.so", entry->folder);
    snprintf(module->ptxas.arch, sizeof module->ptxas.arch, "%s", spec->arch);
    snprintf(module->ptxas.unknown_reason, sizeof module->ptxas.unknown_reason,
             "compiled by %.60s for the emulator: no ptxas", work->compiler_name);
    FA_TRY(fa_read_file(module->path, &object, &size, why));
    module->object_sha256 = module->code_sha256 = fa_sha256(object, size);
    free(object);
    FA_TRY(read_info(spec, module, why));
    module->ptxas.smem_dynamic_bytes = module->ptxas.smem_total_bytes = module->info.smem_dynamic_bytes;
    return check_limits(spec, module, why);
}

fa_status fa_compile_emu(const fa_spec *spec, fa_sanitize sanitize, fa_module *module, fa_reason *why)
{
    const double start = fa_now_s();
    fa_cache_entry entry = {.hit = false};
    *module = (fa_module){.cache_hit = false};
    FA_TRY(need_runtime(sanitize, why));
    fa_job *work = fa_alloc(sizeof *work);
    fa_status status = make_job(spec, sanitize, work, why);
    FA_THEN(status, fa_job_obtain(work, build, &entry, why));
    FA_THEN(status, describe(spec, work, &entry, module, why));
    fa_job_free(work);
    module->seconds = fa_now_s() - start;
    return status;
}
