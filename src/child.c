#include "child.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "compile/cache.h"
#include "emu/core/preload.h"
#include "report/progress.h"

static volatile sig_atomic_t child_group;

/* Asks the processes of the group to end and tidy up; those that do not are killed. Safe in a signal's handler. */
static void end_group(pid_t group, int *how)
{
    const struct timespec nap = {.tv_nsec = 10 * 1000 * 1000};
    bool gone = false;
    kill(-group, SIGTERM);
    for (int i = 0; i < 100 && !gone; i++) {
        gone = waitpid(group, how, WNOHANG) != 0;
        if (!gone)
            nanosleep(&nap, NULL);
    }
    kill(-group, SIGKILL);
    if (!gone)
        waitpid(group, how, 0);
}

static void forward_and_die(int signal_number)
{
    if (child_group > 0)
        end_group(child_group, NULL);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* Asks for another run: what the parent sends for one, after the run's line when lines come one by one. */
typedef struct order {
    int32_t number;
    uint32_t size; /* of the text that follows; 0: the run is in the list that the child was born with */
} order;

/* True when the parent wants another run, which is then in the list. */
static bool hand_over(int line, fa_runs *runs)
{
    const char byte = 'd';
    order next;
    if (send(line, &byte, 1, MSG_NOSIGNAL) != 1 || recv(line, &next, sizeof next, MSG_WAITALL) != sizeof next)
        return false;
    if (next.size == 0)
        return true;
    char *text = fa_alloc(next.size + 1);
    const bool whole = recv(line, text, next.size, MSG_WAITALL) == (ssize_t)next.size;
    if (whole)
        fa_runs_append(runs, text, next.size, next.number);
    free(text);
    return whole;
}

/* In the child, when it is asked to end or its parent is gone: its compilers end, and nothing half built is left. */
static void tidy_and_die(int signal_number)
{
    const struct timespec nap = {.tv_nsec = 50 * 1000 * 1000};
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    nanosleep(&nap, NULL);
    fa_cache_abandon();
    kill(0, SIGKILL);
    _exit(128 + signal_number);
}

_Noreturn static void run_child(int line, fa_work *work, fa_runs *runs, size_t first, fa_result *result)
{
    fa_device device = {.self = NULL};
    setpgid(0, 0); /* so that a kill reaches the compilers it starts, too */
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGTERM, tidy_and_die);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* only the report writes to stdout */
    for (size_t i = first;; i++) {
        work(&runs->at[i], result, &device);
        if (result->status == FA_ERROR || (i + 1 == runs->count && runs->in == NULL))
            break;
        fa_cache_tidy();
        fa_stage_enter(result, FA_AT_END);
        fflush(NULL);
        if (!hand_over(line, runs))
            exit(0);
        fa_result_lend(result, &runs->at[i + 1]);
    }
    if (device.close != NULL)
        device.close(&device);
    fa_stage_enter(result, FA_AT_END);
    fflush(NULL);
    exit(0);
}

typedef enum { RUN_DONE, CHILD_ENDED, TIME_OVER } outcome;

static struct timespec span(double seconds)
{
    const double whole = seconds > 0 ? floor(seconds) : 0;
    return (struct timespec){.tv_sec = (time_t)whole, .tv_nsec = seconds > 0 ? (long)((seconds - whole) * 1e9) : 0};
}

/* A byte on the line says that the run is done. When the process ends first, its end of the line closes. */
static outcome wait_for(const fa_child *child, const fa_runs *runs, size_t index, int *how)
{
    const double start = fa_now_s(), end = start + runs->at[index].options.timeout, look_s = 0.5;
    for (;;) {
        struct pollfd at = {.fd = child->line, .events = POLLIN};
        const double left_s = end - fa_now_s();
        const struct timespec left = span(left_s < look_s ? left_s : look_s), nap = span(0.001);
        char byte;
        const int ready = ppoll(&at, 1, &left, NULL);
        if (ready > 0 && recv(child->line, &byte, 1, MSG_DONTWAIT) == 1)
            return RUN_DONE;
        if (waitpid(child->pid, how, WNOHANG) == child->pid)
            return CHILD_ENDED;
        if (fa_now_s() >= end)
            return TIME_OVER;
        fa_progress_show(child->result, runs, index, fa_now_s() - start);
        if (ready > 0)
            nanosleep(&nap, NULL); /* closed, not yet ended */
    }
}

/* With a command that does less, where a smaller problem helps. */
static void explain_timeout(const fa_command *run, fa_result *result)
{
    const fa_problem *p = &run->problem;
    const char *stage = fa_stage_name(result->stage);
    const bool large = (int64_t)p->batch * p->heads * p->seq_q * p->seq_kv > 2 * 128 * 128 || run->options.seeds > 1;
    const bool works = result->stage >= FA_AT_LOAD && run->options.load == NULL;
    char *command = fa_command_text(run);
    result->status = fa_refuse(&result->reason, FA_TIMEOUT, "killed after %g s while %s; %s: %.2000s%s",
                               run->options.timeout, stage, works && large ? "smaller" : "with more time", command,
                               works && large ? " --batch 1 --heads 1 --kv-heads 1 --seq 128 --seq-kv 128 --seeds 1"
                                              : " --timeout 1200");
    free(command);
}

/* A sanitizer ended it: says what it found. */
static bool explain_finding(fa_child *child, pid_t pid)
{
    fa_reason *why = &child->result->reason;
    child->dump = fa_emu_sanitizer_report((int)pid, why->text, sizeof why->text);
    return child->dump != NULL;
}

/* How the child ended, where it could not report that itself. */
static void explain_end(bool ended, int how, pid_t pid, const fa_command *run, fa_child *child)
{
    fa_result *result = child->result;
    const char *stage = fa_stage_name(result->stage);
    if (!ended)
        explain_timeout(run, result);
    else if (WIFSIGNALED(how))
        result->status = fa_refuse(&result->reason, FA_ERROR, "died of signal %d (%s) while %s", WTERMSIG(how),
                                   strsignal(WTERMSIG(how)), stage);
    else if (WEXITSTATUS(how) == FA_EMU_SANITIZER_EXIT && explain_finding(child, pid))
        result->status = FA_WRONG;
    else if (WEXITSTATUS(how) != 0)
        result->status = fa_refuse(&result->reason, FA_ERROR, "ended with code %d while %s", WEXITSTATUS(how), stage);
    else if (result->stage != FA_AT_END)
        result->status = fa_refuse(&result->reason, FA_ERROR, "ended early while %s", stage);
}

static void start(fa_child *child, fa_work *work, fa_runs *runs, size_t first)
{
    int ends[2];
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit is an error that is reported */
    FA_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "%s", strerror(errno));
    fflush(NULL);
    const pid_t pid = fork();
    FA_ASSERT(pid >= 0, "%s", strerror(errno));
    if (pid == 0) {
        close(ends[0]);
        run_child(ends[1], work, runs, first, child->result);
    }
    close(ends[1]);
    setpgid(pid, pid);
    child->pid = pid;
    child->line = ends[0];
    child_group = pid;
    if (signal(SIGHUP, SIG_IGN) != SIG_IGN) /* not under nohup */
        signal(SIGHUP, forward_and_die);
    signal(SIGINT, forward_and_die);
    signal(SIGTERM, forward_and_die);
}

void fa_child_end(fa_child *child)
{
    free(child->dump);
    child->dump = NULL;
    if (child->pid == 0)
        return;
    child_group = 0;
    end_group(child->pid, NULL); /* also the processes that it started */
    close(child->line);
    child->pid = 0;
}

/* False when the child is gone: it died while it waited. */
static bool pass_on(const fa_child *child, const fa_runs *runs, const fa_command *run)
{
    const size_t size = runs->in != NULL ? strlen(run->line) : 0;
    const order next = {.number = run->options.line, .size = (uint32_t)size};
    return child->pid != 0 && waitpid(child->pid, NULL, WNOHANG) == 0 &&
           send(child->line, &next, sizeof next, MSG_NOSIGNAL) == sizeof next &&
           (size == 0 || send(child->line, run->line, size, MSG_NOSIGNAL) == (ssize_t)size);
}

const fa_result *fa_child_run(fa_child *child, fa_work *work, fa_runs *runs, size_t index)
{
    if (child->result == NULL)
        child->result = mmap(NULL, sizeof *child->result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FA_ASSERT(child->result != MAP_FAILED, "%s", strerror(errno));
    *child->result = fa_result_of(&runs->at[index]);
    free(child->dump);
    child->dump = NULL;
    if (!pass_on(child, runs, &runs->at[index])) {
        fa_child_end(child);
        start(child, work, runs, index);
    }
    int how = 0;
    const outcome came = wait_for(child, runs, index, &how);
    fa_progress_clear();
    fa_result_lend(child->result, &runs->at[index]);
    if (came == RUN_DONE)
        return child->result;
    const pid_t pid = child->pid;
    fa_child_end(child);
    explain_end(came == CHILD_ENDED, how, pid, &runs->at[index], child);
    return child->result;
}
