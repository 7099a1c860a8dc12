#include "compile/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/process.h"
#include "compile/cache.h"
#include "compile/job.h"
#include "compile/log.h"
#include "compile/cubin.h"
#include "compile/nvrtc.h"

static fa_status name_compiler(fa_compiler compiler, fa_job *work, fa_reason *why)
{
    char version[16] = "";
    if (compiler == FA_COMPILER_NVRTC) {
        FA_TRY(fa_nvrtc_version(version, why));
        snprintf(work->compiler_name, sizeof work->compiler_name, "nvrtc %s", version);
        return FA_PASS;
    }
    char *output = NULL;
    const char *const command[] = {"nvcc", "--version", NULL};
    const int code = fa_run(command, &output);
    const char *release = strstr(output, ", V");
    if (code == 0 && release != NULL)
        snprintf(work->compiler_name, sizeof work->compiler_name, "nvcc %.*s", (int)strcspn(release + 3, "\n"),
                 release + 3);
    free(output);
    if (code == 0 && release != NULL)
        return FA_PASS;
    return fa_refuse(why, FA_NOT_RUN, "no nvcc in PATH");
}

static fa_status make_job(const char *source, const char *arch, fa_compiler compiler, const fa_spec *spec, fa_job *work,
                          fa_reason *why)
{
    char headers[512];
    *work = (fa_job){.source = source};
    FA_TRY(name_compiler(compiler, work, why));
    FA_TRY(fa_cuda_headers(headers, why));
    FA_TRY(fa_source_digest(source, &work->source_digest, why));
    fa_job_add(work, "-arch=%s", arch);
    fa_job_add(work, "-std=c++20");
    fa_job_add(work, "-lineinfo");
    fa_job_add(work, compiler == FA_COMPILER_NVRTC ? "--ptxas-options=-v" : "-Xptxas=-v");
    if (spec != NULL) {
        fa_job_add_defines(work, spec);
        if (spec->knobs.maxreg > 0)
            fa_job_add(work, "-maxrregcount=%d", spec->knobs.maxreg);
    }
    fa_job_add_source_folder(work);
    fa_job_add(work, "-I%s/include", fa_home());
    fa_job_add(work, "-I%s/kernels", fa_home());
    fa_job_add(work, "-I%s", headers);
    fa_job_make_key(work, "");
    return FA_PASS;
}

static fa_status write_into(const char *folder, const char *name, const void *data, size_t size, fa_reason *why)
{
    char *path = fa_format("%s/%s", folder, name);
    const fa_status status = fa_write_file(path, data, size, why);
    free(path);
    return status;
}

static fa_status build_nvrtc(const fa_job *work, const char *source, const char *folder, char **log, fa_reason *why)
{
    const char *options[FA_JOB_OPTIONS_MAX];
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

static fa_status build_nvcc(const fa_job *work, const char *folder, char **log, fa_reason *why)
{
    const char *command[FA_JOB_OPTIONS_MAX + 8] = {"nvcc", "-cubin", "-o"};
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
                         "%d bytes of static shared memory against the limit of 49152 (declare it dynamic: FA_SHARED)",
                         bytes);
    fa_log_errors(log, text, sizeof text);
    return fa_refuse(why, FA_COMPILE_ERROR, "%s", text);
}

static fa_status build(const fa_job *work, fa_compiler compiler, fa_cache_entry *entry, fa_reason *why)
{
    char *source = NULL, *log = NULL;
    size_t size = 0;
    FA_TRY(fa_read_file(work->source, &source, &size, why));
    fa_status status = compiler == FA_COMPILER_NVRTC ? build_nvrtc(work, source, entry->folder, &log, why)
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
static fa_status obtain(const fa_job *work, fa_compiler compiler, fa_cache_entry *entry, fa_reason *why)
{
    FA_TRY(fa_cache_open(&work->key, entry, why));
    if (entry->hit)
        return FA_PASS;
    const fa_status status = build(work, compiler, entry, why);
    if (status != FA_PASS)
        fa_cache_discard(entry);
    return status;
}

fa_status fa_compile_file(const char *source, const char *arch, char cubin_path[1024], fa_reason *why)
{
    fa_job *work = fa_alloc(sizeof *work);
    fa_cache_entry entry;
    fa_status status = make_job(source, arch, FA_COMPILER_NVRTC, NULL, work, why);
    if (status == FA_PASS)
        status = obtain(work, FA_COMPILER_NVRTC, &entry, why);
    if (status == FA_PASS)
        snprintf(cubin_path, 1024, "%s/module.cubin", entry.folder);
    free(work);
    return status;
}

bool fa_needs_ptx(const char *arch, const char *device_arch)
{
    int target = 0, device = 0;
    char suffix = '\0';
    sscanf(arch, "sm_%d%c", &target, &suffix);
    sscanf(device_arch, "sm_%d", &device);
    return suffix == '\0' && target / 10 < device / 10;
}

fa_status fa_compile_ptx(const fa_spec *spec, fa_module *module, fa_reason *why)
{
    fa_job *work = fa_alloc(sizeof *work);
    fa_cache_entry entry;
    snprintf(module->ptx_arch, sizeof module->ptx_arch, "compute_%.3s", spec->arch + strlen("sm_"));
    fa_status status = make_job(spec->source, module->ptx_arch, FA_COMPILER_NVRTC, spec, work, why);
    if (status == FA_PASS)
        status = obtain(work, FA_COMPILER_NVRTC, &entry, why);
    if (status == FA_PASS)
        snprintf(module->path, sizeof module->path, "%s/module.cubin", entry.folder);
    free(work);
    return status;
}

static int32_t round_up(int32_t value, int32_t to) { return (value + to - 1) / to * to; }

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
    FA_TRY(fa_job_check_block(spec, &limits, threads, ptxas->smem_total_bytes, why));
    module->occupancy = fa_occupancy_of(&limits, threads, ptxas->registers, ptxas->smem_total_bytes);
    if (module->occupancy.blocks_per_sm < 1)
        return fa_refuse(why, FA_INFEASIBLE,
                         "%d threads of %d registers against the %d registers of a multiprocessor on %s", threads,
                         ptxas->registers, limits.registers_sm, spec->arch);
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
    FA_TRY(fa_job_need_symbols(spec, has_entry, has_info && module->info.abi == FA_ABI, why));
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
    char *config = fa_format("%s m=%d,n=%d,warps=%d,vec=%d,stages=%d,swizzle=%d,acc=%d,splits=%d,maxreg=%d", spec->name,
                             k->m, k->n, k->warps, k->vec, k->stages, k->swizzle, k->acc, k->splits, k->maxreg);
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

fa_status fa_compile_cuda(const fa_spec *spec, fa_module *module, fa_reason *why)
{
    const double start = fa_now_s();
    fa_cache_entry entry;
    *module = (fa_module){.cache_hit = false};
    fa_job *work = fa_alloc(sizeof *work);
    fa_status status = make_job(spec->source, spec->arch, spec->compiler, spec, work, why);
    if (status == FA_PASS)
        status = obtain(work, spec->compiler, &entry, why);
    if (status == FA_PASS) {
        fa_job_describe(work, module);
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
    const int64_t cluster = info->cluster > 1 ? info->cluster : 1; /* a grid is whole clusters */
    const int64_t blocks = (tiles_m + cluster - 1) / cluster * cluster * problem->heads * problem->batch *
                           (info->splits > 1 ? info->splits : 1);
    if (blocks > INT32_MAX)
        return (fa_launch){.grid = 0};
    const int64_t resident =
        (int64_t)sm_count * (info->blocks_per_sm > 0 ? info->blocks_per_sm : 1) / cluster * cluster;
    const bool persistent = info->grid == FA_GRID_PERSISTENT && resident < blocks;
    return (fa_launch){
        .grid = (uint32_t)(persistent ? resident : blocks),
        .threads = (uint32_t)info->threads,
        .smem_dynamic_bytes = (uint32_t)info->smem_dynamic_bytes,
        .cluster = (uint32_t)cluster,
        .tiles_m = (int32_t)tiles_m,
        .tiles = (int32_t)tiles,
        .workspace_bytes = info->workspace_bytes_per_block * blocks + info->workspace_bytes_fixed,
    };
}
