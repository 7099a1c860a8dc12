#include "emu/core/preempt.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <ucontext.h>

#include "emu/core/fibre.h"

/* PATIENCE: ticks, the first time. IDLE_ROUNDS: what a tick counts for until another block runs. */
enum { TICK_MS = 2, PATIENCE = 10, IDLE_ROUNDS = 8, SIGNAL = SIGURG };

static _Thread_local struct {
    timer_t timer;
    bool on;
    uintptr_t begin, end; /* the kernel's code */
    uint64_t waits;
    int ticks, patience;
} self;

/* The part of an object's code that holds self.begin. */
static int find_code(struct dl_phdr_info *object, size_t size, void *found)
{
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || self.begin - begin >= part->p_memsz)
            continue;
        self.begin = begin;
        self.end = begin + part->p_memsz;
        *(bool *)found = true;
        return 1;
    }
    return 0;
}

static uintptr_t interrupted(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    return (uintptr_t)context->uc_mcontext.pc;
#endif
}

/* On the stack of the kernel's thread, and only out of its own code: the emulator and the C library are not entered
 * twice. The code's addresses are looked up before: the handler may interrupt whoever holds the loader's lock. */
static void on_tick(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    fa_emu_worker *worker = fa_emu_self;
    if (!self.on || worker == NULL || worker->current == NULL)
        return;
    self.ticks = worker->waits == self.waits ? self.ticks + 1 : 0;
    self.waits = worker->waits;
    const int error = errno;
    if (self.ticks >= self.patience && interrupted(context) - self.begin < self.end - self.begin) {
        fa_emu_op op = {.kind = FA_EMU_YIELD, .name = "a loop that does not end", .file = "", .mask = ~0u};
        self.ticks = 0;
        self.patience = 1;
        worker->idle_rounds += IDLE_ROUNDS;
        fa_emu_pause_idle_block(worker);
        worker->current->thread.api->wait(&op);
    }
    errno = error;
}

void fa_emu_preempt_begin(const fa_emu_launch *launch)
{
    struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL};
    const struct itimerspec every = {.it_interval.tv_nsec = TICK_MS * 1000000, .it_value.tv_nsec = TICK_MS * 1000000};
    event._sigev_un._tid = gettid();
    bool found = false;
    sigemptyset(&action.sa_mask);
    self.begin = (uintptr_t)launch->image->call;
    dl_iterate_phdr(find_code, &found);
    if (!found || launch->race != NULL || sigaction(SIGNAL, &action, NULL) != 0 ||
        timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &self.timer) != 0)
        return;
    self.on = true;
    self.patience = PATIENCE;
    timer_settime(self.timer, 0, &every, NULL);
}

void fa_emu_preempt_end(void)
{
    if (self.on)
        timer_delete(self.timer);
    self.on = false;
}
