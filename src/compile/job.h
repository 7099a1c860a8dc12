/* One compilation, whatever the compiler: its options, the key of its cache entry, and the checks of its result. */
#pragma once

#include "compile/cache.h"
#include "compile/paths.h"
#include "compile/module.h"
#include "compile/device_source.h"
#include "input/spec.h"

#define FA_JOB_OPTIONS_MAX 112
#define FA_JOB_OPTION_LENGTH 1100

/* A source file and the options that decide its code. */
typedef struct fa_job {
    const char *source;
    char compiler_name[64];
    char options[FA_JOB_OPTIONS_MAX][FA_JOB_OPTION_LENGTH];
    bool is_folder[FA_JOB_OPTIONS_MAX]; /* where our own or the toolkit's headers lie: no part of the key */
    int count;
    const char *const *links; /* arguments after the source, ending with NULL; NULL: none */
    fa_headers headers;       /* those that the kernel needs */
    fa_list folders;          /* where its includes are found, to be hashed with it: --include, and those headers */
    fa_digest source_digest, source_stamp, key;
    char *own_headers;              /* fa_source_files.own */
    fa_device_source device_source; /* the source with host code left out */
} fa_job;

void fa_job_free(fa_job *job);

/* Sets `headers` and `folders`. FA_NOT_RUN when headers that the kernel needs are not there. */
fa_status fa_job_find_headers(fa_job *job, const fa_spec *spec, fa_reason *why);

/* Sets `source_digest` and `source_stamp`. */
fa_status fa_job_read_source(fa_job *job, fa_reason *why);

void fa_job_add(fa_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fa_job_add_words(fa_job *job, const char *words); /* an option each, with blanks between them */
void fa_job_add_defines(fa_job *job, const fa_spec *spec);
void fa_job_add_folder(fa_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fa_job_add_source_folder(fa_job *job);                    /* -I of the folder the source lies in */
void fa_job_add_includes(fa_job *job, const fa_spec *spec);    /* -I of `folders` */
void fa_job_options(const fa_job *job, const char *options[]); /* all `count` of them, for a command line */
/* The key covers all that can change the code: ABI, source, compiler, options, and `more`. Folders that were added as
 * such are left out. */
void fa_job_make_key(fa_job *job, const char *more);

/* Compiles the job's source (`text` is its content) into `folder`. *log: the compiler's output, malloc'd. */
typedef fa_status fa_job_build(const fa_job *job, const char *text, const char *folder, char **log, fa_reason *why);
/* The job's cache entry; built and published, with its log and source, when the cache does not have it. FA_ERROR when a
 * file of the source was written during the build: the compiler may not have read what the key covers. */
fa_status fa_job_obtain(const fa_job *job, fa_job_build *build, fa_cache_entry *entry, fa_reason *why);

/* Compiler, options (without folders) and source digest, as the record has them. */
void fa_job_describe(const fa_job *job, fa_module *module);
/* FA_ERROR, saying what is missing, unless the object has the entry point and exports constants of this ABI. */
fa_status fa_job_need_symbols(const fa_spec *spec, bool has_entry, bool has_info, fa_reason *why);
/* FA_ERROR when a constant the kernel exports is negative or unknown. */
fa_status fa_job_check_info(const fa_spec *spec, const fa_kernel_info *info, fa_reason *why);
/* Of a file that launches by lines: FA_ERROR without a plan, FA_INFEASIBLE with a launch that no device takes. */
fa_status fa_job_check_plan(const fa_spec *spec, const fa_arch_limits *limits, const fa_plan *plan, fa_reason *why);
/* FA_INFEASIBLE when threads or shared memory exceed the limit of the target. */
fa_status fa_job_check_block(const fa_spec *spec, const fa_arch_limits *limits, int32_t threads, int32_t smem_bytes,
                             fa_reason *why);
