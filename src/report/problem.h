/* The problem as a part of the record, and what a candidate says that it serves and needs. Private to report/. */
#pragma once

#include <cjson/cJSON.h>

#include "run/candidate.h"

void fa_report_problem(cJSON *record, const fa_problem *problem, const fa_options *options); /* "problem" */
/* "serves" and "needs": words of FA_FEATURES_WORDS and FA_NEEDS_WORDS. */
void fa_report_contract(cJSON *object, const fa_candidate_record *candidate);
