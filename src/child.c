#include "child.h"

#include <errno.h>
#include <malloc.h>
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
#include "emu/core/report.h"
#include "emu/launch.h"

/* The signal that this process ends by once records are written and its children are gone; 0: none. */
static volatile sig_atomic_t ended_by;

int fa_children_signal(void) { return ended_by; }

/* What takes longer, a pipe that nobody reads say, is not waited for. */
static void note_signal(int signal_number)
{
    ended_by = signal_number;
    alarm(3);
}

/* Waits for a group that was asked to end; what does not is killed. */
static void await_group(pid_t group, int *how)
{
    const struct timespec nap = {.tv_nsec = 10 * 1000 * 1000};
    bool gone = false;
    for (int i = 0; i < 100 && !gone; i++) {
        gone = waitpid(group, how, WNOHANG) != 0;
        if (!gone)
            nanosleep(&nap, NULL);
    }
    kill(-group, SIGKILL);
    if (!gone)
        waitpid(group, how, 0);
}

/* What the parent sends for a run. */
typedef struct order {
    size_t index; /* in the list that the child was born with */
    int32_t number, threads;
    uint32_t size; /* of the line that follows, which the child adds to its list; 0: the run is in the list */
} order;

/* Says that a run is done and waits for the next one; false when there is none. */
static bool next_order(int line, fa_runs *runs, order *next)
{
    const char byte = 'd';
    if (send(line, &byte, 1, MSG_NOSIGNAL) != 1 || recv(line, next, sizeof *next, MSG_WAITALL) != sizeof *next)
        return false;
    if (next->size == 0)
        return true;
    char *text = fa_alloc(next->size + 1);
    const bool whole = recv(line, text, next->size, MSG_WAITALL) == (ssize_t)next->size;
    if (whole)
        fa_runs_append(runs, text, next->size, next->number);
    free(text);
    next->index = runs->count - 1;
    return whole;
}

/* In the child, when it is asked to end or its parent is gone: its compilers end, and nothing half built is left. A
 * launch of the emulator first says where its threads are. */
static void tidy_and_die(int signal_number)
{
    const struct timespec nap = {.tv_nsec = 50 * 1000 * 1000};
    if (fa_emu_expire()) {
        signal(SIGALRM, tidy_and_die);
        alarm(1);
        return;
    }
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    nanosleep(&nap, NULL);
    fa_cache_abandon();
    kill(0, SIGKILL);
    _exit(128 + signal_number);
}

/* What is over of a run is gone before the next. Freed pages are used again on a GPU (cuda/device.c) and by a compiler,
 * which would take as many for the next run. */
static void tidy_up(fa_runs *runs, size_t index, const fa_device *device)
{
    fa_cache_tidy();
    if (runs->in != NULL)
        fa_runs_done(runs, index);
    if (device->self != NULL && fa_device_is_emu(device))
        malloc_trim(0);
}

_Noreturn static void run_child(int line, fa_work *work, fa_runs *runs, order next, fa_result *result)
{
    fa_device device = {.self = NULL};
    setpgid(0, 0); /* so that a kill reaches the compilers it starts, too */
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGTERM, tidy_and_die);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* only the report writes to stdout */
    for (;;) {
        fa_result_lend(result, runs->at[next.index]);
        fa_use_threads(next.threads);
        work(runs->at[next.index], result, &device);
        /* it may have written anywhere */
        const bool faulted =
            result->status == FA_TIMEOUT || (fa_device_is_emu(&device) && result->check.found.count > 0);
        const bool ends = result->status == FA_ERROR || faulted || (next.index + 1 == runs->count && runs->in == NULL);
        if (!ends)
            tidy_up(runs, next.index, &device);
        else if (device.close != NULL)
            device.close(&device);
        fa_stage_enter(result, FA_AT_END);
        fflush(NULL);
        if (ends || !next_order(line, runs, &next))
            exit(0);
    }
}

/* With a command that does less, where a smaller problem helps; on the emulator also the lines where threads are. */
static void explain_timeout(const fa_command *run, fa_result *result)
{
    const char *stage = fa_stage_name(result->stage);
    const fa_reason said = result->reason;
    const double limit_s = run->options.timeout;
    if (result->status == FA_WRONG && result->check.found.count > 0)
        return; /* what it found says more */
    const char *where = result->status == FA_TIMEOUT ? strstr(said.text, FA_EMU_TIMEOUT ": ") : NULL;
    const bool hangs = result->stage >= FA_AT_CHECK && strcmp(result->device.backend, "cuda") == 0;
    char *smaller = result->stage >= FA_AT_LOAD ? fa_smaller_text(run) : NULL, *command = fa_command_text(run);
    char longer[32];
    snprintf(longer, sizeof longer, " --timeout %.0f", limit_s < 300 ? 1200.0 : 4.0 * limit_s);
    result->status = fa_refuse(&result->reason, FA_TIMEOUT, "killed after %g s while %s; %s: %.1000s%s%s%s%.2500s",
                               limit_s, stage, smaller != NULL ? "smaller" : "with more time",
                               smaller != NULL ? smaller : command, smaller != NULL ? "" : longer,
                               hangs ? "; a loop that does not end: --device emu names its lines" : "",
                               where != NULL ? "\n" : "", where != NULL ? where + strlen(FA_EMU_TIMEOUT ": ") : "");
    free(smaller);
    free(command);
}

/* What usually ends a process so. */
static const char *hint_of(const fa_command *run, const fa_result *result, int signal_number)
{
    const bool emulated =
        (result->stage == FA_AT_CHECK || result->stage == FA_AT_END) && strcmp(result->device.backend, "emu") == 0;
    if (signal_number == SIGKILL)
        return "; the system does that when memory runs out: lower --batch, --heads, --seq or --jobs";
    if (signal_number == SIGXCPU)
        return "; a limit of CPU time (ulimit -t) does that";
    if (run->options.library != NULL)
        return "; host code of the library may do that: a debugger on the command names the line";
    if (emulated && run->options.sanitize != FA_SANITIZE_ADDRESS)
        return "; a kernel that writes outside its memory may do that: --sanitize address names the line";
    return "";
}

/* A sanitizer ended it: says what it found. */
static bool explain_finding(fa_child *child, pid_t pid)
{
    fa_finding found;
    child->dump = fa_emu_sanitizer_report((int)pid, &found);
    if (child->dump == NULL)
        return false;
    child->result->status = fa_refuse(&child->result->reason, FA_WRONG, "%s", found.text);
    fa_findings_add(&child->result->check.found, &found);
    return true;
}

/* How the child ended, where it could not report that itself. */
static void explain_end(bool ended, int how, pid_t pid, const fa_command *run, fa_child *child)
{
    fa_result *result = child->result;
    const char *stage = fa_stage_name(result->stage);
    if (ended_by != 0)
        result->status = fa_refuse(&result->reason, FA_ERROR, "ended by signal %d (%s) while %s", ended_by,
                                   strsignal(ended_by), stage);
    else if (!ended)
        explain_timeout(run, result);
    else if (WIFSIGNALED(how))
        result->status = fa_refuse(&result->reason, FA_ERROR, "died of signal %d (%s) while %s%s", WTERMSIG(how),
                                   strsignal(WTERMSIG(how)), stage, hint_of(run, result, WTERMSIG(how)));
    else if (WEXITSTATUS(how) == FA_EMU_SANITIZER_EXIT && explain_finding(child, pid))
        return;
    else if (WEXITSTATUS(how) != 0)
        result->status = fa_refuse(&result->reason, FA_ERROR, "ended with code %d while %s", WEXITSTATUS(how), stage);
    else if (result->stage != FA_AT_END)
        result->status = fa_refuse(&result->reason, FA_ERROR, "ended early while %s", stage);
}

static void start(fa_child *child, fa_work *work, fa_runs *runs, order first)
{
    int ends[2];
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit is an error that is reported */
    FA_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "%s", strerror(errno));
    fflush(NULL);
    const pid_t pid = fa_fork();
    if (pid == 0) {
        close(ends[0]);
        run_child(ends[1], work, runs, first, child->result);
    }
    close(ends[1]);
    setpgid(pid, pid);
    child->pid = pid;
    child->line = ends[0];
    if (signal(SIGHUP, SIG_IGN) != SIG_IGN) /* not under nohup */
        signal(SIGHUP, note_signal);
    signal(SIGINT, note_signal);
    signal(SIGTERM, note_signal);
}

void fa_children_end(fa_child *children, int count)
{
    for (int i = 0; i < count; i++)
        if (children[i].busy)
            kill(-children[i].pid, SIGTERM);
        else if (children[i].pid != 0)
            shutdown(children[i].line, SHUT_RDWR); /* no further order: it ends */
    for (int i = 0; i < count; i++) {
        if (children[i].pid == 0)
            continue;
        await_group(children[i].pid, NULL); /* also the processes that it started */
        close(children[i].line);
        children[i].pid = 0;
        children[i].busy = false;
    }
}

/* False when the child is gone: it died while it waited. */
static bool send_order(const fa_child *child, const order *next, const char *line)
{
    return child->pid != 0 && waitpid(child->pid, NULL, WNOHANG) == 0 &&
           send(child->line, next, sizeof *next, MSG_NOSIGNAL) == sizeof *next &&
           (next->size == 0 || send(child->line, line, next->size, MSG_NOSIGNAL) == (ssize_t)next->size);
}

void fa_child_begin(fa_child *child, fa_work *work, fa_runs *runs, size_t index, int threads)
{
    const fa_command *run = runs->at[index];
    if (child->result == NULL)
        child->result = mmap(NULL, sizeof *child->result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FA_ASSERT(child->result != MAP_FAILED, "%s", strerror(errno));
    *child->result = fa_result_of(run);
    const order next = {.index = index,
                        .number = run->options.line,
                        .threads = threads,
                        .size = (uint32_t)(runs->in != NULL ? strlen(run->line) : 0)};
    if (!send_order(child, &next, run->line)) {
        fa_children_end(child, 1);
        start(child, work, runs, next);
    }
    child->run = index;
    child->start_s = fa_now_s();
    child->dump = NULL;
    child->busy = true;
}

/* A byte on the line says that the run is done. When the process ends first, its end of the line closes. */
bool fa_child_is_done(fa_child *child, const fa_runs *runs)
{
    const fa_command *run = runs->at[child->run];
    const pid_t pid = child->pid;
    int how = 0;
    char byte;
    if (recv(child->line, &byte, 1, MSG_DONTWAIT) != 1) {
        const bool ended = waitpid(pid, &how, WNOHANG) == pid;
        if (!ended && ended_by == 0 && fa_now_s() < child->start_s + run->options.timeout)
            return false;
        const fa_stage stage = child->result->stage;
        fa_children_end(child, 1);
        if (!ended) /* it may tidy up by now */
            child->result->stage = stage;
        explain_end(ended, how, pid, run, child);
    }
    fa_result_lend(child->result, run);
    child->busy = false;
    return true;
}
