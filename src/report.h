/* The only stage that prints results: text for people, one JSON object for programs. */
#ifndef FA_REPORT_H
#define FA_REPORT_H

#include "result.h"

/* The record, schema fa_bench.result/1, as malloc'd JSON text. */
char *fa_report_json(const fa_result *result, const fa_options *options, int argc, char *const argv[]);
/* Prints and writes what the options ask for; the run's exit code (6 when the record cannot be written). */
int fa_report(const fa_result *result, const fa_options *options, int argc, char *const argv[]);
void fa_report_help(void);
void fa_report_version(void);
int fa_report_kernels(const fa_options *options); /* --list-kernels; with --json the registry as JSON */
int fa_report_refusal(fa_status status, const fa_reason *why);

#endif
