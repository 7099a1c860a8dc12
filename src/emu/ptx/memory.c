#include "emu/ptx/memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "emu/core/report.h"
#include "emu/core/window.h"
#include "emu/ptx/atomic.h"
#include "emu/ptx/cp_async.h"
#include "emu/race/cluster.h"

/* The sanitizers' interface for accesses that the compiler did not see, with the place in the kernel. */
static struct {
    void (*read)(void *address, unsigned long size, void *pc);
    void (*write)(void *address, unsigned long size, void *pc);
    void *(*poisoned)(void *address, size_t size);
    void (*report)(void *pc, void *bp, void *sp, void *address, int write, size_t size, uint32_t exp);
} sanitizer;

static void find_sanitizer(void)
{
    *(void **)&sanitizer.read = dlsym(RTLD_DEFAULT, "__tsan_read_range_pc");
    *(void **)&sanitizer.write = dlsym(RTLD_DEFAULT, "__tsan_write_range_pc");
    *(void **)&sanitizer.poisoned = dlsym(RTLD_DEFAULT, "__asan_region_is_poisoned");
    *(void **)&sanitizer.report = dlsym(RTLD_DEFAULT, "__asan_report_error");
}

void fa_emu_ptx_check(const fa_emu_ptx_run *run, void *address, uint32_t size, bool write)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const fa_emu_build_info *build = fa_emu_self->launch->image->build;
    if ((!build->asan && !build->tsan) || size == 0)
        return;
    pthread_once(&once, find_sanitizer);
    void *pc = (void *)(uintptr_t)run->pc, *frame = (void *)(uintptr_t)run->frame;
    void *bad = build->asan && sanitizer.poisoned ? sanitizer.poisoned(address, size) : NULL;
    if (bad != NULL && sanitizer.report)
        sanitizer.report(pc, frame, frame, bad, write, size, 0);
}

void fa_emu_ptx_touch(const fa_emu_ptx_run *run, void *address, uint32_t size, bool write)
{
    fa_emu_ptx_check(run, address, size, write);
    if (size > 0 && fa_emu_self->launch->image->build->tsan && sanitizer.read && sanitizer.write)
        (write ? sanitizer.write : sanitizer.read)(address, size, (void *)(uintptr_t)run->pc);
}

static bool is_shared(const fa_ptx_instr *i)
{
    return fa_ptx_has(i, FA_PTX_W_SHARED) || fa_ptx_has(i, FA_PTX_W_SHARED_CTA) ||
           fa_ptx_has(i, FA_PTX_W_SHARED_CLUSTER);
}

static void no_shared_address(const fa_emu_ptx_run *run, uint32_t address)
{
    const uint32_t above = address >> FA_EMU_CLUSTER_SHIFT;
    const bool peer = above > 0 && above <= fa_emu_self->cluster->count && above != fa_emu_self->rank + 1;
    fa_emu_ptx_fail(run, FA_EMU_FAULT, "0x%x is no address of shared memory (__cvta_generic_to_shared makes one)%s",
                    address, peer ? ", but one of another block's: .shared::cluster" : "");
}

static unsigned char *shared_place(const fa_emu_ptx_run *run, uint32_t address)
{
    fa_emu_worker *owner;
    unsigned char *place = fa_emu_window_place(fa_emu_self, address, &owner);
    if (place == NULL || owner != fa_emu_self)
        no_shared_address(run, address);
    return place;
}

static uint64_t address_of(const fa_emu_ptx_run *run, int arg)
{
    const fa_ptx_value *v = &run->instr->value[run->instr->arg[arg].first];
    return fa_ptx_read(v, run->r) + fa_ptx_read(v + 1, run->r);
}

unsigned char *fa_emu_ptx_window_place(const fa_emu_ptx_run *run, int arg)
{
    return shared_place(run, (uint32_t)address_of(run, arg));
}

unsigned char *fa_emu_ptx_generic_place(const fa_emu_ptx_run *run, int arg)
{
    return (unsigned char *)(uintptr_t)address_of(run, arg);
}

void fa_emu_ptx_reach(const fa_emu_ptx_run *run, const fa_emu_worker *block)
{
    const fa_emu_worker *self = fa_emu_self;
    if (block == self)
        return;
    if (block->over)
        fa_emu_ptx_fail(run, FA_EMU_ABSENT_BLOCK, "block (%u,%u,%u), which owns that shared memory, has ended",
                        block->block.x, block->block.y, block->block.z);
    if (self->race != NULL ? !fa_race_has_begun(self, block) : !block->begun)
        fa_emu_ptx_fail(
            run, FA_EMU_ABSENT_BLOCK,
            "block (%u,%u,%u), which owns that shared memory, may not have started: a cluster barrier comes "
            "before the first access",
            block->block.x, block->block.y, block->block.z);
}

unsigned char *fa_emu_ptx_cluster_place(const fa_emu_ptx_run *run, int arg, fa_emu_worker **owner)
{
    if (!fa_ptx_has(run->instr, FA_PTX_W_SHARED_CLUSTER)) {
        *owner = fa_emu_self;
        return is_shared(run->instr) ? fa_emu_ptx_window_place(run, arg) : fa_emu_ptx_generic_place(run, arg);
    }
    const uint32_t address = (uint32_t)address_of(run, arg);
    unsigned char *place = fa_emu_window_place(fa_emu_self, address, owner);
    if (*owner == NULL)
        fa_emu_ptx_fail(run, FA_EMU_ABSENT_BLOCK, "0x%x is in block %u of a cluster of %u", address,
                        (address >> FA_EMU_CLUSTER_SHIFT) - 1, fa_emu_self->cluster->count);
    if (place == NULL)
        no_shared_address(run, address);
    fa_emu_ptx_reach(run, *owner);
    return place;
}

/* cp.async names both spaces: the first operand is the shared one. */
static unsigned char *place_of(const fa_emu_ptx_run *run, int arg)
{
    const fa_ptx_instr *i = run->instr;
    const bool shared = i->op == FA_PTX_OP_CP ? arg == 0 : is_shared(i);
    fa_emu_worker *owner = NULL;
    unsigned char *place;
    if (i->op != FA_PTX_OP_CP && fa_ptx_has(i, FA_PTX_W_SHARED_CLUSTER)) {
        place = fa_emu_ptx_cluster_place(run, arg, &owner);
        return fa_emu_window_now(owner, place);
    }
    if (shared)
        return fa_emu_ptx_window_place(run, arg);
    unsigned char *generic = fa_emu_ptx_generic_place(run, arg);
    if (i->family == FA_PTX_MATRIX && fa_emu_window_rank(generic) != (int32_t)fa_emu_self->rank)
        fa_emu_ptx_fail(run, FA_EMU_FAULT, "without .shared the address is generic, and not one of shared memory");
    if (fa_emu_self->cluster->count > 1 && (owner = fa_emu_window_owner(fa_emu_self, generic, &place)) != NULL)
        fa_emu_ptx_reach(run, owner);
    return generic;
}

unsigned char *fa_emu_ptx_access(const fa_emu_ptx_run *run, int arg, uint32_t size, uint32_t align, bool write)
{
    unsigned char *place = place_of(run, arg);
    if ((uintptr_t)place % align != 0)
        fa_emu_ptx_fail(run, FA_EMU_MISALIGNED, "the address is not a multiple of %u bytes", align);
    if ((uintptr_t)place < 4096)
        fa_emu_ptx_fail(run, FA_EMU_FAULT, "the address is %p", (void *)place);
    fa_emu_ptx_touch(run, place, size, write);
    return place;
}

static int order_of(const fa_ptx_instr *i)
{
    const bool acquire = fa_ptx_has(i, FA_PTX_W_ACQUIRE), release = fa_ptx_has(i, FA_PTX_W_RELEASE);
    if (fa_ptx_has(i, FA_PTX_W_ACQ_REL) || (acquire && release))
        return __ATOMIC_ACQ_REL;
    return acquire ? __ATOMIC_ACQUIRE : release ? __ATOMIC_RELEASE : __ATOMIC_RELAXED;
}

/* .relaxed, .acquire, .release, .volatile: no race with others of that kind */
static bool is_strong(const fa_ptx_instr *i)
{
    return fa_ptx_has(i, FA_PTX_W_RELAXED) || fa_ptx_has(i, FA_PTX_W_ACQUIRE) || fa_ptx_has(i, FA_PTX_W_RELEASE) ||
           fa_ptx_has(i, FA_PTX_W_VOLATILE);
}

static unsigned char *strong_place(const fa_emu_ptx_run *run, int arg, uint32_t size)
{
    unsigned char *place = place_of(run, arg);
    if ((uintptr_t)place % size != 0)
        fa_emu_ptx_fail(run, FA_EMU_MISALIGNED, "the address is not a multiple of %u bytes", size);
    return place;
}

/* A thread that reads in a loop may wait for another one. The race detector does this for any loop. */
static void let_others_run(const fa_emu_ptx_run *run)
{
    fa_emu_worker *worker = fa_emu_self;
    if (worker->race != NULL || ++worker->turns % FA_EMU_POLLS != 0)
        return;
    fa_emu_ptx_meet(run, FA_EMU_YIELD, run->instr->name);
}

/* The elements of ld and st, one after the other. */
static void load(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    const fa_ptx_arg to = i->arg[0];
    const uint32_t size = fa_ptx_type_of(i, 0)->bits / 8u, whole = size * to.count;
    const bool strong = is_strong(i);
    let_others_run(run);
    const unsigned char *from = strong ? strong_place(run, 1, whole) : fa_emu_ptx_access(run, 1, whole, whole, false);
    unsigned char bytes[64];
    memcpy(bytes, from, strong ? 0 : whole);
    for (uint32_t k = 0; k < to.count; k++) {
        uint64_t bits = 0;
        if (strong)
            bits = fa_emu_ptx_atomic_load(run, from + k * size, size, order_of(i));
        else
            memcpy(&bits, bytes + k * size, size);
        fa_ptx_write(&i->value[to.first + k], run->r, fa_ptx_fit(bits, fa_ptx_type_of(i, 0)));
    }
}

static void store(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    const fa_ptx_arg from = i->arg[1];
    const uint32_t size = fa_ptx_type_of(i, 0)->bits / 8u, whole = size * from.count;
    const bool strong = is_strong(i);
    unsigned char *to = strong ? strong_place(run, 0, whole) : fa_emu_ptx_access(run, 0, whole, whole, true);
    for (uint32_t k = 0; k < from.count; k++) {
        const uint64_t bits = fa_ptx_read(&i->value[from.first + k], run->r);
        if (strong)
            fa_emu_ptx_atomic_store(run, to + k * size, size, bits, order_of(i));
        else
            memcpy(to + k * size, &bits, size);
    }
}

/* atom d, [a], b {, c}; red [a], b. A vector's elements one after the other. */
static void atomic(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    const int at = i->op == FA_PTX_OP_ATOM ? 1 : 0;
    const fa_ptx_arg from = i->arg[at + 1], to = i->arg[0];
    const uint32_t size = fa_ptx_type_of(i, 0)->bits / 8u;
    let_others_run(run);
    unsigned char *place = strong_place(run, at, size * from.count);
    const uint64_t c = fa_ptx_has(i, FA_PTX_W_CAS) ? fa_ptx_in(i, at + 2, run->r) : 0;
    for (uint32_t k = 0; k < from.count; k++) {
        const uint64_t b = fa_ptx_read(&i->value[from.first + k], run->r);
        const uint64_t old = fa_emu_ptx_atomic(run, place + k * size, size, b, c, order_of(i));
        if (i->op == FA_PTX_OP_ATOM)
            fa_ptx_write(&i->value[to.first + k], run->r, fa_ptx_fit(old, fa_ptx_type_of(i, 0)));
    }
}

static int32_t source_bytes(const fa_emu_ptx_run *run, int32_t size)
{
    const fa_ptx_instr *i = run->instr;
    const int count = i->args - fa_ptx_has(i, FA_PTX_W_L2_CACHE_HINT);
    if (count < 4)
        return size;
    const uint64_t more = fa_ptx_in(i, 3, run->r);
    const bool ignore = i->value[i->arg[3].first].predicate;
    return ignore ? (more ? 0 : size) : (int32_t)more;
}

static void copy(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    if (fa_ptx_has(i, FA_PTX_W_COMMIT_GROUP)) {
        fa_emu_cp_async_commit();
    } else if (fa_ptx_has(i, FA_PTX_W_WAIT_ALL)) {
        fa_emu_cp_async_wait(0, 1);
    } else if (fa_ptx_has(i, FA_PTX_W_WAIT_GROUP)) {
        fa_emu_cp_async_wait((int32_t)fa_ptx_in(i, 0, run->r), 0);
    } else {
        const int32_t size = (int32_t)fa_ptx_in(i, 2, run->r), bytes = source_bytes(run, size);
        if ((size != 4 && size != 8 && size != 16) || bytes < 0 || bytes > size)
            fa_emu_ptx_fail(run, FA_EMU_MISALIGNED, "%d bytes of %d: the size is 4, 8 or 16, the source no longer",
                            bytes, size);
        unsigned char *to = fa_emu_ptx_access(run, 0, (uint32_t)size, (uint32_t)size, true);
        const unsigned char *from = place_of(run, 1);
        fa_emu_ptx_touch(run, (void *)(uintptr_t)from, (uint32_t)bytes, false);
        fa_emu_cp_async(to, from, size, bytes, run->at->file, run->at->line);
    }
}

/* The generic pointer that an address of the instruction's space stands for. */
static unsigned char *generic_of(const fa_emu_ptx_run *run, uint32_t address)
{
    fa_emu_worker *owner;
    unsigned char *place = fa_emu_window_place(fa_emu_self, address, &owner);
    if (place == NULL || (owner != fa_emu_self && !fa_ptx_has(run->instr, FA_PTX_W_SHARED_CLUSTER)))
        no_shared_address(run, address);
    return fa_emu_window_now(owner, place);
}

/* cvta.space d, a: to generic; cvta.to.space: from generic. Only shared addresses differ from generic ones. */
static void space(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    const void *p = (const void *)(uintptr_t)fa_ptx_in(i, 1, run->r);
    const int32_t rank = fa_emu_window_rank(p), self = (int32_t)fa_emu_self->rank;
    const bool cluster = fa_ptx_has(i, FA_PTX_W_SHARED_CLUSTER);
    if (i->op == FA_PTX_OP_ISSPACEP)
        fa_ptx_out(i, run->r, (cluster ? rank >= 0 : rank == self) == is_shared(i));
    else if (!is_shared(i))
        fa_ptx_out(i, run->r, (uintptr_t)p);
    else if (!fa_ptx_has(i, FA_PTX_W_TO))
        fa_ptx_out(i, run->r, (uintptr_t)generic_of(run, (uint32_t)(uintptr_t)p));
    else if (rank >= 0)
        fa_ptx_out(i, run->r, fa_emu_window_address(p));
    else
        fa_ptx_out(i, run->r, fa_emu_shared_address(p, fa_emu_self->smem, fa_emu_self->launch->image->build));
}

/* mapa d, a, rank: the same place in another block; getctarank d, a. Of generic pointers, or of addresses. */
static void map(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    const bool address = fa_ptx_has(i, FA_PTX_W_SHARED_CLUSTER);
    const uint64_t a = fa_ptx_in(i, 1, run->r);
    const void *p = address ? generic_of(run, (uint32_t)a) : (const void *)(uintptr_t)a;
    if (i->op == FA_PTX_OP_GETCTARANK) {
        fa_ptx_out(i, run->r, (uint32_t)fa_emu_window_rank(p));
        return;
    }
    const uint32_t rank = (uint32_t)fa_ptx_in(i, 2, run->r);
    const void *to = fa_emu_window_map(p, rank);
    if (rank >= fa_emu_self->cluster->count)
        fa_emu_ptx_fail(run, FA_EMU_ABSENT_BLOCK, "block %u of a cluster of %u", rank, fa_emu_self->cluster->count);
    if (to == NULL)
        fa_emu_ptx_fail(run, FA_EMU_FAULT, "the address is not in shared memory");
    fa_ptx_out(i, run->r, address ? fa_emu_window_address(to) : (uintptr_t)to);
}

void fa_emu_ptx_memory(fa_emu_ptx_run *run)
{
    switch (run->instr->op) {
    case FA_PTX_OP_LD:
    case FA_PTX_OP_LDU:
        load(run);
        break;
    case FA_PTX_OP_ST:
        store(run);
        break;
    case FA_PTX_OP_CP:
        copy(run);
        break;
    case FA_PTX_OP_CVTA:
    case FA_PTX_OP_ISSPACEP:
        space(run);
        break;
    case FA_PTX_OP_MAPA:
    case FA_PTX_OP_GETCTARANK:
        map(run);
        break;
    default:
        atomic(run);
    }
}
