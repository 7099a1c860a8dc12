/* The record: schema fa_bench.result/1, with --select fa_bench.selection/1 (tests/schemas/). */
#pragma once

#include "report/result.h"

/* malloc'd; on one line with --runs. */
char *fa_report_json(const fa_result *result, const fa_command *run);
