/* --list-kernels: the registry as text, or with --json as a JSON array. */
#ifndef FA_REPORT_REGISTRY_H
#define FA_REPORT_REGISTRY_H

#include "input/registry.h"

/* FA_ERROR when the file of --json cannot be written. */
fa_status fa_report_registry(const fa_options *options, fa_reason *why);

#endif
