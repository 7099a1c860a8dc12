#include "emu/ptx_memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "emu/async.h"
#include "emu/ptx_atomic.h"
#include "emu/report.h"

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

static void declare(const fa_emu_ptx_run *run, void *address, uint32_t size, bool write)
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

static unsigned char *shared_place(const fa_emu_ptx_run *run, uint32_t address)
{
    unsigned char *place = fa_emu_shared_place(address, fa_emu_self->smem, fa_emu_self->launch->image->build);
    if (place == NULL)
        fa_emu_ptx_fail(run, FA_EMU_FAULT, "0x%x is no address of shared memory (__cvta_generic_to_shared makes one)",
                        address);
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

unsigned char *fa_emu_ptx_shared_place(const fa_emu_ptx_run *run, int arg)
{
    return is_shared(run->instr) ? fa_emu_ptx_window_place(run, arg) : fa_emu_ptx_generic_place(run, arg);
}

/* cp.async names both spaces: the first operand is the shared one. */
static unsigned char *place_of(const fa_emu_ptx_run *run, int arg)
{
    const fa_ptx_instr *i = run->instr;
    const bool shared = i->op == FA_PTX_OP_CP ? arg == 0 : is_shared(i) || i->family == FA_PTX_MATRIX;
    return shared ? fa_emu_ptx_window_place(run, arg) : fa_emu_ptx_generic_place(run, arg);
}

unsigned char *fa_emu_ptx_access(const fa_emu_ptx_run *run, int arg, uint32_t size, uint32_t align, bool write)
{
    unsigned char *place = place_of(run, arg);
    if ((uintptr_t)place % align != 0)
        fa_emu_ptx_fail(run, FA_EMU_MISALIGNED, "the address is no multiple of %u bytes", align);
    if ((uintptr_t)place < 4096)
        fa_emu_ptx_fail(run, FA_EMU_FAULT, "the address is %p", (void *)place);
    declare(run, place, size, write);
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
        fa_emu_ptx_fail(run, FA_EMU_MISALIGNED, "the address is no multiple of %u bytes", size);
    return place;
}

/* The elements of ld and st, one after the other. */
static void load(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    const fa_ptx_arg to = i->arg[0];
    const uint32_t size = fa_ptx_type_of(i, 0)->bits / 8u, whole = size * to.count;
    const bool strong = is_strong(i);
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

/* atom d, [a], b {, c}; red [a], b */
static void atomic(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    const int at = i->op == FA_PTX_OP_ATOM ? 1 : 0;
    const uint32_t size = fa_ptx_type_of(i, 0)->bits / 8u;
    unsigned char *place = strong_place(run, at, size);
    const uint64_t b = fa_ptx_in(i, at + 1, run->r), c = fa_ptx_has(i, FA_PTX_W_CAS) ? fa_ptx_in(i, at + 2, run->r) : 0;
    const uint64_t old = fa_emu_ptx_atomic(run, place, size, b, c, order_of(i));
    if (i->op == FA_PTX_OP_ATOM)
        fa_ptx_out(i, run->r, fa_ptx_fit(old, fa_ptx_type_of(i, 0)));
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
        declare(run, (void *)(uintptr_t)from, (uint32_t)bytes, false);
        fa_emu_cp_async(to, from, size, bytes, run->at->file, run->at->line);
    }
}

/* cvta.space d, a: to generic; cvta.to.space: from generic. Only shared addresses differ from generic ones. */
static void space(const fa_emu_ptx_run *run)
{
    const fa_ptx_instr *i = run->instr;
    const uint64_t a = fa_ptx_in(i, 1, run->r);
    const unsigned char *smem = fa_emu_self->smem;
    const fa_emu_build_info *build = fa_emu_self->launch->image->build;
    if (i->op == FA_PTX_OP_ISSPACEP)
        fa_ptx_out(i, run->r,
                   fa_emu_is_shared((const void *)(uintptr_t)a, smem, fa_emu_self->launch->grid->smem_bytes, build) ==
                       is_shared(i));
    else if (!is_shared(i))
        fa_ptx_out(i, run->r, a);
    else if (fa_ptx_has(i, FA_PTX_W_TO))
        fa_ptx_out(i, run->r, fa_emu_shared_address((const void *)(uintptr_t)a, smem, build));
    else
        fa_ptx_out(i, run->r, (uintptr_t)shared_place(run, (uint32_t)a));
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
    default:
        atomic(run);
    }
}
