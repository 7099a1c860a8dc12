#include "report/records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "report/json.h"

/* A file is replaced by one made beside it; a device or a pipe, /dev/stdout say, is written as it is. */
static bool can_write(const char *path)
{
    struct stat facts;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode))
        return !S_ISDIR(facts.st_mode) && access(path, W_OK) == 0;
    char *real = realpath(path, NULL); /* a link's folder is its target's */
    const char *file = real == NULL ? path : real;
    const char *slash = strrchr(file, '/');
    char *folder = slash == NULL ? fa_format(".") : fa_format("%.*s", (int)(slash - file) + 1, file);
    const bool good = access(folder, W_OK) == 0;
    free(folder);
    free(real);
    return good;
}

static fa_status writable(const fa_options *options, fa_reason *why)
{
    if (can_write(options->json))
        return FA_PASS;
    return fa_refuse(why, FA_USAGE, "--json takes - or a file in a folder that can be written, not '%s'",
                     options->json);
}

static bool one_file(const char *path, const char *other)
{
    struct stat a, b;
    if (stat(path, &a) != 0 || stat(other, &b) != 0)
        return strcmp(path, other) == 0;
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static fa_status check_distinct(const char *output, const char *writes, const char *input, const char *reads,
                                fa_reason *why)
{
    if (input == NULL || input[0] == '\0' || !one_file(output, input))
        return FA_PASS;
    return fa_refuse(why, FA_USAGE, "%s and %s name one file, '%s': the %s would replace it", writes, reads, input,
                     strcmp(writes, "--json") == 0 ? "record" : "cubin");
}

/* Writing the output of `writes` would destroy what the run reads. */
static fa_status keep_inputs(const char *output, const char *writes, const fa_options *options, fa_reason *why)
{
    if (output == NULL || strcmp(output, "-") == 0)
        return FA_PASS;
    FA_TRY(check_distinct(output, writes, options->runs, "--runs", why));
    FA_TRY(check_distinct(output, writes, options->source, "--source", why));
    FA_TRY(check_distinct(output, writes, options->definition, "--definition", why));
    FA_TRY(check_distinct(output, writes, options->workload, "--workload", why));
    FA_TRY(check_distinct(output, writes, options->library, "--library", why));
    FA_TRY(check_distinct(output, writes, options->vs.source, "--vs source:", why));
    return check_distinct(output, writes, options->vs.library, "--vs library:", why);
}

fa_status fa_records_begin(const fa_options *options, const fa_runs *runs, fa_records *records, fa_reason *why)
{
    *records = (fa_records){.file = -1};
    FA_TRY(keep_inputs(options->json, "--json", options, why));
    for (size_t i = 0; i < runs->count; i++) {
        const fa_options *run = &runs->at[i]->options;
        FA_TRY(keep_inputs(options->json, "--json", run, why));
        FA_TRY(keep_inputs(run->cubin, "--cubin", run, why));
        if (options->json != NULL)
            FA_TRY(check_distinct(options->json, "--json", run->cubin, "--cubin", why));
    }
    if (options->json == NULL)
        return FA_PASS;
    if (strcmp(options->json, "-") == 0) {
        records->file = STDOUT_FILENO;
        return FA_PASS;
    }
    FA_TRY(writable(options, why));
    FA_TRY(fa_check_output(options->json, why));
    if (!runs->many)
        return FA_PASS;
    records->file = open(options->json, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    return records->file >= 0 ? FA_PASS
                              : fa_refuse(why, FA_ERROR, "cannot write %s: %s", options->json, strerror(errno));
}

static fa_status write_line(const fa_options *options, const char *line, fa_records *records, fa_reason *why)
{
    if (records->file < 0)
        return fa_write_file(options->json, line, strlen(line), why);
    const fa_status status = fa_append(records->file, line, strlen(line), why);
    records->lost = status != FA_PASS;
    return status;
}

fa_status fa_records_write(const fa_result *result, const fa_command *run, fa_records *records, fa_reason *why)
{
    if (run->options.json == NULL)
        return FA_PASS;
    char *json = fa_report_json(result, run);
    char *line = fa_format("%s\n", json);
    const fa_status status = write_line(&run->options, line, records, why);
    free(line);
    free(json);
    return status;
}
