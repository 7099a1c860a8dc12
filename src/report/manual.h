/* --help: the options as text, or with --json as a JSON array, from which scripts/house/manual.sh makes pages. */
#ifndef FA_REPORT_MANUAL_H
#define FA_REPORT_MANUAL_H

#include "input/options.h"

char *fa_report_manual(const fa_options *options); /* malloc'd */

#endif
