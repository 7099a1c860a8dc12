/* What a kernel under the race detector does to memory. For the running thread; nothing happens outside a kernel. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "emu/race/thread.h"

/* kind: FA_RACE_WRITE and so on; pc: the return address in the kernel. Before the access. */
void fa_race_touch(const volatile void *address, size_t size, int kind, const void *pc);
/* An access by an actor or by a thread; address: in the shadow. */
void fa_race_touch_by(fa_emu_worker *worker, const fa_race_actor *by, uint64_t address, size_t size, int kind,
                      const void *pc);
/* Records the current thread's last plain read. Recording waits until the thread's next access, because the read may be
 * the guess that starts a loop around atomicCAS (CUDA guide): the atomicCAS checks it, so it is no race. */
void fa_race_settle(fa_emu_worker *worker);
/* Before a compare-and-exchange: if the last access read `expected` there, it was such a guess. */
void fa_race_checks_guess(const volatile void *address, const void *expected, size_t size);
/* Before an atomic or volatile load or exchange: a thread that waits for memory to change lets others run. */
void fa_race_take_turns(void);
/* Before a load or exchange by an atomic or volatile access, and after a store by one. order: as __ATOMIC_ACQUIRE. */
void fa_race_observe(const volatile void *address, int order);
void fa_race_publish(const volatile void *address, int order, bool exchange);
void fa_race_fence(bool block_scope);
/* The following atomics have block scope, or device scope again. */
void fa_race_scope(bool block_scope);
bool fa_race_scope_is_block(void);
/* The thread had a fence: its next volatile write is a release. */
bool fa_race_fenced(void);
/* pc of the last access; NULL outside a kernel. */
const void *fa_race_last_pc(void);
void fa_race_enter(const void *pc);
void fa_race_leave(void);
