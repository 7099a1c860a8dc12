/* What people read: a run in a few lines, what the program says of itself, refusals. */
#pragma once

#include "input/runs.h"
#include "report/result.h"

/* Once the device is known, for a run that is alone: what runs, and where. On the emulator also that it will take
 * minutes, and a command that does less. What is printed is not printed again at the end. */
void fa_report_begin(const fa_result *result, const fa_command *run);
/* The run in a few lines (not with --quiet; on stderr when the record goes to stdout), and on stderr why it failed.
 * dump: what a sanitizer said, for --verbose; NULL: nothing. The exit code: of the run's status, or of an error when
 * the lines of a run that passed cannot be written. */
int fa_report_run(const fa_result *result, const fa_options *options, const char *dump);
/* --help, --version, --list-kernels; the exit code. */
int fa_report_facts(const fa_options *options);
/* One line on stderr; the exit code. */
int fa_report_refusal(fa_status status, const fa_reason *why);
