/* Each stack is a mapping of its own with a guard page. The switch saves the registers a callee must keep. */
#include "emu/core/fibre.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emu/core/preload.h"

enum { GUARD_BYTES = 4096, STACK_BYTES = 64 << 10, STACK_BYTES_SANITIZED = 256 << 10 };

/* fa_emu_jump(void **save_sp, void *sp): callee-saved registers go to the stack being left, its pointer to *save_sp. */
void fa_emu_jump(void **save_sp, void *sp);

#if defined(__x86_64__)
__asm__(".text\n.globl fa_emu_jump\n.hidden fa_emu_jump\n.type fa_emu_jump,@function\nfa_emu_jump:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n.size fa_emu_jump,.-fa_emu_jump\n");
/* six registers, the return address, and one word that keeps the stack aligned as the ABI asks */
enum { FRAME_WORDS = 8, FRAME_RETURN = 6 };
#elif defined(__aarch64__)
__asm__(".text\n.globl fa_emu_jump\n.hidden fa_emu_jump\n.type fa_emu_jump,%function\nfa_emu_jump:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
        "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
        "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n  ret\n.size fa_emu_jump,.-fa_emu_jump\n");
enum { FRAME_WORDS = 20, FRAME_RETURN = 11 };
#else
#error "the emulator's fibre switch is written for x86-64 and aarch64"
#endif

bool fa_emu_fibres_make(fa_emu_worker *worker, uint32_t count)
{
    const bool sanitized = worker->launch->image->build->asan || worker->launch->image->build->tsan;
    const size_t stack = sanitized ? STACK_BYTES_SANITIZED : STACK_BYTES;
    worker->fibres = calloc(count, sizeof *worker->fibres);
    if (!worker->fibres)
        return false;
    worker->fibre_count = count;
    for (uint32_t i = 0; i < count; i++) {
        unsigned char *base = mmap(NULL, stack + GUARD_BYTES, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (base == MAP_FAILED || mprotect(base, GUARD_BYTES, PROT_NONE)) {
            worker->fibre_count = i;
            return false;
        }
        worker->fibres[i].stack = base + GUARD_BYTES;
        worker->fibres[i].stack_size = stack;
    }
    return true;
}

void fa_emu_fibres_free(fa_emu_worker *worker)
{
    for (uint32_t i = 0; i < worker->fibre_count; i++) {
        fa_emu_fibre *fibre = &worker->fibres[i];
        if (fa_emu_san.unpoison)
            fa_emu_san.unpoison(fibre->stack, fibre->stack_size);
        munmap(fibre->stack - GUARD_BYTES, fibre->stack_size + GUARD_BYTES);
        free(fibre->async.copies);
    }
    free(worker->fibres);
    worker->fibres = NULL;
    worker->fibre_count = 0;
}

void fa_emu_fibre_reset(fa_emu_fibre *fibre, void (*entry)(void))
{
    void **top = (void **)(fibre->stack + fibre->stack_size) - FRAME_WORDS;
    memset(top, 0, FRAME_WORDS * sizeof *top);
    top[FRAME_RETURN] = (void *)entry;
    fibre->sp = top;
    fibre->op = NULL;
    fibre->cluster_arrived = false;
    fibre->asan_fake_stack = NULL;
}

void fa_emu_switch(fa_emu_worker *worker, fa_emu_fibre *to, bool dying)
{
    fa_emu_fibre *from = worker->current;
    void **save = from ? &from->sp : &worker->main_sp;
    void *sp = to ? to->sp : worker->main_sp;
    worker->current = to;
    *worker->slot.now = to ? &to->thread : NULL;
    if (to) {
        *worker->slot.thread = to->thread.thread;
        *worker->slot.block = to->thread.block;
        *worker->slot.block_dim = to->thread.block_dim;
        *worker->slot.grid_dim = to->thread.grid_dim;
    }
    if (!worker->annotated) {
        fa_emu_jump(save, sp);
        return;
    }
    void **fake = from ? &from->asan_fake_stack : &worker->main_asan_fake_stack;
    if (fa_emu_san.start_switch)
        fa_emu_san.start_switch(dying ? NULL : fake, to ? to->stack : worker->main_stack,
                                to ? to->stack_size : worker->main_stack_size);
    fa_emu_jump(save, sp);
    if (fa_emu_san.finish_switch)
        fa_emu_san.finish_switch(*fake, NULL, NULL);
}

void fa_emu_pause_block(fa_emu_worker *worker)
{
    worker->paused = true;
    worker->resume = worker->current;
    fa_emu_switch(worker, NULL, false);
}

void fa_emu_pause_idle_block(fa_emu_worker *worker)
{
    enum { IDLE_ROUNDS = 64 };
    if (worker->idle_rounds < IDLE_ROUNDS || worker->stopped || worker->race != NULL)
        return;
    worker->idle_rounds = 0;
    fa_emu_pause_block(worker);
}
