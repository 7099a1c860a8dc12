/* --list-kernels: the registry as text, or with --json as a JSON array. */
#pragma once

#include "input/registry.h"

/* *text: malloc'd. FA_USAGE when --source names a file that cannot be one, or the options do not fit it. */
fa_status fa_report_registry(const fa_options *options, char **text, fa_reason *why);
