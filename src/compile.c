#include "compile.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "compile_log.h"
#include "cubin.h"
#include "nvrtc.h"

#define OPTIONS_MAX 32
#define OPTION_LENGTH 640

/* One compilation: a source and the options that decide its code. */
typedef struct job {
    const char *source;
    fa_compiler compiler;
    char compiler_name[64];
    char options[OPTIONS_MAX][OPTION_LENGTH];
    int count;
    fa_digest source_digest, key;
} job;

static void add_option(job *work, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_option(job *work, const char *format, ...)
{
    va_list arguments;
    FA_ASSERT(work->count < OPTIONS_MAX);
    va_start(arguments, format);
    vsnprintf(work->options[work->count++], OPTION_LENGTH, format, arguments);
    va_end(arguments);
}

static fa_status name_compiler(job *work, fa_reason *why)
{
    char version[16] = "";
    if (work->compiler == FA_COMPILER_NVRTC) {
        FA_TRY(fa_nvrtc_version(version, why));
        snprintf(work->compiler_name, sizeof work->compiler_name, "nvrtc %s", version);
        return FA_PASS;
    }
    char *output = NULL;
    const char *const command[] = {"nvcc", "--version", NULL};
    const int code = fa_run(command, &output);
    const char *release = strstr(output, ", V");
    if (code == 0 && release != NULL)
        snprintf(work->compiler_name, sizeof work->compiler_name, "nvcc %.*s", (int)strcspn(release + 3, "\n"), release + 3);
    free(output);
    if (code == 0 && release != NULL)
        return FA_PASS;
    return fa_refuse(why, FA_NOT_RUN, "no nvcc in PATH");
}

/* Everything that can change the code goes into the key; where the files lie does not. */
static void make_key(job *work)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    FA_ASSERT(out != NULL);
    fprintf(out, "abi %d %zu %zu\n%s\n%s\n", FA_ABI, sizeof(fa_params), sizeof(fa_kernel_info), work->source_digest.hex,
            work->compiler_name);
    for (int i = 0; i < work->count; i++)
        if (strncmp(work->options[i], "-I", 2) != 0)
            fprintf(out, "%s\n", work->options[i]);
    fclose(out);
    work->key = fa_sha256(text, size);
    free(text);
}

static fa_status make_job(const char *source, const char *arch, fa_compiler compiler, const fa_spec *spec, job *work,
                          fa_reason *why)
{
    char headers[512];
    *work = (job){.source = source, .compiler = compiler};
    FA_TRY(name_compiler(work, why));
    FA_TRY(fa_cuda_headers(headers, why));
    FA_TRY(fa_source_digest(source, &work->source_digest, why));
    add_option(work, "-arch=%s", arch);
    add_option(work, "-std=c++20");
    add_option(work, "-lineinfo");
    add_option(work, compiler == FA_COMPILER_NVRTC ? "--ptxas-options=-v" : "-Xptxas=-v");
    if (spec != NULL) {
        fa_define defines[FA_SPEC_DEFINES_MAX];
        const size_t count = fa_spec_defines(spec, defines);
        for (size_t i = 0; i < count; i++)
            add_option(work, "%s", defines[i].text);
        if (spec->knobs.maxreg > 0)
            add_option(work, "-maxrregcount=%d", spec->knobs.maxreg);
    }
    const char *slash = strrchr(source, '/');
    add_option(work, "-I%.*s", slash != NULL ? (int)(slash - source) : 1, slash != NULL ? source : ".");
    add_option(work, "-I%s/include", fa_home());
    add_option(work, "-I%s/kernels", fa_home());
    add_option(work, "-I%s", headers);
    make_key(work);
    return FA_PASS;
}

static fa_status write_into(const char *folder, const char *name, const void *data, size_t size, fa_reason *why)
{
    char *path = fa_format("%s/%s", folder, name);
    const fa_status status = fa_write_file(path, data, size, why);
    free(path);
    return status;
}

static fa_status build_nvrtc(const job *work, const char *source, const char *folder, char **log, fa_reason *why)
{
    const char *options[OPTIONS_MAX];
    char *cubin = NULL;
    size_t size = 0;
    for (int i = 0; i < work->count; i++)
        options[i] = work->options[i];
    fa_status status = fa_nvrtc_compile(source, work->source, options, work->count, &cubin, &size, log, why);
    if (status == FA_PASS)
        status = write_into(folder, "module.cubin", cubin, size, why);
    free(cubin);
    return status;
}

static fa_status build_nvcc(const job *work, const char *folder, char **log, fa_reason *why)
{
    const char *command[OPTIONS_MAX + 8] = {"nvcc", "-cubin", "-o"};
    char *object = fa_format("%s/module.cubin", folder);
    int count = 3;
    command[count++] = object;
    for (int i = 0; i < work->count; i++)
        command[count++] = work->options[i];
    command[count] = work->source;
    const int code = fa_run(command, log);
    free(object);
    if (code != 0)
        return fa_refuse(why, FA_COMPILE_ERROR, "nvcc: exit code %d", code);
    return FA_PASS;
}

/* What a failed compilation means to the user. */
static fa_status explain_failure(const char *log, fa_reason *why)
{
    char text[3500];
    if (fa_log_static_assert(log, text, sizeof text))
        return fa_refuse(why, FA_INFEASIBLE, "%s", text);
    const int32_t bytes = fa_log_static_smem_overflow(log);
    if (bytes > 0)
        return fa_refuse(why, FA_INFEASIBLE,
                         "%d bytes of static shared memory against the limit of 49152 (declare it dynamic: FA_SHARED)", bytes);
    fa_log_errors(log, text, sizeof text);
    return fa_refuse(why, FA_COMPILE_ERROR, "%s", text);
}

static fa_status build(const job *work, fa_cache_entry *entry, fa_reason *why)
{
    char *source = NULL, *log = NULL;
    size_t size = 0;
    FA_TRY(fa_read_file(work->source, &source, &size, why));
    fa_status status = work->compiler == FA_COMPILER_NVRTC ? build_nvrtc(work, source, entry->folder, &log, why)
                                                           : build_nvcc(work, entry->folder, &log, why);
    if (status == FA_COMPILE_ERROR && log != NULL)
        status = explain_failure(log, why);
    if (status == FA_PASS)
        status = write_into(entry->folder, "log", log, strlen(log), why);
    if (status == FA_PASS)
        status = write_into(entry->folder, "source.cu", source, size, why);
    if (status == FA_PASS)
        status = fa_cache_publish(&work->key, entry, why);
    free(log);
    free(source);
    return status;
}

/* The cache entry of a job, built when it is not there. */
static fa_status obtain(const job *work, fa_cache_entry *entry, fa_reason *why)
{
    FA_TRY(fa_cache_open(&work->key, entry, why));
    if (entry->hit)
        return FA_PASS;
    const fa_status status = build(work, entry, why);
    if (status != FA_PASS)
        fa_cache_discard(entry);
    return status;
}

fa_status fa_compile_file(const char *source, const char *arch, char cubin_path[1024], fa_reason *why)
{
    job *work = fa_alloc(sizeof *work);
    fa_cache_entry entry;
    fa_status status = make_job(source, arch, FA_COMPILER_NVRTC, NULL, work, why);
    if (status == FA_PASS)
        status = obtain(work, &entry, why);
    if (status == FA_PASS)
        snprintf(cubin_path, 1024, "%s/module.cubin", entry.folder);
    free(work);
    return status;
}

static int32_t round_up(int32_t value, int32_t to)
{
    return (value + to - 1) / to * to;
}

fa_occupancy fa_occupancy_of(const fa_arch_limits *limits, int32_t threads, int32_t registers, int32_t smem_bytes)
{
    /* Allocation units of the CUDA occupancy calculator: registers per warp by 256, warps by 4, shared memory by 128 bytes
     * with 1 KiB kept by the system per block from cc 8.0 on. */
    const int32_t warps = (threads + 31) / 32;
    const int32_t registers_block = round_up(registers * 32, 256) * round_up(warps, 4);
    const int32_t smem_block = round_up(smem_bytes + (limits->cc >= 80 ? 1024 : 0), 128);
    int32_t blocks = limits->blocks_sm;
    if (limits->warps_sm / warps < blocks)
        blocks = limits->warps_sm / warps;
    if (registers_block > 0 && limits->registers_sm / registers_block < blocks)
        blocks = limits->registers_sm / registers_block;
    if (smem_block > 0 && limits->smem_sm_bytes / smem_block < blocks)
        blocks = limits->smem_sm_bytes / smem_block;
    return (fa_occupancy){.blocks_per_sm = blocks,
                          .warps_per_sm = blocks * warps,
                          .fraction = (double)(blocks * warps) / limits->warps_sm};
}

static fa_status check_limits(const fa_spec *spec, fa_module *module, fa_reason *why)
{
    fa_arch_limits limits;
    FA_TRY(fa_arch_limits_of(spec->arch, &limits, why));
    const fa_ptxas *ptxas = &module->ptxas;
    const int32_t threads = module->info.threads;
    if (threads < 1 || threads > limits.threads_block)
        return fa_refuse(why, FA_INFEASIBLE, "%d threads per block against the limit of %d on %s", threads,
                         limits.threads_block, spec->arch);
    if (ptxas->smem_total_bytes > limits.smem_block_bytes)
        return fa_refuse(why, FA_INFEASIBLE, "%d bytes of shared memory per block against the limit of %d on %s",
                         ptxas->smem_total_bytes, limits.smem_block_bytes, spec->arch);
    module->occupancy = fa_occupancy_of(&limits, threads, ptxas->registers, ptxas->smem_total_bytes);
    if (module->occupancy.blocks_per_sm < 1)
        return fa_refuse(why, FA_INFEASIBLE, "%d threads of %d registers against the %d registers of a multiprocessor on %s",
                         threads, ptxas->registers, limits.registers_sm, spec->arch);
    return FA_PASS;
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
    const bool has_info = fa_cubin_object(cubin, size, "fa_info", &module->info, sizeof module->info);
    free(cubin);
    if (!has_entry)
        return fa_refuse(why, FA_ERROR, "%s has no entry point: extern \"C\" __global__ void fa_kernel(const "
                                        "__grid_constant__ fa_params p)", spec->source);
    if (!has_info || module->info.abi != FA_ABI)
        return fa_refuse(why, FA_ERROR, "%s exports no constants of this ABI: FA_KERNEL_INFO(.threads = ..., "
                                        ".smem_dynamic_bytes = ...);", spec->source);
    char *path = fa_format("%s/log", entry->folder);
    const fa_status status = fa_read_file(path, &log, &log_size, why);
    free(path);
    FA_TRY(status);
    fa_ptxas *ptxas = &module->ptxas;
    snprintf(ptxas->arch, sizeof ptxas->arch, "%s", spec->arch);
    if (!fa_log_ptxas(log, "fa_kernel", ptxas))
        snprintf(ptxas->unknown_reason, sizeof ptxas->unknown_reason, "the compiler's log has no figures for fa_kernel");
    free(log);
    ptxas->smem_dynamic_bytes = module->info.smem_dynamic_bytes;
    ptxas->smem_total_bytes = ptxas->smem_static_bytes + ptxas->smem_dynamic_bytes;
    return FA_PASS;
}

/* A line of the index, with its digest: a damaged one names no configuration. */
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

/* Remembers which configuration first compiled to this code; names it when this is another one. */
static void compare_code(const fa_spec *spec, fa_module *module, const char *folder)
{
    const fa_knobs *k = &spec->knobs;
    fa_reason ignored;
    char *known = NULL;
    size_t size = 0;
    char *config = fa_format("%s m=%d,n=%d,warps=%d,vec=%d,stages=%d,swizzle=%d,acc=%d,splits=%d,maxreg=%d", spec->name, k->m,
                             k->n, k->warps, k->vec, k->stages, k->swizzle, k->acc, k->splits, k->maxreg);
    char *index = fa_format("%.*s/code", (int)(strrchr(folder, '/') - folder), folder);
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

static void describe(const job *work, fa_module *module)
{
    memcpy(module->compiler, work->compiler_name, sizeof module->compiler);
    module->source_sha256 = work->source_digest;
    for (int i = 0; i < work->count; i++)
        if (strncmp(work->options[i], "-I", 2) != 0)
            snprintf(module->options + strlen(module->options), sizeof module->options - strlen(module->options), "%s%s",
                     i > 0 ? " " : "", work->options[i]);
}

fa_status fa_compile_cuda(const fa_spec *spec, fa_module *module, fa_reason *why)
{
    const double start = fa_now_s();
    fa_cache_entry entry;
    *module = (fa_module){.cache_hit = false};
    job *work = fa_alloc(sizeof *work);
    fa_status status = make_job(spec->source, spec->arch, spec->compiler, spec, work, why);
    if (status == FA_PASS)
        status = obtain(work, &entry, why);
    if (status == FA_PASS) {
        describe(work, module);
        module->cache_hit = entry.hit;
        status = read_module(spec, &entry, module, why);
    }
    if (status == FA_PASS) {
        if (!entry.temporary)
            compare_code(spec, module, entry.folder);
        status = check_limits(spec, module, why);
    }
    free(work);
    module->seconds = fa_now_s() - start;
    return status;
}

fa_launch fa_launch_of(const fa_kernel_info *info, const fa_problem *problem, int32_t sm_count)
{
    const int64_t tiles_m = ((int64_t)problem->seq_q + info->m - 1) / info->m;
    const int64_t tiles = tiles_m * problem->heads * problem->batch;
    const int64_t blocks = tiles * (info->splits > 1 ? info->splits : 1);
    if (blocks > INT32_MAX)
        return (fa_launch){.grid = 0};
    const int64_t resident = (int64_t)sm_count * (info->blocks_per_sm > 0 ? info->blocks_per_sm : 1);
    const bool persistent = info->grid == FA_GRID_PERSISTENT && resident < blocks;
    return (fa_launch){
        .grid = (uint32_t)(persistent ? resident : blocks),
        .threads = (uint32_t)info->threads,
        .smem_dynamic_bytes = (uint32_t)info->smem_dynamic_bytes,
        .cluster = info->cluster > 1 ? (uint32_t)info->cluster : 1,
        .tiles_m = (int32_t)tiles_m,
        .tiles = (int32_t)tiles,
        .workspace_bytes = info->workspace_bytes_per_block * blocks + info->workspace_bytes_fixed,
    };
}
