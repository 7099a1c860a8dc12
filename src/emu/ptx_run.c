#include "emu/ptx_run.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu/core/preload.h"
#include "emu/core/report.h"
#include "emu/hopper/bulk.h"
#include "emu/hopper/map_proxy.h"
#include "emu/hopper/mbarrier.h"
#include "emu/hopper/pool.h"
#include "emu/hopper/wgmma.h"
#include "emu/ptx/group.h"
#include "emu/ptx/memory.h"
#include "emu/ptx/state.h"
#include "emu/race/memory.h"
#include "emu/race/state.h"
#include "emu/race/thread.h"
#include "ptx/parse.h"
#include "ptx/scalar.h"

/* PTX of sm_90a: barrier objects, bulk copies, products of warpgroups, setmaxnreg. */
static void run_hopper(fa_emu_ptx_run *run)
{
    switch (run->instr->op) {
    case FA_PTX_OP_MBARRIER:
        fa_emu_ptx_mbarrier(run);
        break;
    case FA_PTX_OP_WGMMA:
        fa_emu_ptx_wgmma(run);
        break;
    case FA_PTX_OP_TENSORMAP:
        fa_emu_ptx_tensormap(run);
        break;
    case FA_PTX_OP_SETMAXNREG:
        fa_emu_ptx_setmaxnreg(run);
        break;
    case FA_PTX_OP_ST:
    case FA_PTX_OP_RED:
        fa_emu_ptx_send(run);
        break;
    default:
        if (fa_ptx_has(run->instr, FA_PTX_W_MBARRIER_))
            fa_emu_mbarrier_copies_arrive(run);
        else
            fa_emu_ptx_bulk(run);
    }
}

/* A fence of the family FA_PTX_FENCES for a proxy or for barrier objects. */
static void proxy_fence(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    const bool global = fa_ptx_has(i, FA_PTX_W_GLOBAL);
    const bool shared = fa_ptx_has(i, FA_PTX_W_SHARED_CTA) || fa_ptx_has(i, FA_PTX_W_SHARED_CLUSTER);
    if (fa_ptx_has(i, FA_PTX_W_MBARRIER_INIT)) {
        fa_race_note_fence(FA_RACE_BARRIER_INIT);
        return;
    }
    if (fa_ptx_has(i, FA_PTX_W_TENSORMAP_GENERIC))
        fa_emu_ptx_map_fence(run);
    /* A release of one thread; an acquire does not cover fences of other threads. */
    if (fa_ptx_has(i, FA_PTX_W_ASYNC_GENERIC) && fa_ptx_has(i, FA_PTX_W_RELEASE))
        fa_race_note_fence(FA_RACE_PROXY_SHARED);
    if (!fa_ptx_has(i, FA_PTX_W_ASYNC))
        return;
    if (shared || !global)
        fa_race_note_fence(FA_RACE_PROXY_SHARED);
    if (global || !shared)
        fa_race_note_fence(FA_RACE_PROXY_GLOBAL);
}

/* Programs by text: parsed once, kept for the process. */
typedef struct known {
    struct known *next;
    char *text;
    int operands;
    const fa_ptx_program *program;
} known;
static known *programs;
static pthread_mutex_t programs_lock = PTHREAD_MUTEX_INITIALIZER;

static const known *learn(const char *text, int operands)
{
    fa_ptx_error error;
    const fa_ptx_program *program = fa_ptx_parse(text, operands, &error);
    known *k = program != NULL ? malloc(sizeof *k) : NULL;
    if (k == NULL)
        return NULL;
    *k = (known){programs, strdup(text), operands, program};
    programs = k;
    return k;
}

static const fa_ptx_program *program_of(fa_emu_ptx_site *site)
{
    const fa_ptx_program *program = __atomic_load_n(&site->program, __ATOMIC_ACQUIRE);
    if (program != NULL)
        return program;
    pthread_mutex_lock(&programs_lock);
    const known *k = programs;
    while (k != NULL && (k->operands != site->operands || strcmp(k->text, site->text) != 0))
        k = k->next;
    if (k == NULL)
        k = learn(site->text, site->operands);
    pthread_mutex_unlock(&programs_lock);
    if (k == NULL) /* it was parsed when the kernel was compiled */
        fa_emu_fail(FA_EMU_NOT_MODELLED, "this PTX cannot be read", site->at.file, site->at.line);
    __atomic_store_n(&site->program, k->program, __ATOMIC_RELEASE);
    return k->program;
}

static uint64_t lanemask(fa_ptx_special which, uint32_t lane)
{
    const uint32_t self = 1u << lane, below = self - 1;
    return which == FA_PTX_SREG_LANEMASK_EQ   ? self
           : which == FA_PTX_SREG_LANEMASK_LE ? below | self
           : which == FA_PTX_SREG_LANEMASK_LT ? below
           : which == FA_PTX_SREG_LANEMASK_GE ? ~below
                                              : ~(below | self);
}

static uint64_t clocks(fa_ptx_special which)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    const uint64_t now = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    const bool low = which == FA_PTX_SREG_CLOCK || which == FA_PTX_SREG_GLOBALTIMER_LO,
               high = which == FA_PTX_SREG_CLOCK_HI || which == FA_PTX_SREG_GLOBALTIMER_HI;
    return low ? (uint32_t)now : high ? now >> 32 : now;
}

static uint64_t of_three(fa_emu_uint3 all, int which) { return which == 0 ? all.x : which == 1 ? all.y : all.z; }

/* Clusters lie along x. */
static uint64_t of_cluster(const fa_emu_worker *worker, fa_ptx_special which)
{
    const fa_emu_thread *t = &worker->current->thread;
    const uint32_t size = t->cluster_size;
    /* %cluster_ctaid.y, .z are 0 */
    const uint64_t values[] = {[FA_PTX_SREG_CLUSTERID_X] = t->block.x / size,
                               [FA_PTX_SREG_CLUSTERID_Y] = t->block.y,
                               [FA_PTX_SREG_CLUSTERID_Z] = t->block.z,
                               [FA_PTX_SREG_NCLUSTERID_X] = t->grid_dim.x / size,
                               [FA_PTX_SREG_NCLUSTERID_Y] = t->grid_dim.y,
                               [FA_PTX_SREG_NCLUSTERID_Z] = t->grid_dim.z,
                               [FA_PTX_SREG_CLUSTER_CTAID_X] = t->cluster_rank,
                               [FA_PTX_SREG_CLUSTER_CTARANK] = t->cluster_rank,
                               [FA_PTX_SREG_CLUSTER_NCTAID_X] = size,
                               [FA_PTX_SREG_CLUSTER_NCTARANK] = size,
                               [FA_PTX_SREG_CLUSTER_NCTAID_Y] = 1,
                               [FA_PTX_SREG_CLUSTER_NCTAID_Z] = 1,
                               [FA_PTX_SREG_IS_EXPLICIT_CLUSTER] = worker->launch->explicit_cluster};
    return values[which];
}

static uint64_t special(fa_ptx_special which)
{
    const fa_emu_worker *worker = fa_emu_self;
    const fa_emu_thread *t = &worker->current->thread;
    if (which <= FA_PTX_SREG_TID_Z)
        return of_three(t->thread, which - FA_PTX_SREG_TID_X);
    if (which <= FA_PTX_SREG_NTID_Z)
        return of_three(t->block_dim, which - FA_PTX_SREG_NTID_X);
    if (which <= FA_PTX_SREG_CTAID_Z)
        return of_three(t->block, which - FA_PTX_SREG_CTAID_X);
    if (which <= FA_PTX_SREG_NCTAID_Z)
        return of_three(t->grid_dim, which - FA_PTX_SREG_NCTAID_X);
    if (which >= FA_PTX_SREG_LANEMASK_EQ && which <= FA_PTX_SREG_LANEMASK_GT)
        return lanemask(which, t->lane) & 0xffffffff;
    if (which >= FA_PTX_SREG_CLOCK && which <= FA_PTX_SREG_GLOBALTIMER_HI)
        return clocks(which);
    if (which >= FA_PTX_SREG_CLUSTERID_X && which <= FA_PTX_SREG_IS_EXPLICIT_CLUSTER)
        return of_cluster(worker, which);
    switch (which) {
    case FA_PTX_SREG_LANEID:
        return t->lane;
    case FA_PTX_SREG_WARPID:
        return t->warp;
    case FA_PTX_SREG_NWARPID:
        return worker->warps;
    case FA_PTX_SREG_NSMID:
        return 1;
    case FA_PTX_SREG_DYNAMIC_SMEM_SIZE:
        return t->smem_bytes;
    case FA_PTX_SREG_TOTAL_SMEM_SIZE:
        return t->smem_bytes + fa_emu_static_bytes(worker->launch->image->build);
    default: /* one multiprocessor, one grid */
        return 0;
    }
}

static void flow(const fa_emu_ptx_run *run)
{
    if (run->instr->op == FA_PTX_OP_TRAP || run->instr->op == FA_PTX_OP_BRKPT)
        fa_emu_ptx_fail(run, FA_EMU_TRAP, "the kernel gives up");
    fa_emu_ptx_meet(run, run->instr->op == FA_PTX_OP_EXIT ? FA_EMU_EXIT : FA_EMU_YIELD, run->instr->name);
}

static void step(fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    const char *why = "";
    const bool orders = i->family == FA_PTX_FENCES || i->family == FA_PTX_GROUP || i->family == FA_PTX_ASYNC;
    if (orders && fa_emu_self->race != NULL)
        fa_race_settle(fa_emu_self); /* reads before the fence are recorded before it */
    switch ((fa_ptx_family)i->family) {
    case FA_PTX_READ_SPECIAL:
        fa_ptx_out(i, run->r, special((fa_ptx_special)i->special));
        break;
    case FA_PTX_SPACE:
    case FA_PTX_MEMORY:
        fa_emu_ptx_memory(run);
        break;
    case FA_PTX_FENCES:
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (fa_ptx_has(i, FA_PTX_W_PROXY) || fa_ptx_has(i, FA_PTX_W_MBARRIER_INIT))
            proxy_fence(run);
        else
            fa_race_fence(fa_ptx_has(i, FA_PTX_W_CTA));
        break;
    case FA_PTX_FLOW:
        flow(run);
        break;
    case FA_PTX_GROUP:
    case FA_PTX_MATRIX:
        fa_emu_ptx_group(run);
        break;
    case FA_PTX_ASYNC:
        run_hopper(run);
        break;
    case FA_PTX_NOTHING:
        if (i->op == FA_PTX_OP_CREATEPOLICY)
            fa_ptx_out(i, run->r, 0);
        break;
    default:
        if (!fa_ptx_scalar(i, run->r, &run->carry, &why))
            fa_emu_ptx_fail(run, FA_EMU_DIVISION, "%s", why);
    }
}

static void execute(fa_emu_ptx_run *run, const fa_ptx_program *program)
{
    for (int at = 0; at < program->count;) {
        const fa_ptx_instr *i = run->instr = &program->instr[at++];
        if (i->guard >= 0 && (run->r[i->guard] != 0) == i->guard_negated)
            continue;
        if (i->op != FA_PTX_OP_BRA) {
            step(run);
        } else {
            if (i->target < at)
                fa_emu_ptx_meet(run, FA_EMU_YIELD, i->name); /* a loop may wait for other threads */
            at = i->target;
        }
    }
}

/* The core is not instrumented: its frames may lie where earlier, deeper frames of the kernel left poisoned bytes. */
static void forget_deeper_frames(void)
{
    enum { REACH = 24 << 10 };
    const fa_emu_fibre *fibre = fa_emu_self->current;
    unsigned char *frame = __builtin_frame_address(0);
    const size_t room = (size_t)(frame - fibre->stack), size = room < REACH ? room : REACH;
    fa_emu_san.unpoison(frame - size, size);
}

void fa_emu_ptx(fa_emu_ptx_site *site, const fa_emu_place *at, uint64_t *values, void *const *places, const void *pc,
                const void *frame)
{
    if (fa_emu_san.unpoison != NULL)
        forget_deeper_frames();
    const fa_ptx_program *program = program_of(site);
    fa_emu_ptx_run run = {
        .at = at, .operands = site->operands, .r = values, .places = places, .pc = pc, .frame = frame};
    if (program->registers == site->operands) {
        execute(&run, program);
        return;
    }
    uint64_t r[program->registers];
    memcpy(r, values, (size_t)site->operands * sizeof *r);
    memset(r + site->operands, 0, (size_t)(program->registers - site->operands) * sizeof *r);
    run.r = r;
    execute(&run, program);
    memcpy(values, r, (size_t)site->operands * sizeof *r);
}
