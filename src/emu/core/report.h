/* Failures of a kernel as text. A launch keeps the first. */
#pragma once

#include "base/status.h"
#include "emu/core/state.h"

/* Classes of failure, the first words of a report: the kernel is wrong, but in the last four. */
#define FA_EMU_DIVERGENT_BARRIER "divergent barrier"
#define FA_EMU_DEADLOCK "deadlock"
#define FA_EMU_PARTIAL_WARP "partial warp"
#define FA_EMU_LANE_ABSENT "absent lane"
#define FA_EMU_ABSENT_BLOCK "absent block"
#define FA_EMU_BAD_MASK "bad mask"
#define FA_EMU_BAD_BARRIER "bad barrier"
#define FA_EMU_MISALIGNED "misaligned"
#define FA_EMU_SMEM_OVERFLOW "shared memory overflow"
#define FA_EMU_FAULT "illegal address"
#define FA_EMU_DIVISION "division by zero"
#define FA_EMU_TRAP "trap"
#define FA_EMU_RACE "data race" /* its report is the race detector's */
#define FA_EMU_FRAGMENT "fragment"
#define FA_EMU_BAD_MBARRIER "bad mbarrier"
#define FA_EMU_PHASE_OVERRUN "phase overrun"
#define FA_EMU_TX_COUNT "transaction count"
#define FA_EMU_BAD_MAP "bad tensor map"
#define FA_EMU_BULK_LEFT "bulk copy left"
#define FA_EMU_WGMMA "bad wgmma"
#define FA_EMU_WGMMA_FENCE "missing wgmma.fence"
#define FA_EMU_WGMMA_LEFT "wgmma left"
#define FA_EMU_BAD_REGISTERS "bad setmaxnreg"
#define FA_EMU_TIMEOUT "time-out"
#define FA_EMU_COOPERATIVE "cooperative launch"
#define FA_EMU_NOT_MODELLED "not modelled" /* a GPU may run it */
#define FA_EMU_NO_MEMORY "no memory"

/* FA_WRONG, FA_TIMEOUT, FA_INFEASIBLE: no launch of the bench can, or FA_NOT_RUN: the kernel is not to blame. */
fa_status fa_emu_status_of(const char *kind);
/* Keeps the failure unless the launch has an earlier one. */
void fa_emu_publish(fa_emu_launch *launch, const char *kind, const char *text);
/* Reports a failure; the block goes on. fibre or file NULL: not known. */
void fa_emu_report(fa_emu_worker *worker, const char *kind, const fa_emu_fibre *fibre, const char *file, int32_t line,
                   const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Reports that no thread can run, and where each of them waits. */
void fa_emu_report_stuck(fa_emu_worker *worker);
void fa_emu_report_timeout(fa_emu_worker *worker);
/* Reports a failure of the running fibre and ends the block. */
void fa_emu_fail(const char *kind, const char *what, const char *file, int32_t line);
/* On: a fault of the kernel is reported and ends the block. */
void fa_emu_catch_faults(fa_emu_worker *worker, bool on);
