/* Private to the emulator core. */
#ifndef FA_EMU_CORE_H
#define FA_EMU_CORE_H

#include "emu/emu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define FA_EMU_MAX_THREADS 1024
#define FA_EMU_MAX_WARPS 32
#define FA_EMU_BARRIERS 16

struct fa_emu_worker;

typedef struct fa_emu_copy {
    unsigned char *dst;
    const unsigned char *src;
    int32_t size, bytes;
    uint32_t group;
    const char *file;
    int32_t line;
} fa_emu_copy;

/* Pending cp.async of one thread, oldest first. */
typedef struct fa_emu_async {
    fa_emu_copy *copies;
    uint32_t count, capacity, group; /* group: number of the one being filled */
} fa_emu_async;

typedef struct fa_emu_fibre {
    fa_emu_thread thread; /* first: what the kernel sees */
    void *sp;
    unsigned char *stack;
    size_t stack_size;
    fa_emu_op *op; /* what it waits in */
    fa_emu_async async;
    void *tsan, *asan_fake_stack;
} fa_emu_fibre;

/* Lanes as bits. waiting_warp: in a warp operation; waiting_block: at a barrier. */
typedef struct fa_emu_warp_state {
    uint32_t alive, ready, waiting_warp, waiting_block;
    uint32_t syncs; /* generation of __syncwarp, for the race detector */
} fa_emu_warp_state;

typedef struct fa_emu_barrier {
    uint32_t arrived, waiting, threads; /* threads: declared by the first to come, 0: all that live */
    uint32_t generation;
    int32_t line;
    const char *file;
} fa_emu_barrier;

/* Everything shared by the workers of one launch. */
typedef struct fa_emu_launch {
    const fa_emu_image *image;
    const fa_emu_grid *grid;
    const fa_params *params;
    uint64_t blocks;
    uint32_t threads;
    uint16_t wmma_map[FA_EMU_FRAG_TYPES][FA_EMU_WARP * FA_EMU_FRAG_AB_LEN];
    atomic_ullong next_block;
    atomic_int failed;
    pthread_mutex_t lock;
    char *error;
    size_t error_size;
} fa_emu_launch;

/* One OS thread and the block it is running. */
typedef struct fa_emu_worker {
    fa_emu_launch *launch;
    fa_emu_fibre *fibres;
    uint32_t fibre_count; /* with stacks */
    fa_emu_fibre *current;
    fa_emu_thread **slot;
    void *main_sp;
    void *main_tsan, *main_asan_fake_stack;
    const void *main_stack;
    size_t main_stack_size;
    bool annotated; /* a sanitizer has to hear of every switch */
    bool stopped;   /* the block failed; back to the worker's own stack */

    fa_emu_uint3 block;
    uint32_t threads, warps, alive;
    uint32_t ready_warps; /* warps with a ready lane */
    int32_t greedy_warp;
    uint64_t random;
    unsigned char *smem_base, *smem;
    size_t smem_pad;
    fa_emu_warp_state warp[FA_EMU_MAX_WARPS];
    fa_emu_barrier barrier[FA_EMU_BARRIERS];
} fa_emu_worker;

/* The worker of the calling OS thread; a fibre never moves to another. */
extern _Thread_local fa_emu_worker *fa_emu_self;

/* emu_fibre.c: stacks and switches. */
bool fa_emu_fibres_make(fa_emu_worker *worker, uint32_t count);
void fa_emu_fibres_free(fa_emu_worker *worker);
void fa_emu_fibre_reset(fa_emu_fibre *fibre);
void fa_emu_switch(fa_emu_worker *worker, fa_emu_fibre *to, bool dying); /* to NULL: the worker's own stack */

/* emu_schedule.c */
void fa_emu_run_block(fa_emu_worker *worker, uint64_t index);
void fa_emu_fibre_main(void); /* first function on a fibre's stack */
void fa_emu_wait(fa_emu_op *op);
void fa_emu_arrive(fa_emu_op *op);
uint64_t fa_emu_random(uint64_t *state);

/* emu_warp.c, emu_mma.c: what the last to arrive computes for all lanes of the group. False: failed. */
bool fa_emu_compute(fa_emu_worker *worker, uint32_t warp, uint32_t group);
void fa_emu_ldmatrix(fa_emu_op *const op[FA_EMU_WARP]);
void fa_emu_stmatrix(fa_emu_op *const op[FA_EMU_WARP]);
void fa_emu_mma(fa_emu_op *const op[FA_EMU_WARP]);
/* False: the two copies a fragment holds of one element differ. */
bool fa_emu_wmma(const fa_emu_worker *worker, fa_emu_op *const op[FA_EMU_WARP]);
void fa_emu_wmma_maps(fa_emu_launch *launch);

/* emu_async.c */
void fa_emu_cp_async(void *dst, const void *src, int32_t size, int32_t bytes, const char *file, int32_t line);
void fa_emu_cp_async_commit(void);
void fa_emu_cp_async_wait(int32_t groups_left, int32_t everything);
/* Forgets what is pending; the first copy that was, for the report. */
const fa_emu_copy *fa_emu_async_drop(fa_emu_async *async);

/* emu_report.c. fibre or file NULL: not known. */
void fa_emu_report(fa_emu_worker *worker, const char *kind, const fa_emu_fibre *fibre, const char *file, int32_t line,
                   const char *format, ...) __attribute__((format(printf, 6, 7)));
void fa_emu_report_stuck(fa_emu_worker *worker);
_Noreturn void fa_emu_stop(fa_emu_worker *worker); /* from a fibre, after a report: the block ends here */
void fa_emu_fail(const char *kind, const char *what, const char *file, int32_t line);
void fa_emu_catch_faults(fa_emu_worker *worker, bool on);

/* emu_sanitize.c: the sanitizers' runtime, found at run time; NULL where it is not loaded. */
typedef struct fa_emu_sanitizer {
    void (*start_switch)(void **fake_stack, const void *bottom, size_t size);
    void (*finish_switch)(void *fake_stack, const void **bottom, size_t *size);
    void (*poison)(const volatile void *address, size_t size);
    void (*unpoison)(const volatile void *address, size_t size);
    void *(*tsan_current)(void);
    void *(*tsan_create)(unsigned flags);
    void (*tsan_name)(void *fibre, const char *name);
    void (*tsan_destroy)(void *fibre);
    void (*tsan_switch)(void *fibre, unsigned flags);
    void (*on_death)(void (*callback)(void));
    void (*tsan_acquire)(void *address);
    void (*tsan_release)(void *address);
} fa_emu_sanitizer;
extern fa_emu_sanitizer fa_emu_san;
void fa_emu_sanitizer_find(const fa_emu_build_info *build);

#endif
