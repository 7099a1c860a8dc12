/* A lock on a GPU between processes: any number check their results at once, one alone measures time. */
#pragma once

#include <stdbool.h>

typedef enum { FA_GPU_LOCK_NONE, FA_GPU_LOCK_SHARED, FA_GPU_LOCK_EXCLUSIVE } fa_gpu_lock_mode;

/* FA_GPU_GATE names a file: while somebody has it locked (flock) for himself, nobody here gets the lock.
 *
 * Takes the lock in this mode and gives back the mode held before; waits while other processes hold it. The lock ends
 * with the process. `bus_id`: the GPU's PCI address; empty (the emulator): does nothing. */
void fa_gpu_lock(const char *bus_id, fa_gpu_lock_mode mode);

/* Whether no process of an evaluation runs anything on the GPU yet. */
bool fa_gpu_gate_is_closed(const char *bus_id);

/* Gives back what is held, and says whether this process would have to wait for FA_GPU_LOCK_SHARED now. */
bool fa_gpu_lock_is_taken(const char *bus_id);

/* Seconds this process has waited for the lock so far. */
double fa_gpu_lock_waited_s(void);
