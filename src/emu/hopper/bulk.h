/* Bulk copies: PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy", cp.async.bulk and its tensor
 * forms; st.async and red.async, which use the generic proxy. */
#pragma once

#include "emu/core/pending.h"
#include "emu/ptx/state.h"

void fa_emu_ptx_bulk(fa_emu_ptx_run *run);
void fa_emu_ptx_send(const fa_emu_ptx_run *run); /* st.async, red.async */

/* Moves `rows` rows of copy number `index` (0: all that are left). A complete copy is removed. */
void fa_emu_bulk_move(fa_emu_worker *worker, uint32_t index, uint32_t rows);
