/* The record: schema fa_bench.result/1, with --select fa_bench.selection/1 (tests/schemas/). */
#ifndef FA_REPORT_JSON_H
#define FA_REPORT_JSON_H

#include "report/result.h"

/* malloc'd; on one line with --runs. */
char *fa_report_json(const fa_result *result, const fa_command *run);

#endif
