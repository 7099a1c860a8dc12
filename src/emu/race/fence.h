/* Fences for the async proxy and for barrier objects. */
#ifndef FA_EMU_RACE_FENCE_H
#define FA_EMU_RACE_FENCE_H

#include "emu/race/thread.h"

/* A fence of the running thread; kind: FA_RACE_PROXY_SHARED and so on. */
void fa_race_note_fence(int kind);
void fa_race_fences_forget(fa_race_thread *thread);
/* Whether there is one in the epochs from `epoch` to `last`. */
bool fa_race_fence_after(const fa_race_fences *fences, uint32_t epoch, uint32_t last);
/* Whether the thread of an access, in the worker's cluster, had a fence after it that `knower` knows of. */
bool fa_race_fence_between(const fa_emu_worker *worker, const fa_race_access *access, uint32_t knower,
                           uint64_t address);

#endif
