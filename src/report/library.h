/* The record's `library`. */
#pragma once

#include <cjson/cJSON.h>

#include "run/candidate.h"

/* What a library says of itself; null for a kernel that is compiled here, and until the library was asked. */
void fa_report_library(cJSON *record, const fa_candidate_record *candidate);
