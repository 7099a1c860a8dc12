/* The only stage that prints results: text for people, one JSON object for programs. */
#ifndef FA_REPORT_H
#define FA_REPORT_H

#include "report/result.h"
#include "input/runs.h"

/* Where the records go: the file of --runs gets a line as soon as a run ends, standard output too. */
typedef struct fa_records {
    int file;  /* -1: no --json, or the file of a single run, which is replaced as a whole */
    bool lost; /* a record could not be written: the runs that are left are not worth doing */
} fa_records;

/* The record, schema fa_bench.result/1 (tests/fa_bench.result.schema.json), as malloc'd JSON text; on one line with --runs. */
char *fa_report_json(const fa_result *result, const fa_command *run);
/* The run in a few lines for people, malloc'd. */
char *fa_report_text(const fa_result *result, const fa_options *options);
/* Prints and writes what the options ask for; the run's exit code (6 when the record cannot be written). */
int fa_report(const fa_result *result, const fa_command *run, fa_records *records);

/* FA_USAGE when --json names a file that cannot be written. Empties it for the records of --runs; a single run's is replaced
 * when that has ended. */
fa_status fa_report_begin(const fa_options *options, fa_records *records, fa_reason *why);
/* --help, --version, --list-kernels (with --json: the registry as JSON); the exit code. */
int fa_report_facts(const fa_options *options);
/* One line on stderr; the exit code. */
int fa_report_refusal(fa_status status, const fa_reason *why);

#endif
