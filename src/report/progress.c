#include "report/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"

static bool shown;

/* Seeds that are left, at the pace of those that are done. */
static void add_seeds(char *text, size_t size, const fa_result *result, const fa_options *options)
{
    const int32_t begun = result->check.seeds, all = options->load != NULL ? 1 : options->seeds;
    if (result->stage != FA_AT_CHECK || begun < 1)
        return;
    int used = snprintf(text, size, ", seed %d of %d", begun, all);
    if (begun > 1 && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ", about %.0f s left",
                 (fa_now_s() - result->since_s) / (begun - 1) * (all - begun + 1));
}

void fa_progress_show(const fa_result *result, const fa_runs *runs, size_t run, double elapsed_s)
{
    const fa_options *options = &runs->at[run]->options;
    char row[64] = "", seeds[96] = "";
    if (options->quiet || elapsed_s < 2 || !isatty(STDERR_FILENO))
        return;
    if (runs->count > 1)
        snprintf(row, sizeof row, "run %zu of %zu: ", run + 1, runs->count);
    add_seeds(seeds, sizeof seeds, result, options);
    if (result->stage == FA_AT_COMPILE && options->device != FA_DEVICE_CUDA && !options->compile_only &&
        !options->no_ptxas && strcmp(result->device.backend, "emu") == 0)
        snprintf(seeds, sizeof seeds, " for the emulator, and by NVRTC for its figures (--no-ptxas: without)");
    fprintf(stderr, "\r\033[K%s%s%s; %.0f s of at most %g s", row, fa_stage_name(result->stage), seeds, elapsed_s,
            options->timeout);
    fflush(stderr);
    shown = true;
}

void fa_progress_clear(void)
{
    if (shown)
        fputs("\r\033[K", stderr);
    shown = false;
}
