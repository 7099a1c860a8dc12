/* What a check found, as the object "check" of a record. */
#pragma once

#include <cjson/cJSON.h>

#include "check/check.h"

void fa_report_check(cJSON *record, const fa_check_result *check, const fa_problem *problem);
