/* --help: the options as text, or with --json as a JSON array, from which scripts/house/manual.sh makes pages. */
#pragma once

#include "input/options.h"

char *fa_report_manual(const fa_options *options); /* malloc'd */
