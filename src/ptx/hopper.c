#include "ptx/hopper.h"

#include "ptx/fp8.h"

static bool is_address(const fa_ptx_instr *i, int at) { return at < i->args && i->arg[at].shape == FA_PTX_ADDRESS; }
static bool is_scalar(const fa_ptx_instr *i, int at) { return at < i->args && i->arg[at].shape == FA_PTX_SCALAR; }

int fa_ptx_tensor_rank(const fa_ptx_instr *i)
{
    for (int rank = 1; rank <= 5; rank++)
        if (fa_ptx_has(i, (fa_ptx_word)(FA_PTX_W_D1 + rank - 1)))
            return rank;
    return 0;
}

fa_ptx_word fa_ptx_reduction(const fa_ptx_instr *i)
{
    static const fa_ptx_word words[] = {FA_PTX_W_ADD_, FA_PTX_W_MIN_, FA_PTX_W_MAX_, FA_PTX_W_INC,
                                        FA_PTX_W_DEC,  FA_PTX_W_AND_, FA_PTX_W_OR_,  FA_PTX_W_XOR_};
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
        if (fa_ptx_has(i, words[k]))
            return words[k];
    return FA_PTX_WORDS;
}

/* The tensor map and its coordinates are two arguments, of which the first is `at`. */
static bool is_box(const fa_ptx_instr *i, int at)
{
    const int rank = fa_ptx_tensor_rank(i), next = at + 1;
    return is_address(i, at) && next < i->args && i->arg[next].count == rank &&
           (i->arg[next].shape == FA_PTX_VECTOR || (rank == 1 && i->arg[next].shape == FA_PTX_SCALAR));
}

const char *fa_ptx_check_bulk(fa_ptx_instr *i)
{
    const bool tensor = fa_ptx_has(i, FA_PTX_W_TENSOR), in = fa_ptx_has(i, FA_PTX_W_MBAR_BYTES);
    const bool multicast = fa_ptx_has(i, FA_PTX_W_MULTICAST);
    const int count = i->args - fa_ptx_has(i, FA_PTX_W_L2_CACHE_HINT) - multicast;
    i->family = FA_PTX_ASYNC;
    if (multicast && (!in || !fa_ptx_has(i, FA_PTX_W_SHARED_CLUSTER) || !fa_ptx_has(i, FA_PTX_W_GLOBAL)))
        return "what comes from global memory to shared::cluster is multicast";
    if (fa_ptx_has(i, FA_PTX_W_COMMIT_GROUP))
        return i->args == 0 ? NULL : "commit_group takes no operand";
    if (fa_ptx_has(i, FA_PTX_W_WAIT_GROUP))
        return i->args == 1 ? NULL : "wait_group takes a number";
    if (tensor != (fa_ptx_tensor_rank(i) > 0))
        return "a tensor has 1 to 5 dimensions";
    if (fa_ptx_has(i, FA_PTX_W_PREFETCH_))
        return tensor ? (is_box(i, 0) && count == 2 ? NULL : "the prefetch wants [map, {coordinates}]")
                      : (is_address(i, 0) && count == 2 ? NULL : "the prefetch wants [address], size");
    if (in && tensor && fa_ptx_has(i, FA_PTX_W_REDUCE))
        return "a tensor is reduced in global memory";
    if (in && tensor)
        return is_address(i, 0) && is_box(i, 1) && is_address(i, 3) && count == 4
                   ? NULL
                   : "the load wants [to], [map, {coordinates}], [barrier]";
    const bool reduces = fa_ptx_has(i, FA_PTX_W_REDUCE);
    if (reduces != (fa_ptx_reduction(i) != FA_PTX_WORDS) || i->types != (reduces && !tensor))
        return "a reduction has an operation, and of bytes a type";
    if (in && reduces && (fa_ptx_has(i, FA_PTX_W_GLOBAL) || fa_ptx_types[i->type[0]].kind == FA_PTX_F))
        return "a reduction into shared memory is one of integers out of shared memory";
    if (in)
        return is_address(i, 0) && is_address(i, 1) && is_scalar(i, 2) && is_address(i, 3) && count == 4
                   ? NULL
                   : "the copy wants [to], [from], size, [barrier]";
    if (!fa_ptx_has(i, FA_PTX_W_BULK_GROUP))
        return "a bulk copy ends at a barrier or in a bulk_group";
    if (tensor)
        return is_box(i, 0) && is_address(i, 2) && count == 3 ? NULL : "the store wants [map, {coordinates}], [from]";
    return is_address(i, 0) && is_address(i, 1) && is_scalar(i, 2) && count == 3 ? NULL
                                                                                 : "the copy wants [to], [from], size";
}

const char *fa_ptx_check_copies_arrive(fa_ptx_instr *i)
{
    i->family = FA_PTX_ASYNC;
    return fa_ptx_has(i, FA_PTX_W_ARRIVE) && i->types == 1 && i->type[0] == FA_PTX_B64 && i->args == 1 &&
                   is_address(i, 0) && !fa_ptx_has(i, FA_PTX_W_SHARED_CLUSTER)
               ? NULL
               : "cp.async.mbarrier.arrive.b64 wants [barrier]";
}

const char *fa_ptx_check_send(fa_ptx_instr *i, bool whole)
{
    i->family = FA_PTX_ASYNC;
    if (!fa_ptx_has(i, FA_PTX_W_SHARED_CLUSTER) || !fa_ptx_has(i, FA_PTX_W_MBAR_BYTES))
        return "st.async and red.async go to .shared::cluster and complete on a barrier";
    const int bits = fa_ptx_type_of(i, 0)->bits;
    return is_address(i, 0) && whole && is_address(i, 2) && bits >= 32 && bits * i->arg[1].count <= 128
               ? NULL
               : "st.async and red.async want [to], value, [barrier], of 4 to 16 bytes";
}

static const char *check_mbarrier(const fa_ptx_instr *i)
{
    const bool waits = fa_ptx_has(i, FA_PTX_W_TEST_WAIT) || fa_ptx_has(i, FA_PTX_W_TRY_WAIT);
    const bool own = waits || fa_ptx_has(i, FA_PTX_W_INIT) || fa_ptx_has(i, FA_PTX_W_INVAL);
    if (own && fa_ptx_has(i, FA_PTX_W_SHARED_CLUSTER))
        return "a barrier of another block is no operand of init, inval and waits";
    if (fa_ptx_has(i, FA_PTX_W_PENDING_COUNT))
        return i->args == 2 ? NULL : "pending_count wants d, state";
    if (fa_ptx_has(i, FA_PTX_W_INIT))
        return is_address(i, 0) && i->args == 2 ? NULL : "init wants [barrier], count";
    if (fa_ptx_has(i, FA_PTX_W_INVAL))
        return is_address(i, 0) && i->args == 1 ? NULL : "inval wants [barrier]";
    if (waits)
        return is_address(i, 1) && i->args >= 3 ? NULL : "the wait wants p, [barrier], phase";
    if (fa_ptx_has(i, FA_PTX_W_ARRIVE) || fa_ptx_has(i, FA_PTX_W_ARRIVE_DROP))
        return is_address(i, 1) && (!fa_ptx_has(i, FA_PTX_W_EXPECT_TX) || i->args == 3) ? NULL
                                                                                        : "arrive wants d, [barrier]";
    return is_address(i, 0) && i->args == 2 ? NULL : "expect_tx and complete_tx want [barrier], bytes";
}

int fa_ptx_wgmma_accumulators(const fa_ptx_instr *i) { return i->columns / (i->type[0] == FA_PTX_F32 ? 2 : 4); }

bool fa_ptx_wgmma_a_in_registers(const fa_ptx_instr *i) { return i->arg[1].shape == FA_PTX_VECTOR; }

static const char *check_product(fa_ptx_instr *i)
{
    for (int shape = 0; shape < 64; shape++)
        if (fa_ptx_has(i, (fa_ptx_word)(FA_PTX_W_M64N8K16 + shape)))
            i->columns = (uint16_t)(shape / 2 * 8 + 8), i->depth = shape % 2 == 0 ? 16 : 32;
    if (i->columns == 0)
        return "wgmma.mma_async wants a shape";
    const bool bytes = i->types == 3 && fa_ptx_is_fp8(i->type[1]) && fa_ptx_is_fp8(i->type[2]);
    if (i->types != 3 || (i->type[0] != FA_PTX_F32 && (i->type[0] != FA_PTX_F16 || i->type[1] == FA_PTX_BF16)) ||
        (!bytes && (i->type[1] != i->type[2] || (i->type[1] != FA_PTX_F16 && i->type[1] != FA_PTX_BF16))))
        return "the types of wgmma are f32 or f16, and twice f16 or an e4m3 or e5m2 each; or f32, bf16, bf16";
    if (i->depth != (bytes ? 32 : 16))
        return "a product of FP8 is 32 deep, one of 16 bits 16";
    const bool registers = fa_ptx_wgmma_a_in_registers(i);
    if (i->arg[0].shape != FA_PTX_VECTOR || i->arg[0].count != fa_ptx_wgmma_accumulators(i))
        return "the number of accumulators is not that of the shape";
    if (registers ? i->arg[1].count != 4 : !is_scalar(i, 1))
        return "A is a descriptor or four registers";
    return i->args == (bytes ? 6 : registers ? 7 : 8) ? NULL : "the number of operands";
}

static const char *check_setmaxnreg(const fa_ptx_instr *i)
{
    const fa_ptx_value *v = &i->value[i->arg[0].first];
    const bool number = v->kind == FA_PTX_IMM || v->kind == FA_PTX_REG; /* "n" operands are values of the site */
    return number && fa_ptx_has(i, FA_PTX_W_INC) != fa_ptx_has(i, FA_PTX_W_DEC) ? NULL : "setmaxnreg.inc or .dec";
}

int fa_ptx_map_field(const fa_ptx_instr *i)
{
    for (int word = FA_PTX_W_GLOBAL_ADDRESS; word <= FA_PTX_W_FILL_MODE; word++)
        if (fa_ptx_has(i, (fa_ptx_word)word))
            return word - FA_PTX_W_GLOBAL_ADDRESS;
    return -1;
}

static bool has_scope(const fa_ptx_instr *i)
{
    return fa_ptx_has(i, FA_PTX_W_CTA) || fa_ptx_has(i, FA_PTX_W_CLUSTER) || fa_ptx_has(i, FA_PTX_W_GPU) ||
           fa_ptx_has(i, FA_PTX_W_SYS);
}

static const char *check_tensormap(const fa_ptx_instr *i)
{
    if (fa_ptx_has(i, FA_PTX_W_CP_FENCEPROXY))
        return fa_ptx_has(i, FA_PTX_W_GLOBAL) && fa_ptx_has(i, FA_PTX_W_SHARED_CTA) &&
                       fa_ptx_has(i, FA_PTX_W_TENSORMAP_GENERIC) && fa_ptx_has(i, FA_PTX_W_RELEASE) && has_scope(i) &&
                       fa_ptx_has(i, FA_PTX_W_SYNC) && fa_ptx_has(i, FA_PTX_W_ALIGNED) && is_address(i, 0) &&
                       is_address(i, 1) && is_scalar(i, 2)
                   ? NULL
                   : "tensormap.cp_fenceproxy wants [to], [from], 128";
    const int field = fa_ptx_map_field(i), dimensions = FA_PTX_W_BOX_DIM - FA_PTX_W_GLOBAL_ADDRESS;
    const bool wide = fa_ptx_has(i, FA_PTX_W_GLOBAL_ADDRESS) || fa_ptx_has(i, FA_PTX_W_GLOBAL_STRIDE);
    const bool ordinal = field >= dimensions && field < FA_PTX_W_ELEMTYPE - FA_PTX_W_GLOBAL_ADDRESS;
    if (!fa_ptx_has(i, FA_PTX_W_REPLACE) || !fa_ptx_has(i, FA_PTX_W_TILE) || !fa_ptx_has(i, FA_PTX_W_B1024) ||
        field < 0)
        return "tensormap.replace.tile wants a field and .b1024";
    if (i->types != 1 || i->type[0] != (wide ? FA_PTX_B64 : FA_PTX_B32))
        return "addresses and strides are .b64, the other fields .b32";
    return is_address(i, 0) && i->args == 2 + ordinal ? NULL : "tensormap.replace wants [map], dimension, value";
}

const char *fa_ptx_check_fence(const fa_ptx_instr *i)
{
    const bool map = fa_ptx_has(i, FA_PTX_W_TENSORMAP_GENERIC), acquires = fa_ptx_has(i, FA_PTX_W_ACQUIRE);
    if (!map || !acquires)
        return i->args == 0 && (!map || (fa_ptx_has(i, FA_PTX_W_RELEASE) && has_scope(i)))
                   ? NULL
                   : "a fence takes no operand; of tensor maps it is one of release or acquire, with a scope";
    return is_address(i, 0) && i->args == 2 && has_scope(i) ? NULL : "the acquire of a tensor map wants [map], 128";
}

const char *fa_ptx_check_hopper(fa_ptx_instr *i)
{
    switch (i->op) {
    case FA_PTX_OP_MBARRIER:
        return check_mbarrier(i);
    case FA_PTX_OP_SETMAXNREG:
        return check_setmaxnreg(i);
    case FA_PTX_OP_TENSORMAP:
        return check_tensormap(i);
    default:
        if (fa_ptx_has(i, FA_PTX_W_MMA_ASYNC))
            return check_product(i);
        return i->args == fa_ptx_has(i, FA_PTX_W_WAIT_GROUP) ? NULL : "the number of operands";
    }
}

bool fa_ptx_is_hopper(const fa_ptx_program *program)
{
    for (int i = 0; i < program->count; i++)
        if (program->instr[i].family == FA_PTX_ASYNC)
            return true;
    return false;
}

bool fa_ptx_is_late(const fa_ptx_program *program)
{
    int others = program->count; /* but fences, commits and waits */
    for (const fa_ptx_instr *i = program->instr; i < program->instr + program->count; i++) {
        if (i->op == FA_PTX_OP_WGMMA && fa_ptx_has(i, FA_PTX_W_MMA_ASYNC))
            return true;
        others -= i->op == FA_PTX_OP_WGMMA;
    }
    return program->count > 0 && others == 0;
}
