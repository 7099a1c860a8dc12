#include "emu/hopper/bulk.h"

#include <string.h>

#include "base/status.h"
#include "emu/core/report.h"
#include "emu/core/window.h"
#include "emu/hopper/mbarrier.h"
#include "emu/hopper/reduce.h"
#include "emu/ptx/memory.h"
#include "emu/race/async.h"
#include "ptx/hopper.h"

enum { BYTES_ALIGN = 16, BOX_ALIGN = 128, MAP_ALIGN = 64, LINE = 256, POISON = 0xff };

/* The addresses of the 16-byte chunks of a row in shared memory: in the block's window, and where they are now. */
static unsigned char *place_of(const fa_emu_bulk *bulk, uint32_t row, uint32_t offset)
{
    const uintptr_t at = (uintptr_t)bulk->shared + row * fa_emu_map_pitch(&bulk->map) + offset;
    return (unsigned char *)fa_emu_swizzled(at, bulk->map.swizzle);
}
static unsigned char *chunk(const fa_emu_bulk *bulk, uint32_t row, uint32_t offset)
{
    return fa_emu_window_now(bulk->owner, place_of(bulk, row, offset));
}

static void combine(const fa_emu_bulk *bulk, unsigned char *to, const unsigned char *from, uint32_t bytes)
{
    fa_emu_reduce_bytes(to, from, bytes, (fa_ptx_type)bulk->type, (fa_ptx_word)bulk->operation);
}

/* The fill value of 8 bytes out of bounds. */
static uint64_t fill_of(const fa_emu_map *map)
{
    uint64_t fill = fa_emu_map_fill(map);
    for (uint32_t bits = 8 * (uint32_t)map->strides[0]; bits < 64; bits *= 2)
        fill |= fill << bits;
    return fill;
}

static void load_row(const fa_emu_bulk *bulk, uint32_t row)
{
    const uint64_t fill = fill_of(&bulk->map);
    fa_emu_row from = fa_emu_map_row(&bulk->map, bulk->at, row);
    const uint32_t bytes = fa_emu_map_row_bytes(&bulk->map);
    if (bulk->sent)
        from.global = (unsigned char *)(uintptr_t)bulk->values;
    if (bulk->from_shared)
        from.global = fa_emu_window_now(bulk->issuer, from.global);
    if (bulk->operation != FA_PTX_WORDS) {
        combine(bulk, chunk(bulk, row, 0), from.global, bytes);
        return;
    }
    if (from.from == 0 && from.to == bytes && bulk->map.swizzle == 0) {
        memcpy(chunk(bulk, row, 0), from.global, bytes);
        return;
    }
    for (uint32_t c = 0; c < bytes; c += FA_EMU_CHUNK) {
        unsigned char *to = chunk(bulk, row, c);
        const uint32_t begin = from.from > c ? from.from - c : 0;
        const uint32_t end = from.to < c ? 0 : from.to - c < FA_EMU_CHUNK ? from.to - c : FA_EMU_CHUNK;
        for (uint32_t k = 0; (end - begin != FA_EMU_CHUNK || begin >= end) && k < FA_EMU_CHUNK; k += sizeof fill)
            memcpy(to + k, &fill, sizeof fill);
        if (begin < end)
            memcpy(to + begin, from.global + c + begin, end - begin);
    }
}

static void store_row(const fa_emu_bulk *bulk, uint32_t row)
{
    const fa_emu_row to = fa_emu_map_row(&bulk->map, bulk->at, row);
    for (uint32_t c = to.from / FA_EMU_CHUNK * FA_EMU_CHUNK; c < to.to; c += FA_EMU_CHUNK) {
        const uint32_t begin = to.from > c ? to.from - c : 0;
        const uint32_t end = to.to - c < FA_EMU_CHUNK ? to.to - c : FA_EMU_CHUNK;
        if (bulk->operation != FA_PTX_WORDS)
            combine(bulk, to.global + c + begin, chunk(bulk, row, c) + begin, end - begin);
        else
            memcpy(to.global + c + begin, chunk(bulk, row, c) + begin, end - begin);
    }
}

static void forget(fa_emu_pending *pending, uint32_t index)
{
    pending->bulk_count--;
    pending->busy--;
    memmove(pending->bulks + index, pending->bulks + index + 1, (pending->bulk_count - index) * sizeof *pending->bulks);
}

void fa_emu_bulk_move(fa_emu_worker *worker, uint32_t index, uint32_t rows)
{
    fa_emu_pending *pending = worker->pending;
    fa_emu_bulk *bulk = &pending->bulks[index];
    const uint32_t end = rows == 0 || rows > bulk->rows - bulk->done ? bulk->rows : bulk->done + rows;
    for (; bulk->done < end; bulk->done++)
        if (bulk->kind == FA_EMU_LOAD)
            load_row(bulk, bulk->done);
        else
            store_row(bulk, bulk->done);
    if (bulk->done < bulk->rows)
        return;
    fa_emu_mbarrier *barrier = bulk->barrier;
    const uint32_t bytes = bulk->rows * fa_emu_map_row_bytes(&bulk->map);
    forget(pending, index);
    if (barrier != NULL && worker->race != NULL)
        fa_race_phase_bytes_came(worker, barrier->race);
    if (barrier != NULL)
        fa_emu_mbarrier_bytes_came(barrier, bytes);
}

/* Ends a thread's stores up to group `last`. */
static void finish_stores(fa_emu_worker *worker, uint32_t thread, uint32_t last)
{
    fa_emu_pending *pending = worker->pending;
    for (uint32_t i = 0; i < pending->bulk_count;)
        if (pending->bulks[i].kind != FA_EMU_LOAD && pending->bulks[i].thread == thread &&
            pending->bulks[i].group <= last)
            fa_emu_bulk_move(worker, i, 0);
        else
            i++;
}

/* Reports every byte of the box to the race detector and AddressSanitizer at the time of issue. */
static void declare(const fa_emu_ptx_run *run, const fa_emu_bulk *bulk)
{
    const bool load = bulk->kind == FA_EMU_LOAD;
    fa_emu_worker *worker = fa_emu_self;
    const uint32_t bytes = fa_emu_map_row_bytes(&bulk->map), pitch = fa_emu_map_pitch(&bulk->map);
    const uint32_t all = bulk->rows * pitch;
    fa_emu_ptx_check(run, fa_emu_window_now(bulk->owner, bulk->shared), all, load);
    const fa_race_actor in = load ? fa_race_actor_of_phase(worker, bulk->owner, bulk->barrier->race, run->pc)
                                  : fa_race_actor_of_group(worker, bulk->group, FA_RACE_STORE_READS);
    const fa_race_actor out = load ? in : fa_race_actor_of_group(worker, bulk->group, FA_RACE_STORE_WRITES);
    const int reduces = bulk->operation != FA_PTX_WORDS ? FA_RACE_ATOMIC : 0;
    const int global_kind = load ? 0 : FA_RACE_WRITE | reduces;
    const int generic = bulk->sent ? FA_RACE_GENERIC : 0;
    if (bulk->map_at != NULL)
        fa_race_actor_reads_map(worker, &in, bulk->map_at, run->pc);
    const int shared_kind = load ? FA_RACE_WRITE | reduces | generic : 0;
    if (bytes == pitch)
        fa_race_actor_touch(worker, &in, bulk->owner, bulk->shared, all, shared_kind, run->pc);
    else
        for (uint32_t at = 0; at < bulk->rows * bytes; at += FA_EMU_CHUNK)
            fa_race_actor_touch(worker, &in, bulk->owner, place_of(bulk, at / bytes, at % bytes), FA_EMU_CHUNK,
                                shared_kind, run->pc);
    for (uint32_t row = 0; !bulk->sent && row < bulk->rows; row++) {
        const fa_emu_row global = fa_emu_map_row(&bulk->map, bulk->at, row);
        if (global.from >= global.to)
            continue;
        fa_emu_ptx_check(run, global.global + global.from, global.to - global.from, !load);
        fa_race_actor_touch(worker, &out, worker, global.global + global.from, global.to - global.from, global_kind,
                            run->pc);
    }
}

static void check_inside(const fa_emu_ptx_run *run, const fa_emu_worker *owner, const unsigned char *place,
                         uint32_t bytes)
{
    const fa_emu_build_info *build = owner->launch->image->build;
    const uint32_t smem_bytes = owner->launch->grid->smem_bytes;
    if (bytes > 0 && (!fa_emu_is_shared(place, owner->smem, smem_bytes, build) ||
                      !fa_emu_is_shared(place + bytes - 1, owner->smem, smem_bytes, build)))
        fa_emu_ptx_fail(run, FA_EMU_SMEM_OVERFLOW, "its %u bytes do not lie in the block's shared memory", bytes);
}

/* The destination of a load is NaN until the load is complete. */
static void poison(const fa_emu_bulk *bulk)
{
    const uint32_t bytes = fa_emu_map_row_bytes(&bulk->map);
    if (bytes == fa_emu_map_pitch(&bulk->map))
        memset(fa_emu_window_now(bulk->owner, bulk->shared), POISON, bulk->rows * bytes);
    else
        for (uint32_t at = 0; at < bulk->rows * bytes; at += FA_EMU_CHUNK)
            memset(chunk(bulk, at / bytes, at % bytes), POISON, FA_EMU_CHUNK);
}

/* See fa_emu_map_is_ragged. */
static void check_ragged(const fa_emu_ptx_run *run, const fa_emu_bulk *bulk)
{
    if (bulk->map_at == NULL || !fa_emu_map_is_ragged(&bulk->map))
        return;
    for (uint32_t row = 0; row < bulk->rows; row++) {
        const fa_emu_row inside = fa_emu_map_row(&bulk->map, bulk->at, row);
        if (inside.from < inside.to)
            return;
    }
    fa_emu_ptx_fail(run, FA_EMU_FAULT,
                    "the box lies out of bounds as a whole, and the map, with sequences one behind the other, begins "
                    "before the tensor");
}

static void issue(const fa_emu_ptx_run *run, fa_emu_bulk *bulk)
{
    fa_emu_worker *worker = bulk->issuer = fa_emu_self;
    fa_emu_pending *pending = fa_emu_pending_of(bulk->owner);
    check_inside(run, bulk->owner, bulk->shared, bulk->rows * fa_emu_map_pitch(&bulk->map));
    check_ragged(run, bulk);
    bulk->operation = (uint16_t)fa_ptx_reduction(run->instr);
    if (run->instr->types > 0)
        bulk->type = run->instr->type[0];
    bulk->name = run->instr->text;
    bulk->file = run->at->file;
    bulk->line = run->at->line;
    bulk->thread = (uint32_t)(worker->current - worker->fibres);
    bulk->group = fa_emu_pending_now()->group[bulk->thread];
    pending->bulks = fa_grow(pending->bulks, pending->bulk_count, &pending->bulk_capacity, 16, sizeof *pending->bulks);
    declare(run, bulk);
    if (bulk->kind == FA_EMU_LOAD && bulk->operation == FA_PTX_WORDS)
        poison(bulk);
    pending->bulks[pending->bulk_count++] = *bulk;
    pending->busy++;
    if (worker->launch->grid->schedule == FA_SCHEDULE_ASCENDING && bulk->kind == FA_EMU_LOAD)
        fa_emu_bulk_move(bulk->owner, pending->bulk_count - 1, 0);
}

static unsigned char *same_place(const fa_emu_worker *from, unsigned char *place, const fa_emu_worker *to)
{
    const uintptr_t offset = (uintptr_t)place - (uintptr_t)from->smem;
    return offset < from->launch->grid->smem_bytes ? to->smem + offset : place;
}

/* A load: once, or with .multicast::cluster to that offset in every block of the mask, each with its own barrier. */
static void load(const fa_emu_ptx_run *run, fa_emu_bulk *bulk)
{
    if (!fa_ptx_has(run->instr, FA_PTX_W_MULTICAST)) {
        if (bulk->owner != bulk->barrier->owner)
            fa_emu_ptx_fail(run, FA_EMU_BAD_MBARRIER, "the barrier lies in another block than the destination");
        issue(run, bulk);
        return;
    }
    const fa_emu_worker *from = bulk->owner, *of_barrier = bulk->barrier->owner;
    unsigned char *barrier_at = bulk->barrier->at;
    for (uint32_t rest = fa_ptx_in(run->instr, 4, run->r) & 0xffff; rest != 0; rest &= rest - 1) {
        const uint32_t rank = (uint32_t)__builtin_ctz(rest);
        fa_emu_bulk part = *bulk;
        part.owner = fa_emu_window_block(fa_emu_self, rank);
        if (part.owner == NULL)
            fa_emu_ptx_fail(run, FA_EMU_ABSENT_BLOCK, "the mask names block %u of a cluster of %u", rank,
                            fa_emu_self->cluster->count);
        fa_emu_ptx_reach(run, part.owner);
        part.shared = same_place(from, bulk->shared, part.owner);
        part.barrier = fa_emu_mbarrier_at(run, part.owner, same_place(of_barrier, barrier_at, part.owner));
        issue(run, &part);
    }
}

static void check_aligned(const fa_emu_ptx_run *run, const void *at, uintptr_t align, const char *what)
{
    if ((uintptr_t)at % align != 0)
        fa_emu_ptx_fail(run, FA_EMU_MISALIGNED, "the %s address is not a multiple of %u bytes", what, (unsigned)align);
}

/* A copy of bytes is a box of lines; the last line may be shorter. */
static void plain(const fa_emu_ptx_run *run, bool in)
{
    const int shared = in ? 0 : 1, other = 1 - shared;
    const uint32_t size = (uint32_t)fa_ptx_in(run->instr, 2, run->r);
    fa_emu_bulk bulk = {.kind = in ? FA_EMU_LOAD : FA_EMU_STORE,
                        .owner = fa_emu_self,
                        .from_shared = in && !fa_ptx_has(run->instr, FA_PTX_W_GLOBAL)};
    bulk.shared = in ? fa_emu_ptx_cluster_place(run, shared, &bulk.owner) : fa_emu_ptx_window_place(run, shared);
    unsigned char *from = bulk.from_shared ? fa_emu_ptx_window_place(run, other) : fa_emu_ptx_generic_place(run, other);
    /* Not in the PTX ISA: an H200 ends such a launch with "illegal instruction". */
    if (bulk.from_shared && fa_emu_self->launch->cluster == 1)
        fa_emu_ptx_fail(run, FA_EMU_ABSENT_BLOCK, "out of shared memory into shared memory needs a launch of clusters");
    if (size % BYTES_ALIGN)
        fa_emu_ptx_fail(run, FA_EMU_MISALIGNED, "the size of %u bytes is not a multiple of 16", size);
    check_aligned(run, bulk.shared, BYTES_ALIGN, "shared");
    check_aligned(run, from, BYTES_ALIGN, bulk.from_shared ? "source's shared" : "global");
    if (bulk.from_shared)
        check_inside(run, fa_emu_self, from, size);
    if (in)
        bulk.barrier = fa_emu_mbarrier_named(run, 3);
    for (uint32_t at = 0; at < size;) { /* whole lines, then the rest */
        const uint32_t left = size - at, row = left < LINE ? left : LINE, rows = left / row;
        fa_emu_bulk part = bulk;
        part.shared = bulk.shared + at;
        part.rows = rows;
        part.map = (fa_emu_map){.address = (uintptr_t)from + at,
                                .strides = {1, row},
                                .dims = {row, rows},
                                .box = {(uint16_t)row, (uint16_t)rows},
                                .element_strides = {1, 1},
                                .rank = 2};
        if (in)
            load(run, &part);
        else
            issue(run, &part);
        at += row * rows;
    }
}

/* The type of a reduction with this map; FA_PTX_TYPES: none. */
static fa_ptx_type element_type(const fa_emu_map *map)
{
    static const fa_ptx_type types[FA_EMU_MAP_TYPES] = {FA_PTX_TYPES, FA_PTX_TYPES, FA_PTX_U32,  FA_PTX_S32, FA_PTX_U64,
                                                        FA_PTX_S64,   FA_PTX_F16,   FA_PTX_F32,  FA_PTX_F32, FA_PTX_F64,
                                                        FA_PTX_BF16,  FA_PTX_TYPES, FA_PTX_TYPES};
    return types[map->type];
}

static void read_map(const fa_emu_ptx_run *run, fa_emu_bulk *bulk, unsigned char *bytes)
{
    const int rank = fa_ptx_tensor_rank(run->instr);
    check_aligned(run, bytes, MAP_ALIGN, "tensor map's");
    if (fa_emu_window_rank(bytes) >= 0)
        fa_emu_ptx_fail(run, FA_EMU_BAD_MAP, "the tensor map lies in shared memory, not in .param, .const or .global");
    if ((uintptr_t)bytes < 4096 || !fa_emu_map_decode(bytes, &bulk->map))
        fa_emu_ptx_fail(run, FA_EMU_BAD_MAP, "there is no tensor map at this address");
    if (bulk->map.rank != rank)
        fa_emu_ptx_fail(run, FA_EMU_BAD_MAP, "the tensor map has %d dimensions", bulk->map.rank);
    const char *wrong = fa_emu_map_check(&bulk->map);
    if (wrong != NULL)
        fa_emu_ptx_fail(run, bulk->map.interleaved ? FA_EMU_NOT_MODELLED : FA_EMU_BAD_MAP,
                        "no copy may use this tensor map: %s", wrong);
    if (fa_ptx_reduction(run->instr) != FA_PTX_WORDS && element_type(&bulk->map) == FA_PTX_TYPES)
        fa_emu_ptx_fail(run, FA_EMU_BAD_MAP, "elements of the tensor map's type cannot be reduced");
    bulk->map_at = bytes;
    bulk->type = (uint8_t)element_type(&bulk->map);
}

static void tensor(const fa_emu_ptx_run *run, bool in)
{
    const fa_ptx_instr *i = run->instr;
    const int rank = fa_ptx_tensor_rank(i), shared = in ? 0 : 2, map = in ? 1 : 0;
    fa_emu_bulk bulk = {.kind = in ? FA_EMU_LOAD : FA_EMU_STORE, .owner = fa_emu_self};
    bulk.shared = in ? fa_emu_ptx_cluster_place(run, shared, &bulk.owner) : fa_emu_ptx_window_place(run, shared);
    read_map(run, &bulk, fa_emu_ptx_generic_place(run, map));
    check_aligned(run, bulk.shared, BOX_ALIGN, "shared");
    for (int d = 0; d < rank; d++)
        bulk.at[d] = (int32_t)fa_ptx_read(&i->value[i->arg[map + 1].first + d], run->r);
    /* Not in the PTX ISA: an H200 ends such a launch with "illegal instruction". */
    if (bulk.at[0] * (int64_t)bulk.map.strides[0] % BYTES_ALIGN != 0)
        fa_emu_ptx_fail(run, FA_EMU_MISALIGNED, "the box begins at element %d of a row, no multiple of 16 bytes",
                        (int)bulk.at[0]);
    bulk.rows = fa_emu_map_rows(&bulk.map);
    if (!in) {
        issue(run, &bulk);
        return;
    }
    bulk.barrier = fa_emu_mbarrier_named(run, 3);
    load(run, &bulk);
}

void fa_emu_ptx_send(const fa_emu_ptx_run *run)
{
    const fa_ptx_arg from = run->instr->arg[1];
    const uint32_t size = fa_ptx_type_of(run->instr, 0)->bits / 8u, whole = size * from.count;
    fa_emu_bulk bulk = {.kind = FA_EMU_LOAD, .owner = fa_emu_self, .sent = true, .rows = 1};
    bulk.map = (fa_emu_map){
        .strides = {1, whole}, .dims = {whole, 1}, .box = {(uint16_t)whole, 1}, .element_strides = {1, 1}, .rank = 2};
    bulk.shared = fa_emu_ptx_cluster_place(run, 0, &bulk.owner);
    check_aligned(run, bulk.shared, whole, "shared");
    bulk.barrier = fa_emu_mbarrier_named(run, 2);
    for (uint32_t k = 0; k < from.count; k++) {
        const uint64_t bits = fa_ptx_read(&run->instr->value[from.first + k], run->r);
        memcpy(bulk.values + k * size, &bits, size);
    }
    load(run, &bulk);
}

static void wait_for_groups(const fa_emu_ptx_run *run)
{
    fa_emu_worker *worker = fa_emu_self;
    fa_emu_pending *pending = fa_emu_pending_now();
    const uint32_t thread = (uint32_t)(worker->current - worker->fibres), groups = pending->group[thread];
    const uint32_t left = (uint32_t)fa_ptx_in(run->instr, 0, run->r);
    if (left >= groups)
        return;
    finish_stores(worker, thread, groups - left - 1);
    fa_race_group_waited(worker, groups - left - 1, FA_RACE_STORE_READS);
    if (!fa_ptx_has(run->instr, FA_PTX_W_READ_))
        fa_race_group_waited(worker, groups - left - 1, FA_RACE_STORE_WRITES);
}

void fa_emu_ptx_bulk(fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    fa_emu_pending *pending = fa_emu_pending_now();
    if (fa_ptx_has(i, FA_PTX_W_COMMIT_GROUP))
        pending->group[fa_emu_self->current - fa_emu_self->fibres]++;
    else if (fa_ptx_has(i, FA_PTX_W_WAIT_GROUP))
        wait_for_groups(run);
    else if (fa_ptx_has(i, FA_PTX_W_PREFETCH_))
        return;
    else if (fa_ptx_has(i, FA_PTX_W_TENSOR))
        tensor(run, fa_ptx_has(i, FA_PTX_W_MBAR_BYTES));
    else
        plain(run, fa_ptx_has(i, FA_PTX_W_MBAR_BYTES));
}
