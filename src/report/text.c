#include "report/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "base/version.h"
#include "compile/nvrtc.h"
#include "report/doctor.h"
#include "report/manual.h"
#include "report/registry.h"
#include "run/devices.h"

/* What goes beyond dense forward, and how many pairs of a query and a key are left. */
static void print_features(FILE *out, const fa_problem *p)
{
    const double pairs = (double)p->batch * p->heads * (double)p->seq_q * (double)p->seq_kv;
    fprintf(out, "%s%s", p->backward ? ", gradients" : "", p->deterministic ? ", deterministic" : "");
    if (p->windowed)
        fprintf(out, ", window %d,%d", p->window_left, p->causal ? 0 : p->window_right);
    if (p->chunk > 0)
        fprintf(out, ", chunk %d", p->chunk);
    if (p->softcap > 0)
        fprintf(out, ", softcap %g", (double)p->softcap);
    fprintf(out, "%s", p->v_in_k ? ", V in K" : "");
    fprintf(out, "%s%s%s%s", p->sinks ? ", sinks" : "", p->alibi ? ", alibi" : "", p->bias ? ", bias" : "",
            p->tree ? ", tree" : "");
    if (p->pages != NULL)
        fprintf(out, ", pages of %d %s", p->pages->size, p->pages->nhd ? "nhd" : "hnd");
    if (p->lengths != NULL)
        fprintf(out, ", lengths: %d and %d rows in all", fa_problem_stored_q(p), fa_problem_stored_kv(p));
    if (p->windowed || p->chunk > 0 || p->lengths != NULL || p->tree)
        fprintf(out, "; %.3g %% of all pairs", 100.0 * (double)fa_problem_pairs(p) / (pairs > 0 ? pairs : 1));
}

/* Whether a file reads a macro, or may: what it includes from beside itself is not looked at. */
static bool may_read(const char *path, const char *macro)
{
    fa_reason ignored;
    char *text = NULL;
    size_t size = 0;
    if (fa_read_file(path, &text, &size, &ignored) != FA_PASS)
        return true;
    const char *at = strstr(text, "#include \"");
    while (at != NULL && strncmp(at + 10, "fa_", 3) == 0)
        at = strstr(at + 1, "#include \"");
    bool reads = at != NULL;
    const size_t length = strlen(macro);
    for (at = strstr(text, macro); !reads && at != NULL; at = strstr(at + 1, macro))
        reads = strspn(at + length, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == 0;
    free(text);
    return reads;
}

/* The knobs that were asked for, that the kernel's row or FA_SPACE has values of, or that its file reads. */
static void print_knobs(FILE *out, const fa_spec *spec)
{
    static const char *const names[] = {"m", "n", "warps", "vec", "stages", "swizzle", "acc", "splits", "maxreg"};
    static const char *const macros[] = {"FA_M",       "FA_N",        "FA_WARPS",  "FA_VEC",   "FA_STAGES",
                                         "FA_SWIZZLE", "FA_ACC_FP16", "FA_SPLITS", "FA_MAXREG"};
    const int32_t *value = (const int32_t *)&spec->knobs, *set = (const int32_t *)&spec->set;
    const int32_t *stated = (const int32_t *)&spec->stated;
    fputc(' ', out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const bool swept = spec->row != NULL && ((const char *const *)&spec->row->space)[i] != NULL;
        const bool read = spec->row == NULL && (stated[i] != FA_UNSET || may_read(spec->source, macros[i]));
        if (i > 0 && set[i] == FA_UNSET && !swept && !read) /* every kernel has a tile of M rows */
            continue;
        if (strcmp(names[i], "acc") == 0)
            fprintf(out, " acc=%s", value[i] ? "fp16" : "fp32");
        else if (strcmp(names[i], "maxreg") != 0 || value[i] > 0)
            fprintf(out, " %s=%d", names[i], value[i]);
    }
}

static bool head_shown; /* of the run that is on */
static int32_t head_rank;

/* A kernel by default may make room for the next one, after the head. */
static void print_head(FILE *out, const fa_result *result, const fa_options *o)
{
    const fa_spec *spec = &result->main.spec;
    const fa_problem *p = &result->problem;
    if (head_shown && spec->rank == head_rank)
        return;
    fprintf(out, "kernel    %s", spec->name);
    if (spec->row != NULL && strcmp(spec->row->name, spec->name) != 0)
        fprintf(out, " (%s)", spec->row->name);
    if (spec->kind == FA_KIND_HAND)
        print_knobs(out, spec);
    head_rank = spec->rank;
    if (head_shown) {
        fputs(", which serves this problem\n", out);
        return;
    }
    fprintf(out, "\nproblem   B=%d H=%d", p->batch, p->heads);
    if (p->kv_heads != p->heads)
        fprintf(out, " (K/V %d)", p->kv_heads);
    if (o->batch_set && o->batch != p->batch)
        fprintf(out, " (B by --lengths, not --batch %d)", o->batch);
    fprintf(out, " S=%d", p->seq_q);
    if (p->seq_kv != p->seq_q)
        fprintf(out, " (K/V %d)", p->seq_kv);
    fprintf(out, " D=%d", p->dim);
    if (fa_problem_dim_v(p) != p->dim)
        fprintf(out, "/%d", fa_problem_dim_v(p));
    fprintf(out, " %s%s %s", fa_dtype_name(p->dtype), p->fp8_kv ? " (K/V E4M3)" : "", p->causal ? "causal" : "full");
    print_features(out, p);
    fprintf(out, "%s\n",
            o->small ? " (small, for the sanitizer; --batch, --heads, --seq or --dim chooses another)" : "");
    if (result->device_choice[0] != '\0')
        fprintf(out, "device    auto took the %s\n", result->device_choice);
    else if (result->device_known)
        fprintf(out, "device    %s: %s (%s)\n", result->device.backend, result->device.name, result->device.arch);
}

/* Without --bound only what a time is judged by: a line. */
static void print_bound(FILE *out, const fa_machine_bound *b, bool in_full)
{
    if (!b->done || (!in_full && !(b->percent > 0)))
        return;
    if (!b->bound.known) {
        fprintf(out, "bound     unknown: %s\n", b->bound.unknown_reason);
        return;
    }
    fprintf(out, "bound     %.3g us at %.0f MHz", b->us_at_max, b->clock_mhz_max);
    if (b->clock_mhz_min > 0)
        fprintf(out, ", %.3g us at %.0f MHz", b->us_at_min, b->clock_mhz_min);
    if (b->power_mhz_low > 0)
        fprintf(out, ", %.3g to %.3g us at the %.0f to %.0f MHz of the power limit", b->us_at_power_high,
                b->us_at_power_low, b->power_mhz_low, b->power_mhz_high);
    fprintf(out, ": %s binds, then %s", fa_machine_bound_binds(b), fa_pipe_name(b->bound.second));
    if (b->percent > 0)
        fprintf(out, "; %.0f %% of it reached", b->percent);
    fputc('\n', out);
    if (!in_full)
        return;
    fputs("          kiloclocks per SM:", out);
    for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++)
        fprintf(out, " %s %.4g", fa_pipe_name((fa_pipe)pipe), b->bound.pipe_clocks[pipe] * 1e-3);
    fprintf(out, " l2 %.4g, dram %.3g us\n", b->bound.l2_clocks * 1e-3, b->dram_us);
    if (b->estimate.known)
        fprintf(out, "estimate  %.3g us at %.0f MHz (%.3g to %.3g): fitted to an H200's times, no bound\n",
                b->estimate.us, b->clock_mhz_max, b->estimate.us_low, b->estimate.us_high);
}

static void print_compile(FILE *out, const fa_candidate_record *record)
{
    const fa_module *m = &record->module;
    const fa_ptxas *x = &m->ptxas;
    if (m->compiler[0] == '\0')
        return;
    if (record->spec.kind != FA_KIND_HAND) {
        fprintf(out, "library   %s\n", m->compiler);
        return;
    }
    fprintf(out, "compile   %s, %.2f s%s; ", m->compiler, m->seconds, m->cache_hit ? " (cached)" : "");
    if (!x->known) {
        fprintf(out, "no ptxas figures: %s\n", x->unknown_reason);
        return;
    }
    fprintf(out, "%s: %d registers, %d bytes shared memory, ", x->arch, x->registers, x->smem_total_bytes);
    if (x->spill_store_bytes + x->spill_load_bytes > 0)
        fprintf(out, "SPILLS %d bytes stored, %d loaded", x->spill_store_bytes, x->spill_load_bytes);
    else if (x->stack_bytes > 0)
        fprintf(out, "%d bytes of STACK (arrays in local memory)", x->stack_bytes);
    else
        fprintf(out, "no spills");
    fprintf(out, "; %d blocks/SM (%.0f %% of warps)\n", m->occupancy.blocks_per_sm, 100 * m->occupancy.fraction);
    for (int32_t i = 0; i < x->warning_count; i++)
        fprintf(out, "          %s\n", x->warnings[i]);
    int32_t own = 0, always = 0; /* copies and fills that are made wherever the tensors lie */
    for (int32_t i = 0; i < m->plan.count; i++) {
        own += m->plan.steps[i].line > 0;
        always += m->plan.steps[i].line == 0 && !m->plan.steps[i].as_is;
    }
    if (m->plan.count > 0)
        fprintf(out, "          launches %d kernel%s of the file%s\n", own, own == 1 ? "" : "s",
                always > 0 ? ", with copies and fills for them, which are timed" : "");
    if (m->ptx_arch[0] != '\0')
        fprintf(out,
                "          run as PTX for %s, which the driver compiles: the figures above are of the cubin for %s\n",
                m->ptx_arch, x->arch);
    if (m->same_code_as[0] != '\0')
        fprintf(out, "          the very same code as %s: a knob that differs does nothing\n", m->same_code_as);
}

static void print_check(FILE *out, const fa_check_result *c, const char *whose)
{
    char word[32];
    if (!c->done)
        return;
    fprintf(out, "check     %s%s, %d seed%s", whose, c->passed ? "PASS" : "FAIL", c->seeds, c->seeds == 1 ? "" : "s");
    for (int32_t i = 0; i < c->verdict_count; i++) {
        const fa_verdict *v = &c->verdicts[i];
        fprintf(out, "; %s: max error %.2e, rmse %.2e over %lld rows", v->name, v->max_abs_err, v->rmse,
                (long long)v->rows_checked);
    }
    for (int32_t i = 0; i < c->gradient_count; i++) {
        const fa_gradient_verdict *v = &c->gradients[i];
        fprintf(out, "; %s by %s: rmse %.2e of %.2e", v->tensor, v->reference, v->rmse, v->rms);
    }
    if (c->lse.done)
        fprintf(out, "; log-sum-exp: max error %.2e", c->lse.max_abs_err);
    if (c->repeats > 0)
        fprintf(out, "; %d repeated launch%s", c->repeats, c->repeats == 1 ? "" : "es");
    for (int i = 0; c->repeats > 0 && i < FA_SCHEDULES; i++)
        if (c->schedules >> i & 1)
            fprintf(out, "%s%s", c->schedules & ((1 << i) - 1) ? ", " : " under ", fa_word(FA_SCHEDULE_WORDS, i, word));
    if (c->unrepeated[0] != '\0')
        fprintf(out, "; no repeated launch: %s", c->unrepeated);
    if (c->loosened)
        fprintf(out, "; atol %g rtol %g are not the rule", c->atol, c->rtol);
    fputc('\n', out);
    if (c->missing[0] != '\0')
        fprintf(out, "          %s\n", c->missing);
    if (c->published.done)
        fprintf(out, "          the tolerance of %s: %s%s\n", fa_tolerance_name(&c->published.tolerance),
                c->published.passed ? "passes" : "fails, ", c->published.failure);
}

static void print_timing(FILE *out, const fa_result *result)
{
    const fa_timing *t = &result->timing;
    const fa_throughput *h = &result->throughput;
    if (!t->done || result->status == FA_WRONG)
        return;
    fprintf(out, "time      p50 %.2f us  p90 %.2f us  [%.2f, %.2f]  %zu samples of %d by %s, %s L2, floor %.2f us",
            t->us.p50, t->us.p90, t->us.ci95[0], t->us.ci95[1], t->us.count, t->launches_per_sample,
            t->method == FA_TIMING_GRAPH ? "graph" : "event", t->l2 == FA_L2_COLD ? "cold" : "warm", t->floor_us);
    if (t->sm_clock_mhz_p50 > 0)
        fprintf(out, ", SM %.0f MHz", t->sm_clock_mhz_p50);
    if (t->persist_kv)
        fputs(", K and V persist in the L2", out);
    if (t->rest_ms > 0)
        fprintf(out, ", rested %g ms before each sample", t->rest_ms);
    fprintf(out, "%s%s%s%s\n", t->settled ? "" : ", budget used up", t->throttled ? ", THROTTLED" : "",
            t->noisy ? ", NOISY: " : "", t->noisy_reason);
    fprintf(out, "          %.1f TFLOP/s, %.1f %% of the peak at that clock; %.0f GB/s\n", h->tflops,
            100 * h->fraction_of_peak, h->gbytes_per_s);
    const fa_paired *c = &result->paired;
    if (c->done)
        fprintf(out, "vs        %s: %.3f times as fast [%.3f, %.3f] over %d ABBA blocks, A/A noise %.3f: %s\n",
                result->other.spec.name, c->ratio, c->ratio_ci95[0], c->ratio_ci95[1], c->blocks, c->aa_noise,
                c->accepted ? "accepted" : "not accepted");
}

/* Who chose kernel and tile. */
static void print_rule(FILE *out, const fa_spec *spec)
{
    if (spec->rule > 0)
        fprintf(out, "rule      %d of %s", spec->rule, spec->name);
    else
        fprintf(out, "rule      none%s", spec->kind == FA_KIND_HAND ? ": the kernel's defaults" : "");
    fprintf(out, "; %s with %d multiprocessors\n", spec->arch, spec->sm_count);
}

static void print_run(FILE *out, const fa_result *result, const fa_options *options)
{
    print_head(out, result, options);
    if (options->select)
        print_rule(out, &result->main.spec);
    print_compile(out, &result->main);
    print_bound(out, &result->bound, options->bound);
    print_check(out, &result->check, "");
    print_check(out, &result->other_check, "other: ");
    print_timing(out, result);
    if (result->timing.beaten_us > 0)
        fprintf(out, "time      beaten, not timed to the end: %d samples of at least %.2f us, to beat %.2f\n",
                FA_BEATEN_SAMPLES, result->timing.beaten_us, options->beat);
    else if (result->status == FA_PASS && !options->compile_only && !options->select && !result->timing.done)
        fputs(options->timing == FA_TIMING_NONE ? "time      none was asked for\n"
                                                : "time      none: only a GPU has times\n",
              out);
    fflush(out);
}

static int refuse_output(fa_reason *why)
{
    return fa_report_refusal(fa_refuse(why, FA_ERROR, "cannot write to standard output: %s", strerror(errno)), why);
}

static FILE *stream_for_people(const fa_options *options)
{
    return options->json != NULL && strcmp(options->json, "-") == 0 ? stderr : stdout;
}

/* The emulator does at most so many products of scores a second on a core: what it needs at least is known at once. */
static void say_long(const fa_result *result, const fa_command *run)
{
    const double rate = 25e6, long_s = 60;
    const fa_options *options = &run->options;
    const double work = (double)fa_problem_pairs(&result->problem) * result->problem.dim * options->seeds;
    const double least_s = work / (rate * fa_threads());
    if (strcmp(result->device.backend, "emu") != 0 || options->compile_only || options->select || least_s < long_s)
        return;
    char *command = fa_smaller_text(run);
    fprintf(stderr, "fa_bench: the emulator needs %.0f minutes or more for this, and --timeout is %g s%s%s\n",
            least_s / 60, options->timeout, command != NULL ? "; smaller: " : "", command != NULL ? command : "");
    free(command);
}

void fa_report_begin(const fa_result *result, const fa_command *run)
{
    if (head_shown || run->options.quiet || !result->device_known || result->stage < FA_AT_COMPILE ||
        result->stage == FA_AT_END)
        return;
    FILE *out = stream_for_people(&run->options);
    print_head(out, result, &run->options);
    fflush(out);
    head_shown = true;
    say_long(result, run);
}

int fa_report_run(const fa_result *result, const fa_options *options, const char *dump)
{
    fa_reason why;
    if (!options->quiet)
        print_run(stream_for_people(options), result, options);
    head_shown = false;
    if (result->status != FA_PASS) {
        char *line = fa_line(result->reason.text); /* what a user typed wrong; others may take several */
        fprintf(stderr, "fa_bench: %s: %s\n", fa_status_name(result->status),
                result->status == FA_USAGE ? line : result->reason.text);
        free(line);
    }
    if (dump != NULL && (options->verbose || !options->quiet))
        fputs(options->verbose ? dump : "fa_bench: --verbose shows the sanitizer's whole report\n", stderr);
    if (ferror(stdout) && result->status == FA_PASS)
        return refuse_output(&why);
    return fa_status_exit_code(result->status);
}

static void print_version(void)
{
    char version[32];
    fa_reason why = {.text = ""};
    printf("fa_bench %s\n", FA_VERSION);
    printf("nvrtc    %s\n", fa_nvrtc_version(version, &why) == FA_PASS ? version : why.text);
    fa_device_info gpu;
    if (fa_device_first_gpu(&gpu, &why) == FA_PASS)
        printf("gpu 0    %s (%s), driver %s\n", gpu.name, gpu.arch, gpu.driver);
    else
        printf("gpu      none: %s\n", why.text);
    puts("tools    fa_bench --doctor lists all, and what brings them");
}

int fa_report_facts(const fa_options *options)
{
    fa_reason why;
    char *text = NULL;
    fa_status status = FA_PASS;
    if (options->help)
        text = fa_report_manual(options);
    else if (options->version)
        print_version();
    else if (options->doctor)
        fa_report_doctor();
    else
        status = fa_report_registry(options, &text, &why);
    const bool to_file = options->json != NULL && strcmp(options->json, "-") != 0;
    if (text != NULL && to_file)
        status = fa_write_file(options->json, text, strlen(text), &why);
    else if (text != NULL)
        fputs(text, stdout);
    free(text);
    if (status != FA_PASS)
        return fa_report_refusal(status, &why);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : refuse_output(&why);
}

int fa_report_refusal(fa_status status, const fa_reason *why)
{
    char *line = fa_line(why->text);
    fprintf(stderr, "fa_bench: %s\n", line);
    free(line);
    return fa_status_exit_code(status);
}
