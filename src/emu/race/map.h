/* Tensor maps under the race detector. A copy reads its map through a proxy of its own: what threads have written
 * there reaches it by a release (fence.proxy.tensormap::generic.release or tensormap.cp_fenceproxy) after the writes,
 * then an acquire of the map's address by a thread of the copy's block. PTX ISA, "Memory Consistency Model: Proxies".
 * Without a race detector the functions do nothing. */
#pragma once

#include "emu/race/thread.h"

/* For the running thread. */
void fa_race_map_release(fa_race_map_scope scope);
void fa_race_map_acquire(const void *map, fa_race_map_scope scope);
/* What is missing between a write to the map and its use by a copy that thread `knower` issues; NULL: nothing. */
const char *fa_race_map_missing(const fa_emu_worker *worker, const fa_race_access *write, uint32_t knower,
                                uint64_t address);
void fa_race_map_forget_block(fa_race_team *team);
void fa_race_map_forget(fa_race *race);
