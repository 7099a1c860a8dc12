/* Where the records go (--json). The file of --runs, and standard output, get a line as soon as a run ends. */
#pragma once

#include "report/result.h"

typedef struct fa_records {
    int file;  /* -1: no --json, or the file of a single run, which is replaced as a whole */
    bool lost; /* a record could not be written: do not start the runs that are left */
} fa_records;

/* FA_USAGE when --json names a file that cannot be written, or --json or --cubin one that a run reads. Empties the file
 * of --runs. */
fa_status fa_records_begin(const fa_options *options, const fa_runs *runs, fa_records *records, fa_reason *why);
/* Writes the record of a run; FA_ERROR when it cannot be written. Nothing without --json. */
fa_status fa_records_write(const fa_result *result, const fa_command *run, fa_records *records, fa_reason *why);
