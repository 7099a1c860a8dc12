#include "report/text.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile/nvrtc.h"

#define FA_VERSION "0.1.0"

static void print_head(FILE *out, const fa_result *result)
{
    const fa_problem *p = &result->problem;
    const fa_knobs *k = &result->main.spec.knobs;
    fprintf(out, "kernel    %s", result->main.spec.name);
    if (result->main.spec.row != NULL && strcmp(result->main.spec.row->name, result->main.spec.name) != 0)
        fprintf(out, " (%s)", result->main.spec.row->name);
    if (result->main.spec.kind == FA_KIND_HAND)
        fprintf(out, "  m=%d n=%d warps=%d vec=%d stages=%d swizzle=%d acc=%s splits=%d%s", k->m, k->n, k->warps,
                k->vec, k->stages, k->swizzle, k->acc ? "fp16" : "fp32", k->splits, k->maxreg > 0 ? " (maxreg)" : "");
    fprintf(out, "\nproblem   B=%d H=%d", p->batch, p->heads);
    if (p->kv_heads != p->heads)
        fprintf(out, " (K/V %d)", p->kv_heads);
    fprintf(out, " S=%d", p->seq_q);
    if (p->seq_kv != p->seq_q)
        fprintf(out, " (K/V %d)", p->seq_kv);
    fprintf(out, " D=%d FP16 %s\n", p->dim, p->causal ? "causal" : "full");
    if (result->device_choice[0] != '\0')
        fprintf(out, "device    auto took the %s\n", result->device_choice);
    else if (result->device_known)
        fprintf(out, "device    %s: %s (%s)\n", result->device.backend, result->device.name, result->device.arch);
}

static void print_compile(FILE *out, const fa_side *side)
{
    const fa_module *m = &side->module;
    const fa_ptxas *x = &m->ptxas;
    if (m->compiler[0] == '\0')
        return;
    if (side->spec.kind != FA_KIND_HAND) {
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
    if (m->ptx_arch[0] != '\0')
        fprintf(out,
                "          run as PTX for %s, which the driver compiles: the figures above are of the cubin for %s\n",
                m->ptx_arch, x->arch);
    if (m->same_code_as[0] != '\0')
        fprintf(out, "          the very same code as %s: a knob that differs does nothing\n", m->same_code_as);
}

static void print_check(FILE *out, const fa_check_result *c, const char *whose)
{
    if (!c->done)
        return;
    fprintf(out, "check     %s%s, %d seed%s", whose, c->passed ? "PASS" : "FAIL", c->seeds, c->seeds == 1 ? "" : "s");
    for (int32_t i = 0; i < c->verdict_count; i++) {
        const fa_verdict *v = &c->verdicts[i];
        fprintf(out, "; %s: max error %.2e, rmse %.2e over %lld rows", v->name, v->max_abs_err, v->rmse,
                (long long)v->rows_checked);
    }
    if (c->loosened)
        fprintf(out, "; atol %g rtol %g are not the rule", c->atol, c->rtol);
    fputc('\n', out);
    if (c->missing[0] != '\0')
        fprintf(out, "          %s\n", c->missing);
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
    fprintf(out, "%s%s%s%s%s\n", t->settled ? "" : ", budget used up", t->throttled ? ", THROTTLED" : "",
            t->noisy ? ", NOISY: " : "", t->noisy_reason, t->impossible ? ", IMPOSSIBLE: below the roofline" : "");
    fprintf(out, "          %.1f TFLOP/s, %.1f %% of the peak at that clock; %.0f GB/s\n", h->tflops,
            100 * h->fraction_of_peak, h->gbytes_per_s);
    const fa_comparison *c = &result->comparison;
    if (c->done)
        fprintf(out, "vs        %s: %.3f times as fast [%.3f, %.3f] over %d ABBA blocks, A/A noise %.3f: %s\n",
                result->other.spec.name, c->ratio, c->ratio_ci95[0], c->ratio_ci95[1], c->blocks, c->aa_noise,
                c->accepted ? "accepted" : "not accepted");
}

char *fa_report_text(const fa_result *result, const fa_options *options)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    FA_ASSERT(out != NULL);
    if (result->problem_known)
        print_head(out, result);
    print_compile(out, &result->main);
    print_check(out, &result->main.check, "");
    print_check(out, &result->other.check, "other: ");
    print_timing(out, result);
    if (result->status == FA_PASS && !options->compile_only && !result->timing.done)
        fputs(options->timing == FA_TIMING_NONE ? "time      none was asked for\n"
                                                : "time      none: only a GPU has times\n",
              out);
    fclose(out);
    return text;
}

static fa_status writable(const fa_options *options, fa_reason *why)
{
    struct stat facts;
    const char *slash = strrchr(options->json, '/');
    char *folder = slash == NULL ? fa_format(".") : fa_format("%.*s", (int)(slash - options->json) + 1, options->json);
    const bool good = access(folder, W_OK) == 0 && !(stat(options->json, &facts) == 0 && S_ISDIR(facts.st_mode));
    free(folder);
    if (good)
        return FA_PASS;
    return fa_refuse(why, FA_USAGE, "--json takes - or a file in a folder that can be written, not '%s'",
                     options->json);
}

fa_status fa_report_begin(const fa_options *options, fa_records *records, fa_reason *why)
{
    *records = (fa_records){.file = -1};
    if (options->json == NULL)
        return FA_PASS;
    if (strcmp(options->json, "-") == 0) {
        records->file = STDOUT_FILENO;
        return FA_PASS;
    }
    FA_TRY(writable(options, why));
    if (options->runs == NULL)
        return FA_PASS;
    records->file = open(options->json, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    return records->file >= 0 ? FA_PASS
                              : fa_refuse(why, FA_ERROR, "cannot write %s: %s", options->json, strerror(errno));
}

static fa_status write_record(const fa_options *options, const char *line, fa_records *records, fa_reason *why)
{
    if (records->file < 0)
        return fa_write_file(options->json, line, strlen(line), why);
    const fa_status status = fa_append(records->file, line, strlen(line), why);
    records->lost = status != FA_PASS;
    return status;
}

int fa_report(const fa_result *result, const fa_command *run, fa_records *records)
{
    const fa_options *options = &run->options;
    const bool alone = options->json != NULL && strcmp(options->json, "-") == 0;
    if (!options->quiet) {
        char *text = fa_report_text(result, options);
        fputs(text, alone ? stderr : stdout);
        fflush(stdout);
        free(text);
    }
    if (result->status != FA_PASS)
        fprintf(stderr, "fa_bench: %s: %s\n", fa_status_name(result->status), result->reason.text);
    int code = fa_status_exit_code(result->status);
    if (options->json == NULL)
        return code;
    char *json = fa_report_json(result, run);
    char *line = fa_format("%s\n", json);
    fa_reason why;
    if (write_record(options, line, records, &why) != FA_PASS)
        code = fa_report_refusal(FA_ERROR, &why);
    free(line);
    free(json);
    return code;
}

static void put_values(cJSON *values, const char *knob, const char *list, int32_t fallback)
{
    cJSON *array = cJSON_AddArrayToObject(values, knob);
    if (list == NULL)
        cJSON_AddItemToArray(array, cJSON_CreateNumber(fallback));
    for (const char *at = list; at != NULL && *at != '\0'; at += *at == ',') {
        char *end = NULL;
        const long number = strtol(at, &end, 10);
        FA_ASSERT(end != at, "values of %s: %s", knob, list);
        cJSON_AddItemToArray(array, cJSON_CreateNumber((double)number));
        at = end;
    }
}

/* A tile as an object: knob -> value; acc is the word that --acc takes. */
static void put_knobs(cJSON *object, const fa_knobs *k)
{
    const struct {
        const char *name;
        int32_t value;
    } knobs[] = {{"m", k->m},           {"n", k->n},           {"warps", k->warps},
                 {"vec", k->vec},       {"stages", k->stages}, {"swizzle", k->swizzle},
                 {"splits", k->splits}, {"maxreg", k->maxreg}};
    for (size_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++)
        cJSON_AddNumberToObject(object, knobs[i].name, knobs[i].value);
    cJSON_AddStringToObject(object, "acc", k->acc ? "fp16" : "fp32");
}

/* defaults: the tile without tile options where no rule matches; values: what a sweep tries. */
static void put_space(cJSON *kernel, const fa_kernel_row *row)
{
    const fa_knobs *k = &row->knobs;
    const fa_space *s = &row->space;
    put_knobs(cJSON_AddObjectToObject(kernel, "defaults"), k);
    cJSON *values = cJSON_AddObjectToObject(kernel, "values");
    const struct {
        const char *name, *list;
        int32_t value;
    } knobs[] = {{"m", s->m, k->m},
                 {"n", s->n, k->n},
                 {"warps", s->warps, k->warps},
                 {"vec", s->vec, k->vec},
                 {"stages", s->stages, k->stages},
                 {"swizzle", s->swizzle, k->swizzle},
                 {"splits", s->splits, k->splits},
                 {"maxreg", s->maxreg, k->maxreg}};
    for (size_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++)
        put_values(values, knobs[i].name, knobs[i].list, knobs[i].value);
    cJSON *acc = cJSON_AddArrayToObject(values, "acc");
    cJSON_AddItemToArray(acc, cJSON_CreateString("fp32"));
    if (s->acc != NULL && strstr(s->acc, "fp16") != NULL)
        cJSON_AddItemToArray(acc, cJSON_CreateString("fp16"));
}

/* The kernel's rules in order; the first that matches a problem decides the tile. null: matches any. */
static void put_rules(cJSON *kernel, const fa_kernel_row *row)
{
    cJSON *all = cJSON_AddArrayToObject(kernel, "rules");
    for (const fa_rule *rule = fa_registry_rules(); rule->name != NULL; rule++) {
        if (strcmp(rule->name, row->name) != 0)
            continue;
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "serves", rule->variant);
        cJSON_AddNumberToObject(one, "max_dim", rule->max_dim);
        cJSON_AddItemToObject(one, "causal", rule->causal < 0 ? cJSON_CreateNull() : cJSON_CreateBool(rule->causal));
        cJSON_AddItemToObject(one, "max_fill_percent",
                              rule->max_fill_percent < 0 ? cJSON_CreateNull()
                                                         : cJSON_CreateNumber(rule->max_fill_percent));
        put_knobs(cJSON_AddObjectToObject(one, "config"), &rule->knobs);
        cJSON_AddItemToArray(all, one);
    }
}

static char *kernels_json(void)
{
    static const char *const kinds[] = {
        [FA_KIND_HAND] = "hand", [FA_KIND_CUBLAS] = "library", [FA_KIND_CUDNN] = "library"};
    cJSON *all = cJSON_CreateArray();
    for (size_t i = 0; i < fa_registry_count(); i++) {
        const fa_kernel_row *row = fa_registry_at(i);
        const fa_traits *t = &row->traits;
        cJSON *kernel = cJSON_CreateObject();
        cJSON_AddStringToObject(kernel, "name", row->name);
        cJSON_AddStringToObject(kernel, "idea", row->idea);
        cJSON_AddStringToObject(kernel, "kind", kinds[row->kind]);
        cJSON_AddBoolToObject(kernel, "default", row == fa_registry_default());
        cJSON_AddNumberToObject(kernel, "min_arch", t->min_arch);
        cJSON_AddBoolToObject(kernel, "arch_specific", t->arch_specific);
        cJSON_AddBoolToObject(kernel, "emulated", row->kind == FA_KIND_HAND && !t->emu_not_run);
        cJSON_AddStringToObject(kernel, "tensor_cores",
                                t->wgmma  ? "wgmma"
                                : t->mma  ? "mma"
                                : t->wmma ? "wmma"
                                          : "none");
        cJSON_AddItemToObject(kernel, "variant_of",
                              t->variant_of != NULL ? cJSON_CreateString(t->variant_of) : cJSON_CreateNull());
        if (row->kind == FA_KIND_HAND)
            put_space(kernel, row);
        put_rules(kernel, row);
        cJSON_AddItemToArray(all, kernel);
    }
    char *text = cJSON_Print(all);
    FA_ASSERT(text != NULL);
    cJSON_Delete(all);
    return text;
}

/* Each knob with its default, and the values a sweep tries. */
static void print_values(const fa_kernel_row *row)
{
    const fa_knobs *k = &row->knobs;
    const fa_space *s = &row->space;
    const struct {
        const char *name, *list;
        int32_t value;
    } knobs[] = {{"m", s->m, k->m},
                 {"n", s->n, k->n},
                 {"warps", s->warps, k->warps},
                 {"vec", s->vec, k->vec},
                 {"stages", s->stages, k->stages},
                 {"swizzle", s->swizzle, k->swizzle},
                 {"splits", s->splits, k->splits}};
    if (row->kind != FA_KIND_HAND)
        return;
    printf("%12s", "");
    for (size_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++) {
        printf(" %s=%d", knobs[i].name, knobs[i].value);
        if (knobs[i].list != NULL)
            printf(" (%s)", knobs[i].list);
    }
    printf("%s\n", s->acc != NULL ? " acc=fp32 (fp32,fp16)" : "");
}

static int report_kernels(const fa_options *options)
{
    if (options->json != NULL) {
        char *json = kernels_json();
        char *line = fa_format("%s\n", json);
        fa_reason why = {.text = ""};
        fa_status status = FA_PASS;
        if (strcmp(options->json, "-") == 0)
            fputs(line, stdout);
        else
            status = fa_write_file(options->json, line, strlen(line), &why);
        free(line);
        free(json);
        return status == FA_PASS ? 0 : fa_report_refusal(status, &why);
    }
    for (size_t i = 0; i < fa_registry_count(); i++) {
        const fa_kernel_row *row = fa_registry_at(i);
        printf("%-12s %s%s\n", row->name, row->idea, row == fa_registry_default() ? " (default)" : "");
        print_values(row);
    }
    return 0;
}

static void report_version(void)
{
    char version[16];
    fa_reason why = {.text = ""};
    printf("fa_bench %s\n", FA_VERSION);
    printf("nvrtc    %s\n", fa_nvrtc_version(version, &why) == FA_PASS ? version : why.text);
    fa_device device;
    if (fa_device_open_cuda(0, &device, &why) == FA_PASS) {
        printf("gpu 0    %s (%s), driver %s\n", device.info.name, device.info.arch, device.info.driver);
        device.close(&device);
    } else {
        printf("gpu      none: %s\n", why.text);
    }
}

int fa_report_facts(const fa_options *options)
{
    if (options->help) {
        char *text = fa_options_help();
        fputs(text, stdout);
        free(text);
    } else if (options->version) {
        report_version();
    } else {
        return report_kernels(options);
    }
    return 0;
}

int fa_report_refusal(fa_status status, const fa_reason *why)
{
    fprintf(stderr, "fa_bench: %s\n", why->text);
    return fa_status_exit_code(status);
}
