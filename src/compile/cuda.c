#include "compile/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "compile/cache.h"
#include "compile/cubin.h"
#include "compile/job.h"
#include "compile/launch.h"
#include "compile/log.h"
#include "compile/nvrtc.h"
#include "compile/paths.h"

/* "13.0.88" */
static fa_status nvcc_version(char version[32], fa_reason *why)
{
    char *output = NULL;
    const char *const command[] = {"nvcc", "--version", NULL};
    const int code = fa_run(command, &output);
    const char *release = strstr(output, ", V");
    const bool known = code == 0 && release != NULL;
    if (known)
        snprintf(version, 32, "%.*s", (int)strcspn(release + 3, "\n"), release + 3);
    free(output);
    return known ? FA_PASS : fa_refuse(why, FA_NOT_RUN, "no nvcc in PATH");
}

/* Writes the cubin to `object`. FA_COMPILE_ERROR leaves the reason to the caller, who reads and frees *log. */
static fa_status nvcc_compile(const char *source, const char *const options[], int count, const char *object,
                              char **log, fa_reason *why)
{
    const char *const first[] = {"nvcc", "-x", "cu", "-cubin", "-o", fa_path_to_open(object)};
    const size_t fixed = sizeof first / sizeof *first;
    const char **command = fa_alloc((fixed + (size_t)count + 2) * sizeof *command);
    memcpy(command, first, sizeof first);
    memcpy(command + fixed, options, (size_t)count * sizeof *command);
    command[fixed + (size_t)count] = fa_path_to_open(source);
    const int code = fa_run(command, log);
    free(command);
    if (code < 0)
        return fa_refuse(why, FA_NOT_RUN, "no nvcc in PATH");
    return code == 0 ? FA_PASS : fa_refuse(why, FA_COMPILE_ERROR, "nvcc: exit code %d", code);
}

/* Beside the cache lies an index: which configuration first compiled to a given machine code. Two configurations
 * with one code differ in a knob that does nothing. A line of it begins with its own digest, which shows damage. */
static char *index_line(const char *config)
{
    return fa_format("%s  %s\n", fa_sha256(config, strlen(config)).hex, config);
}

static bool index_verifies(const char *line, char config[160])
{
    if (strlen(line) < 68 || sscanf(line + 66, "%159[^\n]", config) != 1)
        return false;
    char *wanted = index_line(config);
    const bool good = strcmp(wanted, line) == 0;
    free(wanted);
    return good;
}

/* Looks up the module's code, or adds it. `same_code_as` becomes the configuration that was there first, when it is
 * another one. The cache is the folder in which its entries lie. */
static void find_same_code(const fa_spec *spec, const fa_cache_entry *entry, fa_module *module)
{
    const fa_knobs *k = &spec->knobs;
    fa_reason ignored;
    char *known = NULL;
    size_t size = 0;
    char *config = fa_format("%s m=%d,n=%d,warps=%d,vec=%d,stages=%d,swizzle=%d,acc=%d,splits=%d,maxreg=%d", spec->name,
                             k->m, k->n, k->warps, k->vec, k->stages, k->swizzle, k->acc, k->splits, k->maxreg);
    char *index = fa_format("%.*s/code", (int)(strrchr(entry->folder, '/') - entry->folder), entry->folder);
    char *point = fa_format("%s %s %d %d %s", module->code_sha256.hex, spec->name, spec->dim, spec->causal, spec->arch);
    char *path = fa_format("%s/%s", index, fa_sha256(point, strlen(point)).hex);
    char *line = index_line(config), first[160];
    if (fa_read_file(path, &known, &size, &ignored) != FA_PASS || !index_verifies(known, first)) {
        if (fa_make_dirs(index, &ignored) == FA_PASS)
            fa_write_file(path, line, strlen(line), &ignored);
    } else if (strcmp(first, config) != 0) {
        memcpy(module->same_code_as, first, sizeof first);
    }
    free(line);
    free(known);
    free(path);
    free(point);
    free(index);
    free(config);
}

static fa_status name_compiler(fa_compiler compiler, fa_job *work, fa_reason *why)
{
    const bool nvrtc = compiler == FA_COMPILER_NVRTC;
    char version[32] = "";
    FA_TRY(nvrtc ? fa_nvrtc_version(version, why) : nvcc_version(version, why));
    snprintf(work->compiler_name, sizeof work->compiler_name, "%s %s", nvrtc ? "nvrtc" : "nvcc", version);
    return FA_PASS;
}

static fa_status make_job(const char *source, const char *arch, fa_compiler compiler, const fa_spec *spec, fa_job *work,
                          fa_reason *why)
{
    char headers[512];
    *work = (fa_job){.source = source};
    FA_TRY(name_compiler(compiler, work, why));
    FA_TRY(fa_cuda_headers(headers, why));
    if (spec != NULL)
        FA_TRY(fa_job_find_headers(work, spec, why));
    FA_TRY(fa_job_read_source(work, why));
    fa_job_add(work, "-arch=%s", arch);
    fa_job_add(work, "-std=c++20");
    fa_job_add(work, "-lineinfo");
    fa_job_add(work, compiler == FA_COMPILER_NVRTC ? "--ptxas-options=-v" : "-Xptxas=-v");
    if (spec != NULL) {
        fa_job_add_defines(work, spec);
        if (spec->knobs.maxreg > 0)
            fa_job_add(work, "-maxrregcount=%d", spec->knobs.maxreg);
    }
    const bool nvrtc = compiler == FA_COMPILER_NVRTC, own = spec != NULL && spec->asked == NULL;
    if (spec != NULL)
        FA_TRY(fa_device_source_read(spec, nvrtc ? FA_FOR_NVRTC : FA_FOR_NVCC, &work->device_source, why));
    if (own && nvrtc)
        fa_job_add(work, "-include=fa_names.h"); /* include/nvrtc/ */
    if (!nvrtc)
        fa_job_add(work, "--expt-relaxed-constexpr"); /* as NVRTC has it */
    if (own && !nvrtc)
        fa_job_add(work, "--extended-lambda");
    if (nvrtc && (work->device_source.plain_functions || work->folders.count > 0))
        fa_job_add(work, "-default-device"); /* headers of others: their functions may be plain */
    fa_job_add_source_folder(work);
    if (spec != NULL)
        fa_job_add_includes(work, spec);
    fa_job_add_folder(work, "%s/include", fa_home());
    fa_job_add_folder(work, "%s/kernels", fa_home());
    fa_job_add_folder(work, "%s", headers);
    fa_job_add_folder(work, "%s/cccl", headers); /* <cuda/std/...>, which <cooperative_groups.h> includes */
    if (nvrtc)
        fa_job_add_folder(work, "%s/include/nvrtc", fa_home()); /* what <cstdint>, <cmath>, ... of forward.h include */
    fa_job_make_key(work, nvrtc ? fa_forwards_digest(FA_FORWARD_NVRTC).hex : "");
    return FA_PASS;
}

/* A refused tile has an entry, too: the compiler's sentence in the place of a module. */
#define REFUSED "refused"

static fa_status keep_refusal(fa_status status, const char *folder, fa_reason *why)
{
    if (status != FA_INFEASIBLE)
        return status;
    const fa_reason sentence = *why;
    char *path = fa_format("%s/" REFUSED, folder);
    status = fa_write_file(path, sentence.text, strlen(sentence.text), why);
    free(path);
    return status;
}

static fa_status obtain(const fa_job *work, fa_job_build *build, fa_cache_entry *entry, fa_reason *why)
{
    char *sentence = NULL;
    size_t size = 0;
    fa_reason ignored;
    FA_TRY(fa_job_obtain(work, build, entry, why));
    char *path = fa_format("%s/" REFUSED, entry->folder);
    fa_status status = FA_PASS;
    if (access(path, F_OK) == 0 && fa_read_file(path, &sentence, &size, &ignored) == FA_PASS)
        status = fa_refuse(why, FA_INFEASIBLE, "%s", sentence);
    free(sentence);
    free(path);
    return status;
}

/* A header that is not found is often one of the host's, which NVRTC does not read and nvcc does. */
static fa_status explain_nvrtc(const char *log, fa_reason *why)
{
    const fa_status status = fa_log_explain(log, why);
    const size_t used = strlen(why->text);
    if (status == FA_COMPILE_ERROR && strstr(log, "cannot open source file") != NULL)
        snprintf(why->text + used, sizeof why->text - used,
                 "\n(NVRTC reads the toolkit's headers and <cstdint>, <cmath> and their like; --include DIR names more "
                 "folders; headers of the host's library: include <cuda/std/...> instead, or take --compiler nvcc)");
    return status;
}

static void options_of(const fa_job *work, const char *options[FA_JOB_OPTIONS_MAX])
{
    fa_job_options(work, options);
    for (int i = 0; i < work->count; i++)
        if (strncmp(options[i], "-I", 2) == 0)
            options[i] = fa_path_to_open(options[i]);
}

static fa_status build_nvrtc(const fa_job *work, const char *text, const char *folder, char **log, fa_reason *why)
{
    const char *options[FA_JOB_OPTIONS_MAX];
    char *object = fa_format("%s/module.cubin", folder), *cubin = NULL, *source = NULL, *rewritten = NULL;
    size_t size = 0;
    options_of(work, options);
    fa_status status = fa_device_source_write(&work->device_source, work->source, folder, &source, why);
    if (status == FA_PASS && work->device_source.count > 0)
        status = fa_read_file(source, &rewritten, &size, why);
    fa_forwards headers = fa_forwards_make(FA_FORWARD_NVRTC, work->own_headers != NULL ? work->own_headers : "");
    FA_THEN(status, fa_nvrtc_compile(rewritten != NULL ? rewritten : text, work->source, &headers, options, work->count,
                                     &cubin, &size, log, why));
    FA_THEN(status, fa_write_file(object, cubin, size, why));
    fa_device_source_unlink(&work->device_source, folder);
    fa_forwards_free(&headers);
    free(rewritten);
    free(source);
    free(cubin);
    free(object);
    return status == FA_COMPILE_ERROR ? keep_refusal(explain_nvrtc(*log, why), folder, why) : status;
}

static fa_status build_nvcc(const fa_job *work, const char *text, const char *folder, char **log, fa_reason *why)
{
    (void)text;
    const char *options[FA_JOB_OPTIONS_MAX];
    char *object = fa_format("%s/module.cubin", folder), *source = NULL;
    options_of(work, options);
    fa_status status = fa_device_source_write(&work->device_source, work->source, folder, &source, why);
    FA_THEN(status, nvcc_compile(source, options, work->count, object, log, why));
    fa_device_source_unlink(&work->device_source, folder);
    free(source);
    free(object);
    return status == FA_COMPILE_ERROR ? keep_refusal(fa_log_explain(*log, why), folder, why) : status;
}

fa_status fa_compile_file(const char *source, const char *arch, char cubin_path[1024], fa_reason *why)
{
    fa_job *work = fa_alloc(sizeof *work);
    fa_cache_entry entry;
    fa_status status = make_job(source, arch, FA_COMPILER_NVRTC, NULL, work, why);
    FA_THEN(status, obtain(work, build_nvrtc, &entry, why));
    if (status == FA_PASS)
        snprintf(cubin_path, 1024, "%s/module.cubin", entry.folder);
    fa_job_free(work);
    return status;
}

bool fa_needs_ptx(const char *arch, const char *device_arch)
{
    const bool has_suffix = strchr("0123456789", arch[strlen(arch) - 1]) == NULL;
    return !has_suffix && fa_arch_cc(arch) / 10 < fa_arch_cc(device_arch) / 10;
}

fa_status fa_compile_ptx(const fa_spec *spec, fa_module *module, fa_reason *why)
{
    fa_job *work = fa_alloc(sizeof *work);
    fa_cache_entry entry;
    snprintf(module->ptx_arch, sizeof module->ptx_arch, "compute_%.3s", spec->arch + strlen("sm_"));
    fa_status status = make_job(spec->source, module->ptx_arch, FA_COMPILER_NVRTC, spec, work, why);
    FA_THEN(status, obtain(work, build_nvrtc, &entry, why));
    if (status == FA_PASS)
        snprintf(module->path, sizeof module->path, "%s/module.cubin", entry.folder);
    fa_job_free(work);
    return status;
}

static fa_status check_limits(const fa_spec *spec, fa_module *module, fa_reason *why)
{
    fa_arch_limits limits;
    FA_TRY(fa_arch_limits_of(spec->arch, &limits, why));
    const fa_ptxas *ptxas = &module->ptxas;
    const int32_t threads = module->info.threads;
    FA_TRY(fa_job_check_plan(spec, &limits, &module->plan, why));
    FA_TRY(fa_job_check_block(spec, &limits, threads, ptxas->smem_total_bytes, why));
    module->occupancy = fa_occupancy_of(&limits, threads, ptxas->registers, ptxas->smem_total_bytes);
    if (module->occupancy.blocks_per_sm < 1)
        return fa_refuse(why, FA_INFEASIBLE,
                         "%d threads of %d registers against the %d registers of a multiprocessor on %s", threads,
                         ptxas->registers, limits.registers_sm, spec->arch);
    return FA_PASS;
}

/* What the kernels do depends on their launches, too. */
static void add_plan(fa_module *module)
{
    const fa_digest plan = fa_sha256(&module->plan, sizeof module->plan);
    char *both = fa_format("%s %s", module->code_sha256.hex, plan.hex);
    module->code_sha256 = fa_sha256(both, strlen(both));
    free(both);
}

static fa_status read_module(const fa_spec *spec, const fa_cache_entry *entry, fa_module *module, fa_reason *why)
{
    char *cubin = NULL, *log = NULL;
    size_t size = 0, log_size = 0;
    snprintf(module->path, sizeof module->path, "%s/module.cubin", entry->folder);
    FA_TRY(fa_read_file(module->path, &cubin, &size, why));
    module->object_sha256 = fa_sha256(cubin, size);
    module->code_sha256 = fa_cubin_code_digest(cubin, size);
    const bool has_entry = fa_cubin_function(cubin, size, "fa_kernel");
    module->has_before = fa_cubin_function(cubin, size, "fa_before");
    module->has_after = fa_cubin_function(cubin, size, "fa_after");
    const bool has_info = fa_cubin_object(cubin, size, "fa_info", &module->info, sizeof module->info);
    const bool has_plan =
        spec->launches && fa_cubin_object(cubin, size, "fa_launch_plan", &module->plan, sizeof module->plan);
    free(cubin);
    if (!has_plan)
        module->plan.count = 0;
    else
        add_plan(module);
    FA_TRY(fa_job_need_symbols(spec, has_entry, has_info && module->info.abi == FA_ABI, why));
    FA_TRY(fa_job_check_info(spec, &module->info, why));
    char *path = fa_format("%s/log", entry->folder);
    const fa_status status = fa_read_file(path, &log, &log_size, why);
    free(path);
    FA_TRY(status);
    fa_ptxas *ptxas = &module->ptxas;
    snprintf(ptxas->arch, sizeof ptxas->arch, "%s", spec->arch);
    if (!fa_log_ptxas(log, "fa_kernel", ptxas))
        snprintf(ptxas->unknown_reason, sizeof ptxas->unknown_reason,
                 "the compiler's log has no figures for fa_kernel");
    free(log);
    ptxas->smem_dynamic_bytes = module->info.smem_dynamic_bytes;
    ptxas->smem_total_bytes = ptxas->smem_static_bytes + ptxas->smem_dynamic_bytes;
    return FA_PASS;
}

fa_status fa_compile_cuda(const fa_spec *spec, fa_module *module, fa_reason *why)
{
    const double start = fa_now_s();
    fa_cache_entry entry = {.hit = false};
    *module = (fa_module){.cache_hit = false};
    fa_job *work = fa_alloc(sizeof *work);
    fa_status status = make_job(spec->source, spec->arch, spec->compiler, spec, work, why);
    FA_THEN(status, obtain(work, spec->compiler == FA_COMPILER_NVRTC ? build_nvrtc : build_nvcc, &entry, why));
    module->cache_hit = entry.hit;
    if (status == FA_PASS) {
        fa_job_describe(work, module);
        status = read_module(spec, &entry, module, why);
    }
    if (status == FA_PASS) {
        if (!entry.temporary)
            find_same_code(spec, &entry, module);
        status = check_limits(spec, module, why);
    }
    fa_job_free(work);
    module->seconds = fa_now_s() - start;
    return status;
}
