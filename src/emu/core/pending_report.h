/* The pending work of a block as text. */
#ifndef FA_EMU_CORE_PENDING_REPORT_H
#define FA_EMU_CORE_PENDING_REPORT_H

#include "emu/core/pending.h"

/* The state of the barriers and of the register pool, for the report of a deadlock. Returns the length. */
size_t fa_emu_pending_explain(const fa_emu_worker *worker, char *text, size_t size);

#endif
