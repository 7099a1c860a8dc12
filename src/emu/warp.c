/* Warp collectives: shuffles, votes, matches, reductions. Semantics: Programming Guide, "Warp ... Functions". */
#include "emu/warp.h"

#include "emu/core/report.h"
#include "emu/hopper/wgmma.h"
#include "emu/mma.h"
#include "emu/ptx/group.h"

typedef fa_emu_op *const fa_emu_ops[FA_EMU_WARP];

/* The lane a shuffle reads, PTX ISA "shfl.sync"; out of its segment: the lane itself. */
static uint32_t shuffle_source(const fa_emu_op *op, uint32_t lane)
{
    const int32_t width = op->width, mine = (int32_t)lane, base = mine & ~(width - 1), last = base + width - 1;
    int32_t from = 0;
    switch (op->mode) {
    case FA_EMU_SHFL_IDX:
        return (uint32_t)(base | (op->arg & (width - 1)));
    case FA_EMU_SHFL_UP:
        from = mine - op->arg;
        return from >= base && from <= last ? (uint32_t)from : lane;
    case FA_EMU_SHFL_DOWN:
        from = mine + op->arg;
        return from >= base && from <= last ? (uint32_t)from : lane;
    default: /* a butterfly may read an earlier segment, not a later one */
        from = mine ^ (op->arg & (FA_EMU_WARP - 1));
        return from <= last ? (uint32_t)from : lane;
    }
}

static bool shuffle(fa_emu_worker *worker, uint32_t warp, uint32_t group, fa_emu_ops op)
{
    for (uint32_t rest = group; rest; rest &= rest - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(rest);
        const int32_t width = op[lane]->width;
        if (width < 1 || width > FA_EMU_WARP || (width & (width - 1))) {
            fa_emu_report(worker, FA_EMU_BAD_MASK, &worker->fibres[warp * FA_EMU_WARP + lane], op[lane]->file,
                          op[lane]->line, "%s: width %d is not a power of two up to 32", op[lane]->name, width);
            return false;
        }
        const uint32_t from = shuffle_source(op[lane], lane);
        if (!(group >> from & 1)) {
            fa_emu_report(worker, FA_EMU_LANE_ABSENT, &worker->fibres[warp * FA_EMU_WARP + lane], op[lane]->file,
                          op[lane]->line, "%s reads lane %u, which does not take part (lanes 0x%08x do)",
                          op[lane]->name, from, group);
            return false;
        }
        op[lane]->result = op[from]->value;
    }
    return true;
}

static void vote(uint32_t group, fa_emu_ops op)
{
    uint32_t ballot = 0;
    for (uint32_t rest = group; rest; rest &= rest - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(rest);
        ballot |= (uint32_t)(op[lane]->value != 0) << lane;
    }
    for (uint32_t rest = group; rest; rest &= rest - 1) {
        fa_emu_op *mine = op[__builtin_ctz(rest)];
        mine->result = mine->mode == FA_EMU_VOTE_BALLOT ? ballot
                       : mine->mode == FA_EMU_VOTE_ANY  ? ballot != 0
                       : mine->mode == FA_EMU_VOTE_ALL  ? ballot == group
                                                        : ballot == 0 || ballot == group;
    }
}

/* result: the lanes with the same value; MATCH_ALL: all of them, or none. */
static void match(uint32_t group, fa_emu_ops op)
{
    for (uint32_t rest = group; rest; rest &= rest - 1) {
        fa_emu_op *mine = op[__builtin_ctz(rest)];
        uint32_t same = 0;
        for (uint32_t others = group; others; others &= others - 1) {
            const uint32_t lane = (uint32_t)__builtin_ctz(others);
            same |= (uint32_t)(op[lane]->value == mine->value) << lane;
        }
        mine->result = mine->mode == FA_EMU_MATCH_ALL && same != group ? 0 : same;
    }
}

static uint32_t reduce_two(int32_t mode, uint32_t x, uint32_t y)
{
    return mode == FA_EMU_REDUCE_ADD     ? x + y
           : mode == FA_EMU_REDUCE_MIN_S ? ((int32_t)x < (int32_t)y ? x : y)
           : mode == FA_EMU_REDUCE_MAX_S ? ((int32_t)x > (int32_t)y ? x : y)
           : mode == FA_EMU_REDUCE_MIN_U ? (x < y ? x : y)
           : mode == FA_EMU_REDUCE_MAX_U ? (x > y ? x : y)
           : mode == FA_EMU_REDUCE_AND   ? (x & y)
           : mode == FA_EMU_REDUCE_OR    ? (x | y)
                                         : x ^ y;
}

static void reduce(uint32_t group, fa_emu_ops op)
{
    const uint32_t first = (uint32_t)__builtin_ctz(group);
    uint32_t all = (uint32_t)op[first]->value;
    for (uint32_t rest = group & (group - 1); rest; rest &= rest - 1)
        all = reduce_two(op[first]->mode, all, (uint32_t)op[__builtin_ctz(rest)]->value);
    for (uint32_t rest = group; rest; rest &= rest - 1)
        op[__builtin_ctz(rest)]->result = all;
}

bool fa_emu_compute(fa_emu_worker *worker, uint32_t warp, uint32_t group)
{
    fa_emu_op *op[FA_EMU_WARP] = {0};
    fa_emu_fibre *fibres = worker->fibres + warp * FA_EMU_WARP;
    for (uint32_t rest = group; rest; rest &= rest - 1)
        op[__builtin_ctz(rest)] = fibres[__builtin_ctz(rest)].op;
    const uint32_t first = (uint32_t)__builtin_ctz(group);
    switch ((fa_emu_kind)op[first]->kind) {
    case FA_EMU_ACTIVEMASK:
        for (uint32_t rest = group; rest; rest &= rest - 1)
            op[__builtin_ctz(rest)]->result = group;
        return true;
    case FA_EMU_SHUFFLE:
        return shuffle(worker, warp, group, op);
    case FA_EMU_VOTE:
        vote(group, op);
        return true;
    case FA_EMU_MATCH:
        match(group, op);
        return true;
    case FA_EMU_REDUCE:
        reduce(group, op);
        return true;
    case FA_EMU_LDMATRIX:
        fa_emu_ldmatrix(op);
        return true;
    case FA_EMU_STMATRIX:
        fa_emu_stmatrix(op);
        return true;
    case FA_EMU_WMMA:
        if (op[first]->mode > 0) {
            fa_emu_wmma_other(worker, op);
            return true;
        }
        if (fa_emu_wmma(worker, op))
            return true;
        fa_emu_report(worker, FA_EMU_FRAGMENT, &fibres[first], op[first]->file, op[first]->line,
                      "%s: two lanes hold different values for one element of A or B", op[first]->name);
        return false;
    case FA_EMU_PTX:
        if (((const fa_ptx_instr *)op[first]->a)->op == FA_PTX_OP_WGMMA)
            return fa_emu_wgmma_compute(worker, warp, op);
        fa_emu_ptx_compute(op);
        return true;
    default: /* BARRIER never comes here; SYNCWARP, YIELD and CONVERGE exchange nothing */
        return true;
    }
}
