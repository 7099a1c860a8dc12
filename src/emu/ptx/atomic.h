/* Atomic loads, stores and read-modify-writes of PTX; through the race detector's functions while it runs. */
#pragma once

#include "emu/ptx/state.h"

uint64_t fa_emu_ptx_atomic_load(const fa_emu_ptx_run *run, const void *at, uint32_t size, int order);
void fa_emu_ptx_atomic_store(const fa_emu_ptx_run *run, void *at, uint32_t size, uint64_t bits, int order);
/* Applies atom or red to memory with b (cas: compares with b, writes c); returns the old value. */
uint64_t fa_emu_ptx_atomic(const fa_emu_ptx_run *run, void *at, uint32_t size, uint64_t b, uint64_t c, int order);
