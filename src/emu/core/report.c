/* A report names the class of the failure, the block, the thread (also as warp.lane), the operation and the line. */
#include "emu/core/report.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "emu/core/calls.h"
#include "emu/core/fibre.h"
#include "emu/core/pending.h"
#include "emu/core/where.h"

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "?";
}

fa_status fa_emu_status_of(const char *kind)
{
    const bool ours = strcmp(kind, FA_EMU_NOT_MODELLED) == 0 || strcmp(kind, FA_EMU_NO_MEMORY) == 0;
    return ours                                    ? FA_NOT_RUN
           : strcmp(kind, FA_EMU_COOPERATIVE) == 0 ? FA_INFEASIBLE
           : strcmp(kind, FA_EMU_TIMEOUT) == 0     ? FA_TIMEOUT
                                                   : FA_WRONG;
}

void fa_emu_publish(fa_emu_launch *launch, const char *kind, const char *text)
{
    pthread_mutex_lock(&launch->lock);
    if (!atomic_load(&launch->failed)) {
        snprintf(launch->fault, sizeof launch->fault, "%s", kind);
        snprintf(launch->error, launch->error_size, "%s", text);
    }
    atomic_store(&launch->failed, 1);
    pthread_mutex_unlock(&launch->lock);
}

void fa_emu_report(fa_emu_worker *worker, const char *kind, const fa_emu_fibre *fibre, const char *file, int32_t line,
                   const char *format, ...)
{
    char what[512], text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const fa_emu_uint3 block = worker->block;
    size_t used = (size_t)snprintf(text, sizeof text, "%s: block (%u,%u,%u)", kind, block.x, block.y, block.z);
    if (fibre) {
        const fa_emu_thread *t = &fibre->thread;
        used += (size_t)snprintf(text + used, sizeof text - used, ", thread (%u,%u,%u), warp.lane %u.%u", t->thread.x,
                                 t->thread.y, t->thread.z, t->warp, t->lane);
    }
    if (file)
        used += (size_t)snprintf(text + used, sizeof text - used, ", %s:%d", base_name(file), line);
    if (file && fibre)
        used += fa_emu_calls_mark(worker, fibre, text + used, sizeof text - used);
    snprintf(text + used, sizeof text - used, ": %s", what);
    fa_emu_publish(worker->launch, kind, text);
}

/* "0-15,20" */
static void lanes_text(uint32_t lanes, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int lane = 0; lane < FA_EMU_WARP && used < size; lane++) {
        if (!(lanes >> lane & 1))
            continue;
        int last = lane;
        while (last + 1 < FA_EMU_WARP && lanes >> (last + 1) & 1)
            last++;
        const char *comma = used ? "," : "";
        const int wrote = last > lane ? snprintf(text + used, size - used, "%s%d-%d", comma, lane, last)
                                      : snprintf(text + used, size - used, "%s%d", comma, lane);
        used += (size_t)wrote;
        lane = last;
    }
}

/* Lanes of a warp that wait at the same place as lane `first`. */
static uint32_t same_place(const fa_emu_worker *worker, uint32_t warp, uint32_t first)
{
    const fa_emu_fibre *fibres = worker->fibres + warp * FA_EMU_WARP;
    const fa_emu_op *op = fibres[first].op;
    uint32_t lanes = 0;
    for (uint32_t lane = 0; lane < FA_EMU_WARP && warp * FA_EMU_WARP + lane < worker->threads; lane++) {
        const fa_emu_op *other = fibres[lane].op;
        if (other && other->kind == op->kind && other->line == op->line && other->arg == op->arg &&
            other->mask == op->mask && !strcmp(other->file, op->file))
            lanes |= 1u << lane;
    }
    return lanes;
}

static const char *class_of_stuck(const fa_emu_worker *worker)
{
    bool barrier = false, elsewhere = false, partial = false, suspended = false;
    const fa_emu_op *first = NULL;
    for (uint32_t i = 0; i < worker->threads; i++) {
        const fa_emu_op *op = worker->fibres[i].op;
        if (!op)
            continue;
        barrier |= op->kind == FA_EMU_BARRIER;
        suspended |= op->kind == FA_EMU_PHASE || op->kind == FA_EMU_YIELD;
        partial |= op->kind >= FA_EMU_FIRST_ALIGNED && same_place(worker, i / FA_EMU_WARP, i % FA_EMU_WARP) != ~0u;
        first = first ? first : op;
        elsewhere |= op->kind != first->kind || op->arg != first->arg || op->line != first->line ||
                     strcmp(op->file, first->file);
    }
    return partial                ? FA_EMU_PARTIAL_WARP
           : suspended            ? FA_EMU_DEADLOCK
           : barrier && elsewhere ? FA_EMU_DIVERGENT_BARRIER
                                  : FA_EMU_DEADLOCK;
}

/* A line for each group of lanes of a warp that wait at one place, and one for those that have exited. */
static void put_warp(fa_writer *w, fa_emu_worker *worker, uint32_t warp)
{
    const fa_emu_warp_state *state = &worker->warp[warp];
    char lanes[96], mask[40];
    uint32_t todo = 0;
    for (uint32_t i = warp * FA_EMU_WARP; i < worker->threads && i < (warp + 1) * FA_EMU_WARP; i++)
        todo |= (uint32_t)(worker->fibres[i].op != NULL) << i % FA_EMU_WARP;
    while (todo != 0) {
        const uint32_t first = (uint32_t)__builtin_ctz(todo), group = same_place(worker, warp, first);
        fa_emu_fibre *fibre = &worker->fibres[warp * FA_EMU_WARP + first];
        const fa_emu_op *op = fibre->op;
        todo &= ~group;
        lanes_text(group, lanes, sizeof lanes);
        snprintf(mask, sizeof mask,
                 op->kind == FA_EMU_PHASE || op->kind == FA_EMU_YIELD ? ""
                 : op->kind == FA_EMU_BARRIER                         ? " (barrier %d)"
                                                                      : " (mask 0x%08x)",
                 op->kind == FA_EMU_BARRIER ? (uint32_t)op->arg : op->mask);
        fa_put(w, "\n  warp %u, lanes %s (thread (%u,%u,%u) on): %s%s at ", warp, lanes, fibre->thread.thread.x,
               fibre->thread.thread.y, fibre->thread.thread.z, op->name, mask);
        if (op->file[0] != '\0')
            fa_put(w, "%s:%d", base_name(op->file), op->line);
        w->used += fa_emu_calls_mark(worker, fibre, w->text + w->used, w->size - w->used);
    }
    const uint32_t threads = worker->threads - warp * FA_EMU_WARP;
    const uint32_t exited = ~state->alive & (threads >= FA_EMU_WARP ? ~0u : (1u << threads) - 1);
    lanes_text(exited, lanes, sizeof lanes);
    if (exited && state->alive)
        fa_put(w, "\n  warp %u, lanes %s: exited", warp, lanes);
}

static void put_block(fa_writer *w, fa_emu_worker *worker)
{
    for (uint32_t warp = 0; warp < worker->warps; warp++)
        put_warp(w, worker, warp);
    w->used += fa_emu_pending_explain(worker, w->text + w->used, w->size - w->used);
}

static void report_all(fa_emu_worker *worker, const char *class, const char *why)
{
    const fa_emu_cluster *cluster = worker->cluster;
    char text[4096];
    fa_writer w = {.text = text, .size = sizeof text};
    fa_put(&w, "%s: block (%u,%u,%u): %u of %u threads have exited, %s", class, worker->block.x, worker->block.y,
           worker->block.z, worker->threads - worker->alive, worker->threads, why);
    put_block(&w, worker);
    if (cluster->count > 1)
        fa_put(&w, "\n  barrier of the cluster: %u of %u threads have arrived", cluster->arrived,
               fa_emu_cluster_living(cluster));
    for (uint32_t rank = 0; rank < cluster->count; rank++) {
        fa_emu_worker *other = cluster->block[rank];
        if (other == worker || other->over)
            continue;
        fa_put(&w, "\n  block (%u,%u,%u):", other->block.x, other->block.y, other->block.z);
        put_block(&w, other);
    }
    fa_emu_publish(worker->launch, class, w.text);
}

void fa_emu_report_stuck(fa_emu_worker *worker) { report_all(worker, class_of_stuck(worker), "no thread can run"); }

void fa_emu_report_timeout(fa_emu_worker *worker) { report_all(worker, FA_EMU_TIMEOUT, "the others are here"); }

/* From a fibre, after a report: the block ends here. */
_Noreturn static void stop(fa_emu_worker *worker)
{
    worker->stopped = true;
    fa_emu_switch(worker, NULL, true);
    __builtin_unreachable();
}

void fa_emu_fail(const char *kind, const char *what, const char *file, int32_t line)
{
    fa_emu_worker *worker = fa_emu_self;
    fa_emu_report(worker, kind, worker->current, file, line, "%s", what);
    stop(worker);
}

/* Runs on the worker's signal stack: reports the thread that faulted, and ends the block. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    fa_emu_worker *worker = fa_emu_self;
    if (!worker || !worker->current) {
        signal(number, SIG_DFL);
        return; /* not in a kernel: the instruction faults again, with the default action */
    }
    const fa_emu_fibre *fibre = worker->current;
    const unsigned char *address = info->si_addr;
    const bool overflow = address < fibre->stack && address >= fibre->stack - 4096;
    const bool memory = !overflow && (number == SIGSEGV || number == SIGBUS);
    char where[256];
    const bool known = memory && fa_emu_where(worker->launch->params, address, where, sizeof where);
    const char *kind = overflow           ? FA_EMU_NOT_MODELLED
                       : number == SIGFPE ? FA_EMU_DIVISION
                       : number == SIGILL ? FA_EMU_TRAP
                                          : FA_EMU_FAULT;
    fa_emu_report(worker, kind, fibre, NULL, 0, "%s (signal %d, address %p)%s%s; --sanitize address names the line",
                  overflow           ? "stack overflow of a thread: more than 64 KiB of local variables"
                  : number == SIGFPE ? "integer division by zero"
                  : number == SIGILL ? "trap"
                                     : "illegal or misaligned address",
                  number, info->si_addr, known ? "; " : "", known ? where : "");
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    stop(worker);
}

void fa_emu_catch_faults(fa_emu_worker *worker, bool on)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    static _Thread_local unsigned char stack[32 << 10];
    if (worker->annotated)
        return; /* the sanitizer's own handler reports more */
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack, .ss_flags = on ? 0 : SS_DISABLE};
    sigaltstack(&alternate, NULL);
    if (!on)
        return;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}
