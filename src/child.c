#include "child.h"

#include <errno.h>
#include <signal.h>
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

_Noreturn static void run_child(fa_work *work, const fa_options *options, fa_result *result)
{
    setpgid(0, 0); /* so that a kill reaches the compilers it starts, too */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* stdout is the report's alone */
    work(options, result);
    fa_stage_enter(result, FA_AT_END);
    fflush(NULL);
    exit(0);
}

/* True when the child ended within the time. */
static bool wait_for(pid_t child, double seconds, int *how)
{
    const double end = fa_now_s() + seconds;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (;;) {
        const pid_t got = waitpid(child, how, WNOHANG);
        const double left = end - fa_now_s();
        if (got == child)
            return true;
        if (left <= 0)
            return false;
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

fa_result *fa_child_run(fa_work *work, const fa_options *options)
{
    fa_result *result = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FA_ASSERT(result != MAP_FAILED, "%s", strerror(errno));
    result->status = FA_ERROR;
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &before);
    fflush(NULL);
    const pid_t child = fork();
    FA_ASSERT(child >= 0, "%s", strerror(errno));
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        run_child(work, options, result);
    }
    setpgid(child, child);
    child_group = child;
    signal(SIGINT, forward_and_die);
    signal(SIGTERM, forward_and_die);
    int how = 0;
    const bool ended = wait_for(child, options->timeout, &how);
    kill(-child, SIGKILL);
    if (!ended)
        waitpid(child, &how, 0);
    child_group = 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    explain_end(ended, how, child, options, result);
    return result;
}
