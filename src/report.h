/* The only stage that prints results: text for people, one JSON object for programs. */
#ifndef FA_REPORT_H
#define FA_REPORT_H

#include "result.h"

/* The record, schema fa_bench.result/1 (tests/fa_bench.result.schema.json), as malloc'd JSON text. */
char *fa_report_json(const fa_result *result, const fa_options *options, int argc, char *const argv[]);
/* The run in a few lines for people, malloc'd. */
char *fa_report_text(const fa_result *result, const fa_options *options);
/* Prints and writes what the options ask for; the run's exit code (6 when the record cannot be written). */
int fa_report(const fa_result *result, const fa_options *options, int argc, char *const argv[]);

/* FA_USAGE when --json names a file that cannot be written. */
fa_status fa_report_writable(const fa_options *options, fa_reason *why);
/* --help, --version, --list-kernels (with --json: the registry as JSON); the exit code. */
int fa_report_facts(const fa_options *options);
/* One line on stderr; the exit code. */
int fa_report_refusal(fa_status status, const fa_reason *why);

#endif
