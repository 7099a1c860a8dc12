#include "input/spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "input/schedule.h"
#include "input/space.h"
#include "input/splits.h"

/* CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; sm_count only picks default tiles when
 * there is no device. */
static const struct {
    int32_t cc, smem_block_kib, smem_sm_kib, warps_sm, blocks_sm, sm_count;
} limits_table[] = {
    {75, 64, 64, 32, 16, 40},     /* T4 */
    {80, 163, 164, 64, 32, 108},  /* A100 */
    {86, 99, 100, 48, 16, 72},    /* A10 */
    {87, 163, 164, 48, 16, 16},   /* Orin */
    {89, 99, 100, 48, 24, 58},    /* L4 */
    {90, 227, 228, 64, 32, 132},  /* H200 */
    {100, 227, 228, 64, 32, 148}, /* B200 */
    {103, 227, 228, 64, 32, 148}, /* B300 */
    {120, 99, 100, 48, 24, 170},  /* RTX 5090 */
    {121, 99, 100, 48, 24, 48},   /* GB10 */
};
#define LIMITS_COUNT (sizeof limits_table / sizeof limits_table[0])

int32_t fa_arch_cc(const char *arch) { return atoi(arch + strlen("sm_")); }

const char *fa_arch_words(void)
{
    static char known[160];
    size_t length = 0;
    for (size_t i = 0; i < LIMITS_COUNT; i++)
        length += (size_t)snprintf(known + length, sizeof known - length, "%ssm_%d%s", i > 0 ? ", " : "",
                                   limits_table[i].cc, limits_table[i].cc >= 90 ? "[a]" : "");
    return known;
}

fa_status fa_arch_limits_of(const char *arch, fa_arch_limits *limits, fa_reason *why)
{
    char *end = NULL;
    const long cc = strncmp(arch, "sm_", 3) == 0 ? strtol(arch + 3, &end, 10) : 0;
    const bool suffix_good =
        end != NULL && (*end == '\0' || ((*end == 'a' || *end == 'f') && end[1] == '\0' && cc >= 90));
    for (size_t i = 0; suffix_good && i < LIMITS_COUNT; i++) {
        if (limits_table[i].cc != cc)
            continue;
        *limits = (fa_arch_limits){.cc = limits_table[i].cc,
                                   .smem_block_bytes = limits_table[i].smem_block_kib << 10,
                                   .smem_sm_bytes = limits_table[i].smem_sm_kib << 10,
                                   .registers_sm = 64 << 10,
                                   .warps_sm = limits_table[i].warps_sm,
                                   .blocks_sm = limits_table[i].blocks_sm,
                                   .threads_block = 1024,
                                   .sm_count = limits_table[i].sm_count};
        return FA_PASS;
    }
    return fa_refuse(why, FA_USAGE, "--arch takes one of %s, not '%.40s'", fa_arch_words(), arch);
}

/* Each knob: what the user set, else what is already there. */
static void overlay(fa_knobs *knobs, const fa_knobs *set)
{
    int32_t *to = (int32_t *)knobs;
    const int32_t *from = (const int32_t *)set;
    for (size_t i = 0; i < sizeof *knobs / sizeof *to; i++)
        if (from[i] != FA_UNSET)
            to[i] = from[i];
}

static bool any_set(const fa_knobs *knobs)
{
    const int32_t *value = (const int32_t *)knobs;
    for (size_t i = 0; i < sizeof *knobs / sizeof *value; i++)
        if (value[i] != FA_UNSET)
            return true;
    return false;
}

/* Tiles of 64 query rows per multiprocessor, in percent. */
static int64_t fill_percent(const fa_problem *problem, int32_t sm_count)
{
    const int64_t tiles = (int64_t)problem->batch * problem->heads * ((problem->seq_q + 63) / 64);
    return tiles * 100 / sm_count;
}

/* The keys of a row, or of its window or chunk. */
static int64_t most_seen(const fa_problem *problem)
{
    const int64_t chunk = problem->chunk > 0 ? problem->chunk : problem->seq_kv;
    const bool closed = problem->windowed && problem->window_left >= 0 && problem->window_right >= 0;
    const int64_t window = (int64_t)problem->window_left + problem->window_right + 1;
    return closed && window < chunk ? window : chunk;
}

/* A macro is NAME or NAME=VALUE, a folder one that can be read; FA_* knobs are set by their own options. */
static fa_status check_lists(const fa_spec *spec, fa_reason *why)
{
    fa_spec every = *spec; /* with all macros that a run may define */
    every.lse = every.launches = true;
    every.dtype = FA_DTYPE_BF16;
    every.features |= FA_FEATURE_FP8 | FA_FEATURE_FP8_KV;
    for (int i = 0; i < spec->include.count; i++)
        if (access(spec->include.at[i], R_OK | X_OK) != 0)
            return fa_refuse(why, FA_USAGE, "--include takes a folder that can be read, not '%s'", spec->include.at[i]);
    for (int i = 0; i < spec->define.count; i++) {
        const char *define = spec->define.at[i];
        const size_t name = strspn(define, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
        if (name == 0 || (define[0] >= '0' && define[0] <= '9') || (define[name] != '\0' && define[name] != '='))
            return fa_refuse(why, FA_USAGE, "--define takes NAME or NAME=VALUE, not '%s'", define);
        fa_define knobs[FA_SPEC_DEFINES_MAX];
        const size_t count = fa_spec_defines(&every, knobs);
        for (size_t k = 0; k < count; k++)
            if (strcspn(knobs[k].text + 2, "=") == name && strncmp(knobs[k].text + 2, define, name) == 0)
                return fa_refuse(why, FA_USAGE, "--define %.*s: the tile and problem options set this macro", (int)name,
                                 define);
    }
    return FA_PASS;
}

/* A tile that the user asks for runs in the kernel that he asks for: its knobs rule out the rules of variants. */
static bool matches(const fa_rule *rule, const fa_spec *spec, const fa_problem *problem, int32_t sm_count)
{
    return rule->name != NULL && strcmp(rule->name, spec->name) == 0 && problem->dim <= rule->max_dim &&
           (spec->features & ~rule->features) == 0 && (rule->asks & ~spec->features) == 0 &&
           fa_registry_serves(rule)->traits.backward == problem->backward &&
           fa_registry_takes(rule, (spec->features & FA_FEATURE_FP8) != 0) &&
           (strcmp(rule->variant, rule->name) == 0 || !any_set(&spec->set)) &&
           (rule->causal < 0 || rule->causal == (problem->causal ? 1 : 0)) &&
           (rule->max_fill_percent < 0 || fill_percent(problem, sm_count) <= rule->max_fill_percent) &&
           (rule->max_rows == 0 || fa_packed_rows(problem) <= rule->max_rows) &&
           (rule->max_seq == 0 || problem->seq_q <= rule->max_seq) &&
           problem->heads / problem->kv_heads >= rule->min_group && problem->seq_kv >= rule->min_keys &&
           fa_arch_cc(spec->arch) >= rule->min_arch &&
           (rule->max_arch == 0 || fa_arch_cc(spec->arch) <= rule->max_arch) &&
           problem->dim_v <= (rule->max_dim_v == 0 ? rule->max_dim : rule->max_dim_v) &&
           (rule->max_seen == 0 || most_seen(problem) <= rule->max_seen);
}

static int64_t cost(const fa_rule *rule, const fa_problem *problem, int32_t sm_count)
{
    return rule->key_cost * fa_busiest_keys(&rule->knobs, problem, sm_count);
}

static const fa_rule *matching_rule(const fa_spec *spec, const fa_problem *problem, int32_t sm_count)
{
    const fa_rule *rule = fa_registry_rules();
    while (rule->name != NULL && !matches(rule, spec, problem, sm_count))
        rule++;
    if (rule->name == NULL)
        return NULL;
    const fa_rule *best = rule;
    int64_t least = rule->key_cost > 0 ? cost(rule, problem, sm_count) : 0;
    while (rule->key_cost > 0 && matches(rule + 1, spec, problem, sm_count) && rule[1].key_cost > 0) {
        const int64_t next = cost(++rule, problem, sm_count);
        if (next < least) {
            least = next;
            best = rule;
        }
    }
    return best;
}

/* The file of --source or --library, which gives the candidate its name. */
static fa_status use_file(const char *option, const char *path, fa_spec *spec, fa_reason *why)
{
    struct stat facts;
    if (access(path, R_OK) != 0 || stat(path, &facts) != 0 || !S_ISREG(facts.st_mode))
        return fa_refuse(why, FA_USAGE, "%s takes a file that can be read, not '%s'", option, path);
    const char *slash = strrchr(path, '/');
    const char *stem = slash != NULL ? slash + 1 : path;
    snprintf(spec->name, sizeof spec->name, "%.*s", (int)strcspn(stem, "."), stem);
    if (snprintf(spec->source, sizeof spec->source, "%s", path) >= (int)sizeof spec->source)
        return fa_refuse(why, FA_USAGE, "%s takes a path of at most %zu characters", option, sizeof spec->source - 1);
    return FA_PASS;
}

/* The file may state its space (FA_SPACE): the first value of each knob is its default. */
static fa_status use_source(const char *path, fa_spec *spec, fa_reason *why)
{
    fa_source_space space;
    FA_TRY(use_file("--source", path, spec, why));
    spec->kind = FA_KIND_HAND;
    FA_TRY(fa_source_space_read(path, &space, why));
    spec->stated = space.first;
    spec->needs = space.needs;
    spec->launches = space.launches;
    return FA_PASS;
}

static fa_status use_library(const char *path, fa_spec *spec, fa_reason *why)
{
    FA_TRY(use_file("--library", path, spec, why));
    if (any_set(&spec->set))
        return fa_refuse(why, FA_USAGE, "tile options are for kernels that are compiled here: %s is a library",
                         spec->name);
    spec->kind = FA_KIND_LIBRARY;
    return FA_PASS;
}

/* The number of a rule among those of its kernel, from 1; 0: none. */
static int32_t rule_number(const fa_rule *rule)
{
    int32_t number = 0;
    for (const fa_rule *at = fa_registry_rules(); rule != NULL && at <= rule; at++)
        number += strcmp(at->name, rule->name) == 0;
    return number;
}

/* Without --kernel: the first default from `rank` on that has a rule for the problem. False: none has. */
static bool choose_kernel(const fa_problem *problem, int32_t sm_count, int32_t rank, fa_spec *spec)
{
    fa_spec tried = *spec;
    for (; (tried.asked = fa_registry_default(problem->backward, rank)) != NULL; rank++) {
        tried.rank = rank;
        snprintf(tried.name, sizeof tried.name, "%s", tried.asked->name);
        if (matching_rule(&tried, problem, sm_count) != NULL) {
            *spec = tried;
            return true;
        }
    }
    return false;
}

/* Row, source and knobs for this target; of a registry kernel the first rule that matches the problem decides. */
static void select_tile(const fa_problem *problem, int32_t sm_count, fa_spec *spec)
{
    static const fa_knobs of_source = {.m = 64, .n = 64, .warps = 4, .vec = 8, .stages = 1, .splits = 1};
    spec->knobs = of_source;
    spec->sm_count = sm_count;
    if (spec->rank > 0)
        choose_kernel(problem, sm_count, spec->rank, spec);
    if (spec->asked == NULL)
        overlay(&spec->knobs, &spec->stated);
    if (spec->asked != NULL) {
        const fa_rule *rule = matching_rule(spec, problem, sm_count);
        spec->row = spec->asked;
        spec->rule = rule_number(rule);
        if (rule != NULL)
            spec->row = fa_registry_serves(rule);
        spec->kind = spec->row->kind;
        spec->knobs = rule != NULL ? rule->knobs : spec->row->knobs;
        if (spec->kind == FA_KIND_HAND)
            snprintf(spec->source, sizeof spec->source, "%s/kernels/%s.cu", fa_home(), spec->row->name);
    }
    overlay(&spec->knobs, &spec->set);
    if (spec->knobs.splits == 0)
        spec->knobs.splits = fa_splits_choose(spec->row, &spec->knobs, problem, sm_count);
}

bool fa_spec_next(const fa_problem *problem, fa_spec *spec)
{
    const bool more = spec->rank > 0 && spec->features != 0 && !any_set(&spec->set) &&
                      choose_kernel(problem, spec->sm_count, spec->rank + 1, spec);
    if (more)
        select_tile(problem, spec->sm_count, spec);
    return more;
}

const char *fa_spec_arch(const fa_options *options)
{
    fa_reason ignored;
    const fa_kernel_row *row = NULL;
    if (options->arch != NULL)
        return options->arch;
    if (options->kernel != NULL && options->source == NULL && !options->compile_only)
        fa_registry_find(options->kernel, &row, &ignored);
    return row != NULL && row->traits.arch_specific ? "sm_90a" : "sm_89";
}

/* The part that both candidates of a run share. `set` has the knobs of this one, `kernel` its name. */
static fa_status make(const fa_options *options, const fa_problem *problem, const char *kernel, const char *source,
                      const char *library, const fa_knobs *set, fa_spec *spec, fa_reason *why)
{
    fa_arch_limits limits;
    *spec = (fa_spec){.batch = problem->batch,
                      .heads = problem->heads,
                      .kv_heads = problem->kv_heads,
                      .seq_q = problem->seq_q,
                      .seq_kv = problem->seq_kv,
                      .dim = problem->dim,
                      .dim_v = fa_problem_dim_v(problem),
                      .features = fa_problem_features(problem),
                      .v_in_k = problem->v_in_k,
                      .causal = problem->causal,
                      .lse = options->lse,
                      .dtype = problem->dtype,
                      .compiler = (fa_compiler)options->compiler,
                      .arch_set = options->arch != NULL,
                      .include = options->include,
                      .define = options->define,
                      .set = *set};
    const char *arch = fa_spec_arch(options);
    FA_TRY(fa_arch_limits_of(arch, &limits, why));
    snprintf(spec->arch, sizeof spec->arch, "%.15s", arch);
    FA_TRY(check_lists(spec, why));
    if (library != NULL) {
        FA_TRY(use_library(library, spec, why));
    } else if (source != NULL) {
        FA_TRY(use_source(source, spec, why));
    } else {
        spec->rank = kernel == NULL;
        spec->asked = fa_registry_default(problem->backward, 1);
        if (kernel != NULL)
            FA_TRY(fa_registry_find(kernel, &spec->asked, why));
        snprintf(spec->name, sizeof spec->name, "%s", spec->asked->name);
    }
    select_tile(problem, limits.sm_count, spec);
    return FA_PASS;
}

fa_status fa_spec_make(const fa_options *options, const fa_problem *problem, fa_spec *spec, fa_reason *why)
{
    if (options->library != NULL && (options->kernel != NULL || options->source != NULL))
        return fa_refuse(why, FA_USAGE, "--library is a candidate like --%s: give one of them",
                         options->kernel != NULL ? "kernel" : "source");
    const fa_kernel_row *named = NULL;
    if (options->kernel != NULL && options->source != NULL && strcmp(options->kernel, "source") != 0) {
        FA_TRY(fa_registry_find(options->kernel, &named, why));
        return fa_refuse(why, FA_USAGE, "--kernel %s and --source are two candidates: give one of them, or --vs",
                         options->kernel);
    }
    return make(options, problem, options->kernel, options->source, options->library, &options->knob, spec, why);
}

fa_status fa_spec_make_vs(const fa_options *options, const fa_problem *problem, fa_spec *spec, fa_reason *why)
{
    const char *source = options->vs.source[0] != '\0' ? options->vs.source : NULL;
    fa_problem other = *problem;
    if (options->vs.dtype != FA_UNSET)
        other.dtype = options->vs.dtype;
    if (other.dtype == FA_DTYPE_E4M3 && (other.dim % 16 != 0 || other.dim_v % 16 != 0))
        return fa_refuse(why, FA_USAGE, "--vs: dtype=e4m3 takes a --dim and --dim-v that are multiples of 16");
    FA_TRY(make(options, &other, options->vs.name, source, options->vs.library, &options->vs.knobs, spec, why));
    if (options->vs.lse != FA_UNSET)
        spec->lse = options->vs.lse == 1;
    return FA_PASS;
}

fa_status fa_spec_for_device(const fa_problem *problem, const char *device_arch, int32_t sm_count, fa_spec *spec,
                             fa_reason *why)
{
    fa_arch_limits limits;
    if (!spec->arch_set) /* code for this very device may use its architecture-specific instructions */
        snprintf(spec->arch, sizeof spec->arch, "%.12s%s", device_arch,
                 fa_arch_cc(device_arch) >= 90 && strchr(device_arch, 'a') == NULL ? "a" : "");
    FA_TRY(fa_arch_limits_of(spec->arch, &limits, why));
    select_tile(problem, sm_count > 0 ? sm_count : limits.sm_count, spec);
    return FA_PASS;
}

size_t fa_spec_defines(const fa_spec *spec, fa_define defines[FA_SPEC_DEFINES_MAX])
{
    const struct {
        const char *name;
        int32_t value;
    } values[] = {
        {"FA_M", spec->knobs.m},
        {"FA_N", spec->knobs.n},
        {"FA_WARPS", spec->knobs.warps},
        {"FA_VEC", spec->knobs.vec},
        {"FA_STAGES", spec->knobs.stages},
        {"FA_SWIZZLE", spec->knobs.swizzle},
        {"FA_ACC_FP16", spec->knobs.acc},
        {"FA_SPLITS", spec->knobs.splits},
        {"FA_MAXREG", spec->knobs.maxreg},
        {"FA_DIM", spec->dim},
        {"FA_CAUSAL", spec->causal},
        /* left out where they are not asked for, so that the key of such code says nothing of them */
        {"FA_LSE", spec->lse ? 1 : FA_UNSET},
        {"FA_BF16", spec->dtype != FA_DTYPE_FP16 ? 1 : FA_UNSET},
        {"FA_FP8", (spec->features & FA_FEATURE_FP8) != 0 ? 1 : FA_UNSET},
        {"FA_FP8_KV", (spec->features & FA_FEATURE_FP8_KV) != 0 ? 1 : FA_UNSET},
        {"FA_BATCH", spec->launches ? spec->batch : FA_UNSET},
        {"FA_HEADS", spec->launches ? spec->heads : FA_UNSET},
        {"FA_KV_HEADS", spec->launches ? spec->kv_heads : FA_UNSET},
        {"FA_SEQ_Q", spec->launches ? spec->seq_q : FA_UNSET},
        {"FA_SEQ_KV", spec->launches ? spec->seq_kv : FA_UNSET},
        {"FA_FEATURES", spec->features != 0 ? spec->features : FA_UNSET},
        {"FA_V_IN_K", spec->v_in_k ? 1 : FA_UNSET},
        {"FA_DIM_V", spec->dim_v != spec->dim ? spec->dim_v : FA_UNSET},
    };
    size_t count = 0;
    _Static_assert(sizeof values / sizeof values[0] <= FA_SPEC_DEFINES_MAX, "room for every define");
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (values[i].value != FA_UNSET)
            snprintf(defines[count++].text, sizeof defines->text, "-D%s=%d", values[i].name, values[i].value);
    return count;
}
