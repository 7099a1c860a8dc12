#include "report/provenance.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "git_version.h"
#include "report/fields.h"

static void put_lines(cJSON *object, const char *key, const char *text)
{
    cJSON *array = cJSON_AddArrayToObject(object, key);
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        char *word = fa_format("%.*s", (int)length, text);
        cJSON_AddItemToArray(array, cJSON_CreateString(word));
        free(word);
        text += length + (text[length] == '\n');
    }
}

/* Where the wall time went, to the millisecond; a stage that a run was killed in has no time. */
static void put_stages(cJSON *provenance, const fa_result *result)
{
    static const char *const names[FA_AT_END] = {
        [FA_AT_START] = "start", [FA_AT_COMPILE] = "compile", [FA_AT_LOAD] = "load",
        [FA_AT_CHECK] = "check", [FA_AT_TIMING] = "timing",   [FA_AT_RECHECK] = "recheck",
    };
    cJSON *stages = object_in(provenance, "stage_s");
    for (fa_stage stage = FA_AT_START; stage < FA_AT_END; stage++)
        put(stages, names[stage], round(result->stage_s[stage] * 1e3) / 1e3);
    put(stages, "turn", round(result->gpu_lock_s * 1e3) / 1e3);
}

void fa_report_provenance(cJSON *record, const fa_result *result, const fa_command *run)
{
    const fa_options *options = &run->options;
    const fa_module *m = &result->main.module;
    cJSON *provenance = object_in(record, "provenance");
    put_text(provenance, "cubin_sha256", m->object_sha256.hex);
    put_text(provenance, "code_sha256", m->code_sha256.hex);
    PUT_FIELDS(provenance, m, same_code_as, ptx_arch);
    put_text(provenance, "source_sha256", m->source_sha256.hex);
    PUT_FIELDS(provenance, m, compiler, headers);
    put_lines(provenance, "options", m->options);
    cJSON_AddBoolToObject(provenance, "cache_hit", m->cache_hit);
    put(provenance, "compile_s", m->seconds);
    put_stages(provenance, result);
    put_text(provenance, "driver", result->device.driver);
    cJSON_AddStringToObject(provenance, "git", FA_GIT);
    put(provenance, "seed", options->seed);
    put_word(provenance, "dist", FA_DIST_WORDS, options->dist);
    char when[32] = "";
    const time_t now = time(NULL);
    struct tm utc;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    cJSON_AddStringToObject(provenance, "time", when);
    if (options->line > 0)
        put(provenance, "line", options->line);
    char *command = fa_command_text(run);
    cJSON_AddStringToObject(provenance, "command", command);
    free(command);
}
