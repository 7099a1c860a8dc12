#include "ptx/check.h"

#include "ptx/hopper.h"
#include "ptx/tile.h"

static int count_of(const fa_ptx_instr *i, int at) { return i->arg[at].count; }
static bool is_vector(const fa_ptx_instr *i, int at, int count)
{
    const bool shape = i->arg[at].shape == FA_PTX_VECTOR || (count == 1 && i->arg[at].shape == FA_PTX_SCALAR);
    return shape && count_of(i, at) == count;
}
static bool is_address(const fa_ptx_instr *i, int at) { return i->arg[at].shape == FA_PTX_ADDRESS; }

static const char *check_mma(fa_ptx_instr *i)
{
    i->tile = fa_ptx_tile_find(i);
    if (i->tile == NULL)
        return "no such shape and types of mma";
    const int c = fa_ptx_tile_c(i->tile, i->type[0]);
    if (!is_vector(i, 0, c) || !is_vector(i, 1, fa_ptx_tile_a(i->tile, i->type[1])) ||
        !is_vector(i, 2, fa_ptx_tile_b(i->tile, i->type[2])) || !is_vector(i, 3, c))
        return "the number of registers is not that of the shape";
    return NULL;
}

static const char *check_matrix(fa_ptx_instr *i)
{
    switch (i->op) {
    case FA_PTX_OP_LDMATRIX:
        return is_vector(i, 0, fa_ptx_matrices(i)) && is_address(i, 1) ? NULL : "ldmatrix wants {registers}, [address]";
    case FA_PTX_OP_STMATRIX:
        return is_address(i, 0) && is_vector(i, 1, fa_ptx_matrices(i)) ? NULL : "stmatrix wants [address], {registers}";
    case FA_PTX_OP_MMA:
        return check_mma(i);
    default:
        return fa_ptx_has(i, FA_PTX_W_TRANS) ? NULL : "movmatrix is .trans";
    }
}

static const char *check_cp(fa_ptx_instr *i)
{
    const bool wait = fa_ptx_has(i, FA_PTX_W_WAIT_GROUP);
    if (!fa_ptx_has(i, FA_PTX_W_ASYNC))
        return "cp is cp.async";
    if (fa_ptx_has(i, FA_PTX_W_BULK))
        return fa_ptx_check_bulk(i);
    if (fa_ptx_has(i, FA_PTX_W_MBARRIER_))
        return fa_ptx_check_copies_arrive(i);
    if (i->types > 0 || fa_ptx_has(i, FA_PTX_W_REDUCE))
        return "only bulk copies reduce";
    if (fa_ptx_has(i, FA_PTX_W_COMMIT_GROUP) || fa_ptx_has(i, FA_PTX_W_WAIT_ALL) || wait)
        return i->args == wait ? NULL : "the number of operands";
    return i->args >= 3 && is_address(i, 0) && is_address(i, 1) ? NULL : "cp.async wants [to], [from], size";
}

/* Vectors of atom and red: floats in global memory, at most 16 bytes; FP32 is only added. */
static const char *check_atomic(const fa_ptx_instr *i, int at, int lanes)
{
    const fa_ptx_type_info *type = fa_ptx_type_of(i, 0);
    const bool adds = fa_ptx_has(i, FA_PTX_W_ADD_),
               picks = fa_ptx_has(i, FA_PTX_W_MIN_) || fa_ptx_has(i, FA_PTX_W_MAX_);
    const bool single = i->type[0] == FA_PTX_F32, half = type->kind == FA_PTX_F && !single && type->bits <= 32;
    const bool cas = fa_ptx_has(i, FA_PTX_W_CAS);
    if (!is_address(i, at) || i->args < at + 2 + cas)
        return at == 0 ? "red wants [address], b" : "atom wants d, [address], b";
    if (half && !fa_ptx_has(i, FA_PTX_W_NOFTZ))
        return "f16 and bf16 are combined with .noftz";
    if (lanes == 1)
        return NULL;
    if (!fa_ptx_has(i, FA_PTX_W_GLOBAL) || lanes * type->bits > 128 || !(single ? adds : half && (adds || picks)))
        return "a vector of atom or red is .global, of f32 (add) or of f16 and bf16 (add, min, max), up to 16 bytes";
    return is_vector(i, at + 1, lanes) && (at == 0 || is_vector(i, 0, lanes))
               ? NULL
               : "the number of registers is not that of the vector";
}

static const char *check_memory(fa_ptx_instr *i)
{
    const int lanes = fa_ptx_has(i, FA_PTX_W_V8)   ? 8
                      : fa_ptx_has(i, FA_PTX_W_V4) ? 4
                      : fa_ptx_has(i, FA_PTX_W_V2) ? 2
                                                   : 1;
    if (i->op != FA_PTX_OP_CP && fa_ptx_has(i, FA_PTX_W_ASYNC))
        return fa_ptx_check_send(i, is_vector(i, 1, lanes));
    switch (i->op) {
    case FA_PTX_OP_LD:
    case FA_PTX_OP_LDU:
        return is_address(i, 1) && is_vector(i, 0, lanes) ? NULL
                                                          : "ld wants as many registers as its vector, and [address]";
    case FA_PTX_OP_ST:
        return is_address(i, 0) && is_vector(i, 1, lanes) ? NULL
                                                          : "st wants [address] and as many registers as its vector";
    case FA_PTX_OP_CP:
        return check_cp(i);
    default:
        return check_atomic(i, i->op == FA_PTX_OP_ATOM, lanes);
    }
}

/* cvt: packed results take two operands, but from a packed source. */
static const char *check_convert(const fa_ptx_instr *i)
{
    const fa_ptx_type_info *to = fa_ptx_type_of(i, 0), *from = fa_ptx_type_of(i, 1);
    const int want = to->elements == 2 && from->elements == 1 ? 3 : 2;
    const bool small = to->bits == 16 && to->elements == 2, small_from = from->bits == 16 && from->elements == 2;
    if (i->args != want)
        return "cvt to two elements takes two operands";
    if (to->elements < from->elements || (small_from && i->type[0] != FA_PTX_F16X2) ||
        (to->elements == 2 && from->elements == 1 && i->type[1] != FA_PTX_F32) ||
        (to->elements == 2 && from->elements == 2 && !small && !small_from) || (small && from->kind != FA_PTX_F) ||
        (i->type[0] == FA_PTX_TF32 && i->type[1] != FA_PTX_F32) || i->type[1] == FA_PTX_TF32)
        return "no such conversion";
    return NULL;
}

/* barrier.cluster.arrive, .wait; barrier{.cta}.sync a and so on */
static const char *check_barrier(const fa_ptx_instr *i)
{
    const bool arrives = fa_ptx_has(i, FA_PTX_W_ARRIVE), waits = fa_ptx_has(i, FA_PTX_W_WAIT);
    const bool acquires = fa_ptx_has(i, FA_PTX_W_ACQUIRE);
    const bool releases = fa_ptx_has(i, FA_PTX_W_RELEASE) || fa_ptx_has(i, FA_PTX_W_RELAXED);
    if (fa_ptx_has(i, FA_PTX_W_RED_) && i->types == 0)
        return "the barrier's reduction wants a type";
    if (!fa_ptx_has(i, FA_PTX_W_CLUSTER))
        return i->args > 0 && !waits && !acquires && !releases ? NULL : "the barrier of a block has a number";
    return i->args == 0 && arrives != waits && (arrives || !releases) && (waits || !acquires)
               ? NULL
               : "barrier.cluster.arrive, .release or .relaxed, or .wait, .acquire";
}

const char *fa_ptx_check(fa_ptx_instr *i)
{
    switch (i->family) {
    case FA_PTX_MATRIX:
        return check_matrix(i);
    case FA_PTX_MEMORY:
        return check_memory(i);
    case FA_PTX_CONVERT:
        return check_convert(i);
    case FA_PTX_ASYNC:
        return fa_ptx_check_hopper(i);
    case FA_PTX_FENCES:
        return fa_ptx_check_fence(i);
    case FA_PTX_GROUP:
        if (i->op == FA_PTX_OP_BAR || i->op == FA_PTX_OP_BARRIER)
            return check_barrier(i);
        if (i->op == FA_PTX_OP_ACTIVEMASK)
            return NULL;
        return fa_ptx_has(i, FA_PTX_W_SYNC) ? NULL : "only with .sync";
    default:
        return NULL;
    }
}
