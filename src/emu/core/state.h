/* The state of a launch: its workers, their blocks, and the fibres that are CUDA threads. */
#pragma once

#include "device/findings.h"
#include "emu/core/image.h"
#include "fa_params.h"

#include <pthread.h>
#include <stdatomic.h>

#define FA_EMU_MAX_THREADS 1024
#define FA_EMU_MAX_WARPS 32
#define FA_EMU_BARRIERS 16
#define FA_EMU_MAX_CLUSTER 16 /* blocks */
#define FA_EMU_CANARY 0xa5    /* the bytes on both sides of a block's shared memory */

struct fa_emu_worker;
struct fa_race;
struct fa_race_team;
struct fa_emu_pending;
struct fa_race_known;
struct fa_emu_calls;

typedef struct fa_emu_copy {
    unsigned char *dst;
    const unsigned char *src;
    int32_t size, bytes;
    uint32_t group;
    const char *file;
    int32_t line;
    const void *pc; /* where it was issued, for the race detector */
} fa_emu_copy;

/* The cp.async copies of one thread that it has not waited for yet, oldest first. */
typedef struct fa_emu_async {
    fa_emu_copy *copies;
    uint32_t count, capacity, group; /* group: number of the one being filled */
} fa_emu_async;

typedef struct fa_emu_fibre {
    fa_emu_thread thread; /* first: what the kernel sees */
    void *sp;
    unsigned char *stack;
    size_t stack_size;
    fa_emu_op *op; /* the operation it waits in, or NULL */
    fa_emu_async async;
    void *asan_fake_stack;
    uint64_t cluster_phase; /* phase of the cluster's barrier in which it arrived last */
    bool cluster_arrived;   /* and has not waited since */
} fa_emu_fibre;

/* A bit for each lane. ready: it can run; waiting_warp: it waits in an operation of the warp; waiting_block: at a
 * barrier; suspended: FA_EMU_PHASE. */
typedef struct fa_emu_warp_state {
    uint32_t alive, ready, waiting_warp, waiting_block, suspended;
} fa_emu_warp_state;

typedef struct fa_emu_barrier {
    uint32_t arrived, waiting, threads; /* threads: as the first thread to arrive declared; 0: all running ones */
    int32_t line;
    const char *file;
} fa_emu_barrier;

/* Everything shared by the workers of one launch. */
typedef struct fa_emu_launch {
    const fa_emu_image *image;
    const fa_emu_grid *grid;
    const fa_params *params;
    uint64_t blocks;
    uint32_t threads, cluster; /* of a block; blocks of a cluster */
    bool explicit_cluster;     /* the launch or the kernel asks for clusters */
    uint16_t wmma_map[FA_EMU_FRAG_TYPES][FA_EMU_WARP * FA_EMU_FRAG_AB_LEN];
    atomic_ullong next_cluster;
    atomic_int failed;
    pthread_mutex_t lock;
    char fault[FA_FAULT_SIZE]; /* class of the failure */
    char *error;
    size_t error_size;
    struct fa_race *race; /* NULL: no race detector; else it also has what race/ calls in a later room: */
    void (*registers_touched)(struct fa_emu_worker *worker, uint64_t address, size_t size, bool write, const void *pc);
} fa_emu_launch;

/* After so many rounds for each block in which threads only polled, a cluster waits for what another one does, or for
 * nothing that will be. */
enum { FA_EMU_NEVER = 2048 };

/* The blocks that run at the same time on one OS thread: a cluster, or one block alone. */
typedef struct fa_emu_cluster {
    struct fa_emu_worker *block[FA_EMU_MAX_CLUSTER];
    uint32_t count;
    bool paused, stopped;                     /* see fa_emu_worker */
    uint64_t phase;                           /* current phase of its barrier (barrier.cluster) */
    uint32_t arrived;                         /* threads */
    struct fa_race_known *released, *reached; /* by the previous phase: released; reached */
    uint64_t random;
    uint32_t idle; /* rounds in which threads only polled */
} fa_emu_cluster;

/* A block and its threads. */
typedef struct fa_emu_worker {
    fa_emu_launch *launch;
    fa_emu_fibre *fibres;
    uint32_t fibre_count; /* fibres with a stack */
    fa_emu_fibre *current;
    fa_emu_slots slot;
    void *main_sp;
    void *main_asan_fake_stack;
    const void *main_stack;
    size_t main_stack_size;
    bool annotated; /* every switch is announced to a sanitizer */
    bool stopped;   /* the block failed: the worker returns to its own stack */
    bool paused;    /* the block waits for another one, in the thread `resume` */
    fa_emu_fibre *resume;
    bool over;                  /* all its threads have ended */
    bool begun;                 /* some thread has run */
    bool stuck, forced;         /* no thread can run; a pending copy may be completed for that */
    unsigned char *static_copy; /* its __shared__ variables while another block runs */
    fa_emu_cluster *cluster;
    uint32_t rank, rounds;      /* rank: in its cluster; rounds: until another block of it runs */
    uint32_t turns;             /* how often its threads let others of the block run */
    uint32_t idle_rounds;       /* rounds in a row in which its threads only polled */
    uint64_t waits;             /* how often the next thread was chosen */
    struct fa_emu_calls *asked; /* the running thread says where it waits (calls.h) */

    fa_emu_uint3 block;
    uint32_t block_number, seat; /* seat: its number among the blocks that have started */
    struct fa_race_team *race;
    struct fa_emu_pending *pending; /* NULL: none */
    uint32_t threads, warps, alive;
    uint32_t ready_warps; /* warps with a ready lane */
    int32_t greedy_warp;
    uint64_t random;
    unsigned char *smem_base, *smem;
    size_t smem_pad, smem_behind; /* known bytes before and behind it */
    fa_emu_warp_state warp[FA_EMU_MAX_WARPS];
    uint32_t waiting_cluster[FA_EMU_MAX_WARPS]; /* lanes that wait in barrier.cluster */
    fa_emu_barrier barrier[FA_EMU_BARRIERS];
} fa_emu_worker;

/* The worker of the calling OS thread; a fibre never moves to another. */
extern _Thread_local fa_emu_worker *fa_emu_self;

void fa_emu_make_ready(fa_emu_worker *worker, uint32_t warp, uint32_t lanes);
/* waiting: lanes of each warp. Those that are suspended (FA_EMU_PHASE) go on, and none waits any more. */
void fa_emu_wake(fa_emu_worker *worker, uint32_t waiting[FA_EMU_MAX_WARPS]);
/* How many threads of a cluster have not exited. */
uint32_t fa_emu_cluster_living(const fa_emu_cluster *cluster);
