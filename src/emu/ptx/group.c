#include "emu/ptx/group.h"

#include <string.h>

#include "emu/core/report.h"
#include "emu/ptx/memory.h"
#include "emu/race/cluster.h"
#include "ptx/tile.h"

static fa_emu_op make_op(const fa_emu_ptx_run *run, fa_emu_kind kind, int mode, uint32_t mask)
{
    fa_emu_op op = fa_emu_ptx_op(run, kind, run->instr->name);
    op.mode = mode;
    op.mask = mask;
    return op;
}

/* The mode beside the word that the instruction has. */
typedef struct choice {
    fa_ptx_word word;
    int mode;
} choice;
static int chosen(const fa_ptx_instr *i, const choice *from, int count)
{
    for (int k = 0; k < count; k++)
        if (fa_ptx_has(i, from[k].word))
            return from[k].mode;
    return 0;
}
#define CHOSEN(i, list) chosen(i, list, sizeof(list) / sizeof((list)[0]))

/* sync a {, b}; arrive a, b; red d, a {, b}, p */
static void barrier(const fa_emu_ptx_run *run)
{
    static const choice modes[] = {
        {FA_PTX_W_POPC_, FA_EMU_BAR_COUNT}, {FA_PTX_W_AND_, FA_EMU_BAR_AND}, {FA_PTX_W_OR_, FA_EMU_BAR_OR}};
    const fa_ptx_instr *i = run->instr;
    if (fa_ptx_has(i, FA_PTX_W_CLUSTER)) {
        fa_emu_ptx_cluster_barrier(run);
        return;
    }
    if (fa_ptx_has(i, FA_PTX_W_WARP)) {
        fa_emu_op op = make_op(run, FA_EMU_SYNCWARP, 0, (uint32_t)fa_ptx_in(i, 0, run->r));
        fa_emu_ptx_wait(&op);
        return;
    }
    const bool reduces = fa_ptx_has(i, FA_PTX_W_RED_);
    fa_emu_op op = make_op(run, FA_EMU_BARRIER, reduces ? CHOSEN(i, modes) : FA_EMU_BAR_NONE, ~0u);
    const int id = reduces ? 1 : 0, last = i->args - (reduces ? 1 : 0);
    op.arg = (int32_t)fa_ptx_in(i, id, run->r);
    op.width = last > id + 1 ? (int32_t)fa_ptx_in(i, id + 1, run->r) : 0;
    if (reduces)
        op.value = fa_ptx_in(i, last, run->r) != 0;
    if (fa_ptx_has(i, FA_PTX_W_ARRIVE)) {
        fa_emu_self->current->thread.api->arrive(&op);
        return;
    }
    fa_emu_ptx_wait(&op);
    if (reduces)
        fa_ptx_out(i, run->r, op.result);
}

/* The lane it reads, and whether that lies in its segment: PTX ISA, "shfl.sync". */
static bool shuffle_source(const fa_ptx_instr *i, uint32_t lane, uint32_t b, uint32_t c, uint32_t *from)
{
    const uint32_t segment = c >> 8 & 31, clamp = c & 31;
    const int32_t last = (int32_t)((lane & segment) | (clamp & ~segment)), mine = (int32_t)lane;
    const int32_t by = (int32_t)(b & 31);
    int32_t at = mine;
    bool in_range;
    if (fa_ptx_has(i, FA_PTX_W_UP))
        in_range = (at = mine - by) >= last;
    else if (fa_ptx_has(i, FA_PTX_W_DOWN))
        in_range = (at = mine + by) <= last;
    else if (fa_ptx_has(i, FA_PTX_W_BFLY))
        in_range = (at = mine ^ by) <= last;
    else
        in_range = (at = (int32_t)((lane & segment) | ((uint32_t)by & ~segment))) <= last;
    *from = in_range ? (uint32_t)at : lane;
    return in_range;
}

static void shuffle(const fa_emu_ptx_run *run, uint32_t lane)
{
    const fa_ptx_instr *i = run->instr;
    uint32_t from = 0;
    const bool in_range =
        shuffle_source(i, lane, (uint32_t)fa_ptx_in(i, 2, run->r), (uint32_t)fa_ptx_in(i, 3, run->r), &from);
    fa_emu_op op = make_op(run, FA_EMU_SHUFFLE, FA_EMU_SHFL_IDX, (uint32_t)fa_ptx_in(i, 4, run->r));
    op.arg = (int32_t)from;
    op.width = FA_EMU_WARP;
    op.value = (uint32_t)fa_ptx_in(i, 1, run->r);
    fa_emu_ptx_wait(&op);
    fa_ptx_out(i, run->r, op.result);
    if (i->arg[0].shape == FA_PTX_PAIR)
        fa_ptx_write(&i->value[1], run->r, in_range);
}

static int reduction(const fa_ptx_instr *i)
{
    static const choice modes[] = {{FA_PTX_W_ADD_, FA_EMU_REDUCE_ADD},   {FA_PTX_W_AND_, FA_EMU_REDUCE_AND},
                                   {FA_PTX_W_OR_, FA_EMU_REDUCE_OR},     {FA_PTX_W_XOR_, FA_EMU_REDUCE_XOR},
                                   {FA_PTX_W_MIN_, FA_EMU_REDUCE_MIN_S}, {FA_PTX_W_MAX_, FA_EMU_REDUCE_MAX_S}};
    const int mode = CHOSEN(i, modes);
    if (i->type[0] == FA_PTX_S32)
        return mode;
    return mode == FA_EMU_REDUCE_MIN_S ? FA_EMU_REDUCE_MIN_U : mode == FA_EMU_REDUCE_MAX_S ? FA_EMU_REDUCE_MAX_U : mode;
}

/* d, a, mask */
static void collective(const fa_emu_ptx_run *run, fa_emu_kind kind, int mode)
{
    const fa_ptx_instr *i = run->instr;
    fa_emu_op op = make_op(run, kind, mode, (uint32_t)fa_ptx_in(i, 2, run->r));
    op.value = fa_ptx_in(i, 1, run->r);
    if (i->op == FA_PTX_OP_VOTE)
        op.value = op.value != 0;
    fa_emu_ptx_wait(&op);
    fa_ptx_out(i, run->r, op.result);
    if (i->arg[0].shape == FA_PTX_PAIR) /* match.all */
        fa_ptx_write(&i->value[1], run->r, op.result != 0);
}

static void vote(const fa_emu_ptx_run *run)
{
    static const choice modes[] = {{FA_PTX_W_ALL, FA_EMU_VOTE_ALL},
                                   {FA_PTX_W_ANY, FA_EMU_VOTE_ANY},
                                   {FA_PTX_W_UNI, FA_EMU_VOTE_UNI},
                                   {FA_PTX_W_BALLOT, FA_EMU_VOTE_BALLOT}};
    collective(run, FA_EMU_VOTE, CHOSEN(run->instr, modes));
}

static void elect(const fa_emu_ptx_run *run, uint32_t lane)
{
    const fa_ptx_instr *i = run->instr;
    fa_emu_op op = make_op(run, FA_EMU_VOTE, FA_EMU_VOTE_BALLOT, (uint32_t)fa_ptx_in(i, 1, run->r));
    op.value = 1;
    fa_emu_ptx_wait(&op);
    const uint32_t leader = (uint32_t)__builtin_ctz((uint32_t)op.result);
    fa_ptx_out(i, run->r, leader);
    if (i->arg[0].shape == FA_PTX_PAIR)
        fa_ptx_write(&i->value[1], run->r, leader == lane);
}

/* Lanes name rows of 8 elements. The core distributes them, as fragments; store: the fragments, as rows. */
static void move_matrices(const fa_emu_ptx_run *run, uint32_t lane, bool store)
{
    const fa_ptx_instr *i = run->instr;
    const int count = fa_ptx_matrices(i), fragment = i->arg[store].first;
    const bool trans = fa_ptx_has(i, FA_PTX_W_TRANS), names_row = (int)lane < 8 * count;
    _Alignas(16) unsigned char row[16] = {0};
    uint32_t word[4];
    fa_emu_op op = make_op(run, store ? FA_EMU_STMATRIX : FA_EMU_LDMATRIX, trans, ~0u);
    if (!store && names_row)
        memcpy(row, fa_emu_ptx_access(run, 1, sizeof row, sizeof row, false), sizeof row);
    for (int k = 0; store && k < count; k++)
        word[k] = (uint32_t)fa_ptx_read(&i->value[fragment + k], run->r);
    op.arg = trans ? -count : count;
    op.a = store ? (void *)word : row;
    op.d = store ? (void *)row : word;
    fa_emu_ptx_wait(&op);
    for (int k = 0; !store && k < count; k++)
        fa_ptx_write(&i->value[fragment + k], run->r, word[k]);
    if (store && names_row)
        memcpy(fa_emu_ptx_access(run, 0, sizeof row, sizeof row, true), row, sizeof row);
}

static void gather(const fa_emu_ptx_run *run, int arg, uint64_t *to)
{
    const fa_ptx_arg from = run->instr->arg[arg];
    for (int k = 0; k < from.count; k++)
        to[k] = fa_ptx_read(&run->instr->value[from.first + k], run->r);
}

static void tile(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    fa_ptx_fragment f;
    fa_emu_op op = make_op(run, FA_EMU_PTX, 0, ~0u);
    gather(run, 1, f.a);
    if (i->op == FA_PTX_OP_MMA) {
        gather(run, 2, f.b);
        gather(run, 3, f.c);
    }
    op.a = i;
    op.d = &f;
    fa_emu_ptx_wait(&op);
    for (int k = 0; k < i->arg[0].count; k++)
        fa_ptx_write(&i->value[i->arg[0].first + k], run->r, f.d[k]);
}

/* movmatrix: row lane / 4, columns 2 (lane % 4) and the next; transposed they are columns of the result. */
static void transpose(fa_ptx_fragment *const lane[FA_EMU_WARP])
{
    uint64_t m[8][8];
    for (int l = 0; l < FA_EMU_WARP; l++)
        for (int h = 0; h < 2; h++)
            m[l / 4][l % 4 * 2 + h] = lane[l]->a[0] >> (16 * h) & 0xffff;
    for (int l = 0; l < FA_EMU_WARP; l++)
        lane[l]->d[0] = m[l % 4 * 2][l / 4] | m[l % 4 * 2 + 1][l / 4] << 16;
}

void fa_emu_ptx_compute(fa_emu_op *const op[FA_EMU_WARP])
{
    const fa_ptx_instr *i = op[0]->a;
    fa_ptx_fragment *lane[FA_EMU_WARP];
    for (int l = 0; l < FA_EMU_WARP; l++)
        lane[l] = op[l]->d;
    if (i->op == FA_PTX_OP_MMA)
        fa_ptx_tile_multiply(i, lane);
    else
        transpose(lane);
}

void fa_emu_ptx_group(fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    const uint32_t lane = fa_emu_self->current->thread.lane;
    switch (i->op) {
    case FA_PTX_OP_BAR:
    case FA_PTX_OP_BARRIER:
        barrier(run);
        break;
    case FA_PTX_OP_SHFL:
        shuffle(run, lane);
        break;
    case FA_PTX_OP_VOTE:
        vote(run);
        break;
    case FA_PTX_OP_REDUX:
        collective(run, FA_EMU_REDUCE, reduction(i));
        break;
    case FA_PTX_OP_MATCH:
        collective(run, FA_EMU_MATCH, fa_ptx_has(i, FA_PTX_W_ALL) ? FA_EMU_MATCH_ALL : FA_EMU_MATCH_ANY);
        break;
    case FA_PTX_OP_ACTIVEMASK: {
        fa_emu_op op = make_op(run, FA_EMU_ACTIVEMASK, 0, ~0u);
        fa_emu_ptx_wait(&op);
        fa_ptx_out(i, run->r, op.result);
        break;
    }
    case FA_PTX_OP_ELECT:
        elect(run, lane);
        break;
    case FA_PTX_OP_LDMATRIX:
        move_matrices(run, lane, false);
        break;
    case FA_PTX_OP_STMATRIX:
        move_matrices(run, lane, true);
        break;
    default:
        tile(run);
    }
}

void fa_emu_cluster_barrier_reset(fa_emu_cluster *cluster)
{
    cluster->phase = 0;
    cluster->arrived = 0;
    fa_race_cluster_forget(cluster);
}

static void settle(fa_emu_cluster *cluster)
{
    const uint32_t living = fa_emu_cluster_living(cluster);
    if (living == 0 || cluster->arrived < living)
        return;
    cluster->phase++;
    cluster->arrived = 0;
    fa_race_cluster_complete(cluster);
    for (uint32_t rank = 0; rank < cluster->count; rank++)
        fa_emu_wake(cluster->block[rank], cluster->block[rank]->waiting_cluster);
}

static void arrive(const fa_emu_ptx_run *run)
{
    fa_emu_worker *worker = fa_emu_self;
    fa_emu_fibre *self = worker->current;
    if (self->cluster_arrived)
        fa_emu_ptx_fail(run, FA_EMU_BAD_BARRIER, "the thread has arrived already: barrier.cluster.wait comes between");
    self->cluster_arrived = true;
    self->cluster_phase = worker->cluster->phase;
    worker->cluster->arrived++;
    fa_race_cluster_arrive(worker, fa_ptx_has(run->instr, FA_PTX_W_RELAXED));
    settle(worker->cluster);
}

static void wait(const fa_emu_ptx_run *run)
{
    fa_emu_worker *worker = fa_emu_self;
    fa_emu_fibre *self = worker->current;
    if (!self->cluster_arrived)
        fa_emu_ptx_fail(run, FA_EMU_BAD_BARRIER, "the thread waits, but has not arrived (barrier.cluster.arrive)");
    while (worker->cluster->phase == self->cluster_phase) {
        worker->waiting_cluster[self->thread.warp] |= 1u << self->thread.lane;
        fa_emu_ptx_meet(run, FA_EMU_PHASE, run->instr->name);
    }
    self->cluster_arrived = false;
    fa_race_cluster_observed(worker);
}

void fa_emu_ptx_cluster_barrier(const fa_emu_ptx_run *run)
{
    if (fa_ptx_has(run->instr, FA_PTX_W_ALIGNED))
        fa_emu_ptx_meet(run, FA_EMU_CONVERGE, run->instr->name);
    if (fa_ptx_has(run->instr, FA_PTX_W_ARRIVE))
        arrive(run);
    else
        wait(run);
}

void fa_emu_cluster_barrier_thread_ends(fa_emu_worker *worker, const fa_emu_fibre *fibre)
{
    fa_emu_cluster *cluster = worker->cluster;
    if (fibre->cluster_arrived && fibre->cluster_phase == cluster->phase)
        cluster->arrived--;
    settle(cluster);
}
