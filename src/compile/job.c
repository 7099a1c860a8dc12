#include "compile/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "compile/source_digest.h"

void fa_job_free(fa_job *job)
{
    fa_device_source_free(&job->device_source);
    free(job->own_headers);
    free(job);
}

fa_status fa_job_read_source(fa_job *job, fa_reason *why)
{
    fa_source_files files;
    const fa_status status = fa_source_files_read(job->source, &job->folders, &files, why);
    job->source_digest = files.digest;
    job->source_stamp = files.stamp;
    job->own_headers = files.own;
    files.own = NULL;
    fa_source_files_free(&files);
    return status;
}

void fa_job_add(fa_job *job, const char *format, ...)
{
    va_list arguments;
    FA_ASSERT(job->count < FA_JOB_OPTIONS_MAX);
    va_start(arguments, format);
    vsnprintf(job->options[job->count++], FA_JOB_OPTION_LENGTH, format, arguments);
    va_end(arguments);
}

void fa_job_add_words(fa_job *job, const char *words)
{
    for (size_t length; *words != '\0'; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        fa_job_add(job, "%.*s", (int)length, words);
    }
}

void fa_job_add_folder(fa_job *job, const char *format, ...)
{
    va_list arguments;
    FA_ASSERT(job->count < FA_JOB_OPTIONS_MAX);
    job->is_folder[job->count] = true;
    const int flag = snprintf(job->options[job->count], FA_JOB_OPTION_LENGTH, "-I");
    va_start(arguments, format);
    vsnprintf(job->options[job->count++] + flag, FA_JOB_OPTION_LENGTH - (size_t)flag, format, arguments);
    va_end(arguments);
}

void fa_job_add_defines(fa_job *job, const fa_spec *spec)
{
    fa_define defines[FA_SPEC_DEFINES_MAX];
    const size_t count = fa_spec_defines(spec, defines);
    for (size_t i = 0; i < count; i++)
        fa_job_add(job, "%s", defines[i].text);
    for (int i = 0; i < spec->define.count; i++)
        fa_job_add(job, "-D%s", spec->define.at[i]);
}

fa_status fa_job_find_headers(fa_job *job, const fa_spec *spec, fa_reason *why)
{
    job->folders = spec->include;
    FA_TRY(fa_headers_find(spec->row, &job->headers, why));
    if (job->headers.folder[0] == '\0')
        return FA_PASS;
    if (job->folders.count == FA_LIST_MAX)
        return fa_refuse(why, FA_USAGE, "--include may be given %d times beside %s", FA_LIST_MAX - 1,
                         job->headers.version);
    job->folders.at[job->folders.count++] = job->headers.folder;
    return FA_PASS;
}

void fa_job_add_includes(fa_job *job, const fa_spec *spec)
{
    for (int i = 0; i < spec->include.count; i++)
        fa_job_add(job, "-I%s", spec->include.at[i]);
    if (job->headers.folder[0] != '\0')
        fa_job_add_folder(job, "%s", job->headers.folder); /* their content is in the source's digest */
}

void fa_job_add_source_folder(fa_job *job)
{
    const char *slash = strrchr(job->source, '/');
    fa_job_add_folder(job, "%.*s", slash != NULL ? (int)(slash - job->source) : 1, slash != NULL ? job->source : ".");
}

void fa_job_options(const fa_job *job, const char *options[])
{
    for (int i = 0; i < job->count; i++)
        options[i] = job->options[i];
}

void fa_job_make_key(fa_job *job, const char *more)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = fa_open_text(&text, &size);
    if (job->device_source.count > 0)
        fprintf(out, "device source 1\n");
    if (job->device_source.launches)
        fprintf(out, "%s\n", job->device_source.launch_digest.hex);
    fprintf(out, "abi %d %zu %zu\n%s\n%s\n%s\n", FA_ABI, sizeof(fa_params), sizeof(fa_kernel_info),
            job->source_digest.hex, job->compiler_name, more);
    for (int i = 0; i < job->count; i++)
        if (!job->is_folder[i])
            fprintf(out, "%s\n", job->options[i]);
    fclose(out);
    job->key = fa_sha256(text, size);
    free(text);
}

void fa_job_describe(const fa_job *job, fa_module *module)
{
    memcpy(module->compiler, job->compiler_name, sizeof module->compiler);
    memcpy(module->headers, job->headers.version, sizeof module->headers);
    module->source_sha256 = job->source_digest;
    for (int i = 0; i < job->count; i++)
        if (!job->is_folder[i])
            snprintf(module->options + strlen(module->options), sizeof module->options - strlen(module->options),
                     "%s%s", i > 0 ? "\n" : "", job->options[i]);
}

fa_status fa_job_need_symbols(const fa_spec *spec, bool has_entry, bool has_info, fa_reason *why)
{
    if (!has_entry)
        return fa_refuse(why, FA_ERROR,
                         "%s has no entry point: extern \"C\" __global__ void fa_kernel(const "
                         "__grid_constant__ fa_params p), or a line // FA_LAUNCH: (docs/ordinary.md)",
                         spec->source);
    if (!has_info)
        return fa_refuse(why, FA_ERROR,
                         "%s exports no constants of this ABI: FA_KERNEL_INFO(.threads = ..., "
                         ".smem_dynamic_bytes = ...);",
                         spec->source);
    return FA_PASS;
}

fa_status fa_job_check_info(const fa_spec *spec, const fa_kernel_info *info, fa_reason *why)
{
    const struct {
        const char *name;
        int64_t value, max;
    } fields[] = {
        {"smem_dynamic_bytes", info->smem_dynamic_bytes, INT32_MAX},
        {"grid", info->grid, FA_GRID_KEYS},
        {"pre_grid", info->pre_grid, INT32_MAX},
        {"post_grid", info->post_grid, INT32_MAX},
        {"blocks_per_sm", info->blocks_per_sm, 32},
        {"cluster", info->cluster, 16},
        {"workspace_bytes_per_block", info->workspace_bytes_per_block, INT64_C(1) << 40},
        {"workspace_bytes_fixed", info->workspace_bytes_fixed, INT64_C(1) << 40},
        {"tma_q_rows", info->tma_q_rows, 256},
        {"tma_k_rows", info->tma_k_rows, 256},
        {"tma_v_rows", info->tma_v_rows, 256},
        {"tma_o_rows", info->tma_o_rows, 256},
        {"tma_cols", info->tma_cols, 256},
        {"nondeterministic", info->nondeterministic, 1},
        {"pack_heads", info->pack_heads, 1},
        {"m", info->m, INT32_MAX},
        {"n", info->n, INT32_MAX},
        {"needs", info->needs, FA_NEEDS_ALL},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].value < 0 || fields[i].value > fields[i].max)
            return fa_refuse(why, FA_ERROR, "%s: FA_KERNEL_INFO says %s = %lld, which is not in 0..%lld", spec->source,
                             fields[i].name, (long long)fields[i].value, (long long)fields[i].max);
    return FA_PASS;
}

fa_status fa_job_check_block(const fa_spec *spec, const fa_arch_limits *limits, int32_t threads, int32_t smem_bytes,
                             fa_reason *why)
{
    if (threads < 1 || threads > limits->threads_block)
        return fa_refuse(why, FA_INFEASIBLE, "%d threads per block against the limit of %d on %s", threads,
                         limits->threads_block, spec->arch);
    if (smem_bytes > limits->smem_block_bytes)
        return fa_refuse(why, FA_INFEASIBLE, "%d bytes of shared memory per block against the limit of %d on %s",
                         smem_bytes, limits->smem_block_bytes, spec->arch);
    return FA_PASS;
}

fa_status fa_job_check_plan(const fa_spec *spec, const fa_arch_limits *limits, const fa_plan *plan, fa_reason *why)
{
    if (!spec->launches)
        return FA_PASS;
    if (plan->count < 1 || plan->count > FA_STEPS_MAX)
        return fa_refuse(why, FA_ERROR, "%s exports no plan of its launches", spec->source);
    for (int i = 0; i < plan->count; i++) {
        const fa_step *s = &plan->steps[i];
        fa_reason bare;
        const int64_t threads = (int64_t)s->block[0] * s->block[1] * s->block[2];
        const bool grid =
            s->grid[0] > 0 && s->grid[1] > 0 && s->grid[2] > 0 && s->grid[1] < 65536 && s->grid[2] < 65536;
        const bool block = s->block[0] > 0 && s->block[1] > 0 && s->block[2] > 0 && s->block[2] <= 64;
        if (!grid)
            return fa_refuse(why, FA_INFEASIBLE,
                             "%s:%d: a grid of %d x %d x %d blocks: at least 1, and 65535 along y, z", spec->source,
                             s->line, s->grid[0], s->grid[1], s->grid[2]);
        if (!block || threads > limits->threads_block)
            return fa_refuse(why, FA_INFEASIBLE, "%s:%d: a block of %d x %d x %d threads: 1 to %d, and 64 along z",
                             spec->source, s->line, s->block[0], s->block[1], s->block[2], limits->threads_block);
        if (fa_job_check_block(spec, limits, (int32_t)threads, s->shared_bytes, &bare) != FA_PASS ||
            s->shared_bytes < 0)
            return fa_refuse(why, FA_INFEASIBLE, "%s:%d: %.3900s", spec->source, s->line,
                             s->shared_bytes < 0 ? "shared memory of less than no bytes, or of 2^31 and more"
                                                 : bare.text);
    }
    return FA_PASS;
}

static fa_status write_into(const char *folder, const char *name, const void *data, size_t size, fa_reason *why)
{
    char *path = fa_format("%s/%s", folder, name);
    const fa_status status = fa_write_file(path, data, size, why);
    free(path);
    return status;
}

static fa_status check_unchanged(const fa_job *job, fa_reason *why)
{
    fa_source_files now;
    fa_status status = fa_source_files_read(job->source, &job->folders, &now, why);
    if (status == FA_PASS &&
        (strcmp(now.digest.hex, job->source_digest.hex) != 0 || strcmp(now.stamp.hex, job->source_stamp.hex) != 0))
        status = fa_refuse(why, FA_ERROR,
                           "%s, or a file that it includes, was written while it was compiled: run again", job->source);
    fa_source_files_free(&now);
    return status;
}

static fa_status build_entry(const fa_job *job, fa_job_build *build, fa_cache_entry *entry, fa_reason *why)
{
    char *text = NULL, *log = NULL;
    size_t size = 0;
    FA_TRY(fa_read_file(job->source, &text, &size, why));
    fa_status status = build(job, text, entry->folder, &log, why);
    FA_THEN(status, check_unchanged(job, why));
    FA_THEN(status, write_into(entry->folder, "log", log, strlen(log), why));
    FA_THEN(status, write_into(entry->folder, "source.cu", text, size, why));
    FA_THEN(status, fa_cache_publish(&job->key, entry, why));
    free(log);
    free(text);
    return status;
}

fa_status fa_job_obtain(const fa_job *job, fa_job_build *build, fa_cache_entry *entry, fa_reason *why)
{
    bool gone = true; /* the cache, which somebody removed meanwhile: once more */
    fa_status status = FA_ERROR;
    for (int attempt = 0; attempt < 2 && gone; attempt++) {
        FA_TRY(fa_cache_open(&job->key, entry, why));
        if (entry->hit)
            return FA_PASS;
        status = build_entry(job, build, entry, why);
        gone = status != FA_PASS && access(entry->folder, F_OK) != 0;
        if (status != FA_PASS)
            fa_cache_discard(entry);
    }
    return gone ? fa_refuse(why, FA_ERROR, "the cache was removed while %s was compiled: run again", job->source)
                : status;
}
