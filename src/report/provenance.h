/* The record's `provenance`: what was compiled, by what, from what, and the command that does it again. */
#pragma once

#include <cjson/cJSON.h>

#include "input/runs.h"
#include "report/result.h"

void fa_report_provenance(cJSON *record, const fa_result *result, const fa_command *run);
