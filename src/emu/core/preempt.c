#include "emu/core/preempt.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { TICK_MS = 2, PATIENCE = 10, SIGNAL = SIGURG }; /* PATIENCE: ticks, the first time */

static _Thread_local struct {
    timer_t timer;
    bool on;
    const void *module; /* the kernel's code */
    uint64_t waits;
    int ticks, patience;
} self;

static const void *module_of(const void *code)
{
    Dl_info info;
    return dladdr(code, &info) != 0 ? info.dli_fbase : NULL;
}

static const void *interrupted(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (const void *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#else
    return (const void *)(uintptr_t)context->uc_mcontext.pc;
#endif
}

/* On the stack of the kernel's thread, and only out of its own code: the emulator and the C library are not entered
 * twice. */
static void on_tick(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    fa_emu_worker *worker = fa_emu_self;
    if (!self.on || worker == NULL || worker->current == NULL)
        return;
    self.ticks = worker->waits == self.waits ? self.ticks + 1 : 0;
    self.waits = worker->waits;
    const int error = errno;
    if (self.ticks >= self.patience && module_of(interrupted(context)) == self.module) {
        fa_emu_op op = {.kind = FA_EMU_YIELD, .name = "a loop that does not end", .file = "", .mask = ~0u};
        self.ticks = 0;
        self.patience = 1;
        worker->current->thread.api->wait(&op);
    }
    errno = error;
}

void fa_emu_preempt_begin(const fa_emu_worker *worker)
{
    struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL};
    const struct itimerspec every = {.it_interval.tv_nsec = TICK_MS * 1000000, .it_value.tv_nsec = TICK_MS * 1000000};
    event._sigev_un._tid = gettid();
    sigemptyset(&action.sa_mask);
    if (worker->race != NULL || sigaction(SIGNAL, &action, NULL) != 0 ||
        timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &self.timer) != 0)
        return;
    self.on = true;
    self.module = module_of((const void *)(uintptr_t)worker->launch->image->call);
    self.patience = PATIENCE;
    timer_settime(self.timer, 0, &every, NULL);
}

void fa_emu_preempt_end(void)
{
    if (self.on)
        timer_delete(self.timer);
    self.on = false;
}
