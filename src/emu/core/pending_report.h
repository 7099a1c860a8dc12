/* What is under way in a block, in words. */
#ifndef FA_EMU_CORE_PENDING_REPORT_H
#define FA_EMU_CORE_PENDING_REPORT_H

#include "emu/core/pending.h"

/* What the barriers and the pool are at, for the report of a deadlock. Returns its length. */
size_t fa_emu_pending_explain(const fa_emu_worker *worker, char *text, size_t size);

#endif
