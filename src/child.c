#include "child.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "emu/emu_preload.h"

static volatile sig_atomic_t child_group;

static void forward_and_die(int signal_number)
{
    if (child_group > 0)
        kill(-child_group, SIGKILL);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* What parent and child share. */
typedef struct shared_runs {
    _Atomic int32_t finished; /* runs that the child has left behind for a next one */
    fa_result results[];
} shared_runs;

_Noreturn static void run_child(fa_work *work, const fa_options options[], int32_t from, int32_t count, shared_runs *shared)
{
    setpgid(0, 0); /* so that a kill reaches the compilers it starts, too */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* stdout is the report's alone */
    for (int32_t i = from; i < count; i++) {
        work(&options[i], &shared->results[i]);
        fa_stage_enter(&shared->results[i], FA_AT_END);
        if (i + 1 == count || shared->results[i].status == FA_ERROR)
            break; /* after an error the context may be lost: the next run gets a process of its own */
        shared->finished = i + 1;
        kill(getppid(), SIGCHLD); /* wakes wait_for */
    }
    fflush(NULL);
    exit(0);
}

typedef enum { CHILD_ENDED, CHILD_GOES_ON, CHILD_LATE } child_state;

/* Until the child ends, goes on to another run than `run`, or its time is over. */
static child_state wait_for(pid_t child, const shared_runs *shared, int32_t run, double seconds, int *how)
{
    const double end = fa_now_s() + seconds;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (;;) {
        const pid_t got = waitpid(child, how, WNOHANG);
        const double left = end - fa_now_s();
        if (got == child)
            return CHILD_ENDED;
        if (shared->finished > run)
            return CHILD_GOES_ON;
        if (left <= 0)
            return CHILD_LATE;
        const struct timespec pause = {.tv_sec = (time_t)left, .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
        sigtimedwait(&set, NULL, &pause);
    }
}

static const char *const stage_names[] = {
    [FA_AT_START] = "starting",   [FA_AT_COMPILE] = "compiling",       [FA_AT_LOAD] = "loading",
    [FA_AT_CHECK] = "checking",   [FA_AT_TIMING] = "timing",           [FA_AT_RECHECK] = "checking after timing",
    [FA_AT_END] = "cleaning up",
};

/* What the child itself could not say any more. */
static void explain_end(bool ended, int how, pid_t child, const fa_options *options, fa_result *result)
{
    const char *stage = stage_names[result->stage];
    if (!ended)
        result->status = fa_refuse(&result->reason, FA_TIMEOUT, "killed after %g s while %s", options->timeout, stage);
    else if (WIFSIGNALED(how))
        result->status = fa_refuse(&result->reason, FA_ERROR, "died of signal %d (%s) while %s", WTERMSIG(how),
                                   strsignal(WTERMSIG(how)), stage);
    else if (WEXITSTATUS(how) == FA_EMU_SANITIZER_EXIT &&
             fa_emu_sanitizer_report((int)child, result->reason.text, sizeof result->reason.text))
        result->status = FA_WRONG;
    else if (WEXITSTATUS(how) != 0)
        result->status = fa_refuse(&result->reason, FA_ERROR, "ended with code %d while %s", WEXITSTATUS(how), stage);
    else if (result->stage != FA_AT_END)
        result->status = fa_refuse(&result->reason, FA_ERROR, "ended early while %s", stage);
}

/* One child, from run `at` on, until it ends or is ended; returns the run after the last that it tried. */
static int32_t one_child(fa_work *work, const fa_options options[], int32_t at, int32_t count, shared_runs *shared,
                         fa_run_done *done, void *self, const sigset_t *mask)
{
    fflush(NULL);
    const pid_t child = fork();
    FA_ASSERT(child >= 0, "%s", strerror(errno));
    if (child == 0) {
        sigprocmask(SIG_SETMASK, mask, NULL);
        run_child(work, options, at, count, shared);
    }
    setpgid(child, child);
    child_group = child;
    signal(SIGINT, forward_and_die);
    signal(SIGTERM, forward_and_die);
    int how = 0;
    child_state state = CHILD_GOES_ON;
    while (state == CHILD_GOES_ON) {
        state = wait_for(child, shared, at, options[at].timeout, &how);
        for (; at < shared->finished; at++)
            done(self, at, &shared->results[at]);
    }
    kill(-child, SIGKILL);
    if (state == CHILD_LATE)
        waitpid(child, &how, 0);
    child_group = 0;
    explain_end(state == CHILD_ENDED, how, child, &options[at], &shared->results[at]);
    done(self, at, &shared->results[at]);
    return at + 1;
}

void fa_child_runs(fa_work *work, const fa_options options[], int32_t count, fa_run_done *done, void *self)
{
    const size_t size = sizeof(shared_runs) + (size_t)count * sizeof(fa_result);
    shared_runs *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    FA_ASSERT(shared != MAP_FAILED, "%s", strerror(errno));
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &before);
    for (int32_t at = 0; at < count;) {
        for (int32_t i = at; i < count; i++)
            shared->results[i].status = FA_ERROR; /* until it says otherwise */
        at = one_child(work, options, at, count, shared, done, self, &before);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    munmap(shared, size);
}
