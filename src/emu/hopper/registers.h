/* Registers of wgmma under the race detector: a thread must not access accumulators and A between a product and the
 * wait for it, and needs wgmma.fence between its own accesses and a product. Registers are the kernel's variables here,
 * on the threads' stacks. */
#pragma once

#include "emu/core/pending.h"
#include "emu/ptx/state.h"

typedef struct fa_emu_registers fa_emu_registers;

/* The running thread reads or writes its stack. */
void fa_emu_registers_touched(fa_emu_worker *worker, uint64_t address, size_t size, bool write, const void *pc);
/* An asm statement has an output on the stack (src/emu/include/fa_emu_ptx.h); its instructions may not write it. */
void fa_emu_race_operand(const fa_emu_ptx_site *site, int number, void *to, unsigned long size, void *pc);
/* The running thread had a wgmma.fence. */
void fa_emu_registers_fenced(void);
/* Before all lanes of a warp issue a product. False: a lane has accessed its registers since its last fence, and that
 * is reported. */
bool fa_emu_registers_ready(fa_emu_worker *worker, uint32_t warp, const fa_emu_ptx_run *const lane[FA_EMU_WARP],
                            const fa_ptx_instr *product);
/* The product has begun, with these registers of A; its chain ends. */
void fa_emu_registers_taken(fa_emu_worker *worker, uint32_t warp, const fa_emu_ptx_run *const lane[FA_EMU_WARP],
                            const fa_ptx_instr *product, uint32_t number);
/* Products up to number `end` are complete. */
void fa_emu_registers_released(uint32_t warp, uint32_t end);
