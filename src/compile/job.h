/* What every compiler of this stage shares: a list of options, the text it is keyed and reported by, and the sentences about
 * a kernel file that lacks something. */
#ifndef FA_COMPILE_JOB_H
#define FA_COMPILE_JOB_H

#include "compile/compile.h"

#define FA_JOB_OPTIONS_MAX 40
#define FA_JOB_OPTION_LENGTH 640

/* One compilation: a source and the options that decide its code. */
typedef struct fa_job {
    const char *source;
    char compiler_name[64];
    char options[FA_JOB_OPTIONS_MAX][FA_JOB_OPTION_LENGTH];
    int count;
    fa_digest source_digest, key;
} fa_job;

void fa_job_add(fa_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fa_job_add_defines(fa_job *job, const fa_spec *spec);
void fa_job_add_source_folder(fa_job *job); /* -I of the folder the source lies in */
/* Key of everything that can change the code: ABI, source, compiler, options; where the files lie does not. `more` adds to it. */
void fa_job_make_key(fa_job *job, const char *more);
/* Compiler, options (without folders) and source digest, as the record has them. */
void fa_job_describe(const fa_job *job, fa_module *module);

/* FA_ERROR, saying what is missing, unless the object has the entry point and its constants are of this ABI. */
fa_status fa_job_need_symbols(const fa_spec *spec, bool has_entry, bool has_info, fa_reason *why);
/* FA_INFEASIBLE when threads or shared memory are over the limit of the target. */
fa_status fa_job_check_block(const fa_spec *spec, const fa_arch_limits *limits, int32_t threads, int32_t smem_bytes,
                             fa_reason *why);

#endif
