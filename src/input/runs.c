#include "input/runs.h"

#include "base/text.h"
#include "input/grid.h"
#include "input/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES_MAX = 100000, LINE_BYTES_MAX = 1 << 16 };

/* Of a line; and these options have one value for all runs. */
static const fa_ban banned[] = {
    {"runs", "on a line: a list has no lists in it"},
    {"jobs", "on a line: it is about the whole list; name it on the command line"},
    {"stream", "on a line: it is about the whole list; name it on the command line"},
    {"json", "on a line: one file takes the records of all lines; name it on the command line"},
    {"device", "on a line: the device is opened once for all lines; name it on the command line"},
    {"gpu", "on a line: the device is opened once for all lines; name it on the command line"},
    {"sanitize", "on a line: the whole process starts with its runtime; name it on the command line"},
    {"race", "on a line: the whole process starts with its runtime; name it on the command line"},
    {"list-kernels", "on a line is no run"},
    {"version", "on a line is no run"},
    {"help", "on a line is no run"},
    {NULL, NULL},
};

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* Takes one word off the line: characters move down over the quotes. NULL when a quote is open at the end. */
static char *take_word(char **line)
{
    char *from = *line, *to = *line, *word = *line, quote = '\0';
    for (; *from != '\0' && (quote != '\0' || !is_blank(*from)); from++) {
        if (quote == '\0' && (*from == '\'' || *from == '"'))
            quote = *from;
        else if (*from == quote)
            quote = '\0';
        else
            *to++ = *from;
    }
    *line = from + (*from != '\0');
    *to = '\0';
    return quote == '\0' ? word : NULL;
}

fa_status fa_runs_split(char *line, char *words[FA_RUN_WORDS_MAX], int *count, fa_reason *why)
{
    *count = 0;
    for (;;) {
        while (is_blank(*line))
            line++;
        if (*line == '\0')
            return FA_PASS;
        if (*count == FA_RUN_WORDS_MAX)
            return fa_refuse(why, FA_USAGE, "more than %d words", FA_RUN_WORDS_MAX);
        words[*count] = take_word(&line);
        if (words[(*count)++] == NULL)
            return fa_refuse(why, FA_USAGE, "a quote is open at the end of the line");
    }
}

/* Whether a word of the command line is the option, and whether its value is the next word. */
static bool is_option(const char *word, const char *name, bool *value_follows)
{
    const size_t length = strlen(name);
    if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, length) != 0)
        return false;
    *value_follows = word[2 + length] == '\0';
    return *value_follows || word[2 + length] == '=';
}

/* The command line without what belongs to all lines, then the line. */
static void join_command(fa_command *run, int argc, char *const argv[], int count, char *const words[])
{
    run->argv = fa_alloc(((size_t)argc + (size_t)count + 1) * sizeof *run->argv);
    for (int i = 0; i < argc; i++) {
        bool value_follows = false;
        if (i > 0 && (is_option(argv[i], "runs", &value_follows) || is_option(argv[i], "json", &value_follows) ||
                      is_option(argv[i], "jobs", &value_follows)))
            i += value_follows;
        else if (strcmp(argv[i], "--stream") == 0)
            continue;
        else
            run->argv[run->argc++] = argv[i];
    }
    for (int i = 0; i < count; i++)
        run->argv[run->argc++] = words[i];
}

/* Under a sanitizer the emulator is slow: without a size of the user's own it takes a small problem, and says so. */
static void make_small(fa_options *options)
{
    options->batch = 1;
    options->heads = 2;
    options->seq = 128;
    options->seeds = options->seeds_set ? options->seeds : 1;
    options->small = true;
}

/* What the options ask for, and whether they agree with each other. */
static fa_status plan(fa_command *run, fa_reason *why)
{
    const fa_options *options = &run->options;
    FA_TRY(fa_options_agree(options, why));
    if (options->sanitize != FA_SANITIZE_NONE && !options->sized && options->load == NULL)
        make_small(&run->options);
    if (options->load != NULL && !options->sized)
        FA_TRY(fa_npy_size(options->load, &run->options, why));
    FA_TRY(fa_problem_make(options, &run->problem, why));
    FA_TRY(fa_spec_make(options, &run->problem, &run->spec, why));
    if (options->cubin != NULL && run->spec.kind != FA_KIND_HAND)
        return fa_refuse(why, FA_USAGE, "--cubin takes a kernel that is compiled here: %s is a library",
                         run->spec.name);
    if (options->cubin != NULL && options->device == FA_DEVICE_EMU && !options->compile_only)
        return fa_refuse(why, FA_USAGE, "--cubin is what a GPU runs: not with --device emu, but for --compile-only");
    return options->vs.name[0] == '\0' ? FA_PASS : fa_spec_make_vs(options, &run->problem, &run->other, why);
}

/* Puts the file and the line of a run in front of the reason. */
static fa_status add_location(const fa_runs *runs, const fa_command *run, fa_status status, fa_reason *why)
{
    if (status == FA_PASS)
        return status;
    const fa_reason bare = *why;
    return fa_refuse(why, status, "%.1000s line %d: %.3000s", runs->from, run->options.line, bare.text);
}

static fa_command *add_run(const fa_options *options, int32_t number, fa_runs *runs)
{
    runs->at = fa_resize(runs->at, (runs->count + 1) * sizeof *runs->at);
    fa_command *run = runs->at[runs->count++] = fa_alloc(sizeof *run);
    *run = (fa_command){.options = *options};
    run->options.line = number;
    return run;
}

/* A line whose options have one value each. */
static fa_status add_words(const char *line, int32_t number, fa_runs *runs, fa_reason *why)
{
    char *words[FA_RUN_WORDS_MAX];
    int count = 0;
    fa_command *run = add_run(runs->options, number, runs);
    run->line = fa_format("%s", line);
    run->text = fa_format("%s", line);
    fa_status status = fa_runs_split(run->text, words, &count, why);
    FA_THEN(status, fa_options_add(count, words, banned, &run->options, why));
    join_command(run, runs->argc, runs->argv, count, words);
    FA_THEN(status, plan(run, why));
    return add_location(runs, run, status, why);
}

/* Words as a line that splits into them again. */
static char *line_of(char *const *words)
{
    char *text = NULL;
    FILE *out = fa_open_text(&text, NULL);
    for (; *words != NULL; words++) {
        fputs(" '", out);
        for (const char *c = *words; *c != '\0'; c++)
            fprintf(out, *c == '\'' ? "'\"%c\"'" : "%c", *c);
        fputc('\'', out);
    }
    fclose(out);
    return text;
}

/* A line for each run of a grid; of one run the line as it stands there. */
static fa_status add_grid(const fa_grid *grid, const char *line, int32_t number, fa_runs *runs, fa_reason *why)
{
    fa_status status = FA_PASS;
    if (grid->axes == 0)
        return add_words(line, number, runs, why);
    for (size_t i = 0; status == FA_PASS && i < grid->runs; i++) {
        char **words = fa_grid_words(grid, i), *single = line_of(words);
        status = add_words(single, number, runs, why);
        free(single);
        free(words);
    }
    return status;
}

/* One line of the file; blank lines and comments add no run. */
static fa_status add_line(const char *line, size_t size, int32_t number, fa_runs *runs, fa_reason *why)
{
    char *words[FA_RUN_WORDS_MAX];
    int count = 0;
    const size_t lead = strspn(line, " \t\r\n");
    if ((line[lead] == '\0' && lead == size) || line[lead] == '#')
        return FA_PASS;
    char *bare = fa_format("%.*s", (int)strcspn(line, "\n"), line), *text = fa_format("%s", bare);
    fa_grid grid = {.axes = 0};
    fa_status status = strlen(line) == size ? fa_runs_split(text, words, &count, why)
                                            : fa_refuse(why, FA_USAGE, "a zero byte in the line");
    FA_THEN(status, fa_grid_make(count, words, banned, &grid, why));
    if (status == FA_PASS && runs->in == NULL && runs->count + grid.runs > LINES_MAX)
        status = fa_refuse(why, FA_USAGE, "more than %d runs: split the list, or add --stream", LINES_MAX);
    const fa_command at = {.options = {.line = number}};
    status = status == FA_PASS ? add_grid(&grid, bare, number, runs, why) : add_location(runs, &at, status, why);
    fa_grid_free(&grid);
    free(text);
    free(bare);
    return status;
}

/* The bytes of the next line with its newline, LINE_BYTES_MAX of a longer one; 0 at the end. */
static size_t read_line(FILE *in, char *line)
{
    size_t size = 0;
    for (int c = 0; c != '\n' && size < LINE_BYTES_MAX && (c = getc(in)) != EOF;)
        line[size++] = (char)c;
    line[size] = '\0';
    return size;
}

/* Reads until there are `count` runs, or the list ends. A list that is not a stream may be endless: `yes | ...`. */
static fa_status add_lines(FILE *in, size_t count, fa_runs *runs, fa_reason *why)
{
    char *line = fa_alloc(LINE_BYTES_MAX + 1);
    fa_status status = FA_PASS;
    for (size_t size; status == FA_PASS && runs->count < count && (size = read_line(in, line)) > 0;) {
        const size_t mark = runs->lines++ == 0 && strncmp(line, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
        if (size == LINE_BYTES_MAX)
            status = fa_refuse(why, FA_USAGE, "--runs: line %d of %s is longer than %d bytes", runs->lines, runs->from,
                               LINE_BYTES_MAX);
        else if (runs->lines > LINES_MAX && runs->in == NULL)
            status = fa_refuse(why, FA_USAGE, "--runs: more than %d lines in %s: split the list, or add --stream",
                               LINES_MAX, runs->from);
        else
            status = add_line(line + mark, size - mark, runs->lines, runs, why);
    }
    free(line);
    FA_TRY(status);
    if (ferror(in))
        return fa_refuse(why, FA_USAGE, "--runs: cannot read %s: %s", runs->from, strerror(errno));
    return runs->count > 0 ? FA_PASS : fa_refuse(why, FA_USAGE, "--runs: no run in %s", runs->from);
}

bool fa_runs_reach(fa_runs *runs, size_t index, fa_status *status, fa_reason *why)
{
    if (*status == FA_PASS && runs->in != NULL && runs->count <= index)
        *status = add_lines(runs->in, index + 1, runs, why);
    return *status == FA_PASS && runs->count > index;
}

void fa_runs_append(fa_runs *runs, const char *line, size_t size, int32_t number)
{
    fa_reason why;
    const fa_status status = add_line(line, size, number, runs, &why);
    FA_ASSERT(status == FA_PASS, "%s", why.text);
}

/* A file or a pipe: no folder, no device that never ends. A list that grows waits for the pipe's writer. Without one,
 * any other list is empty. */
static FILE *open_lines(const char *path, bool grows)
{
    struct stat facts;
    const bool waits = grows && stat(path, &facts) == 0 && S_ISFIFO(facts.st_mode);
    const int file = open(path, waits ? O_RDONLY | O_CLOEXEC : O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return NULL;
    if (fstat(file, &facts) == 0 && (S_ISREG(facts.st_mode) || S_ISFIFO(facts.st_mode)) && fcntl(file, F_SETFL, 0) == 0)
        return fdopen(file, "r");
    close(file);
    errno = S_ISDIR(facts.st_mode) ? EISDIR : EINVAL;
    return NULL;
}

static fa_status add_single(const fa_options *options, fa_runs *runs, fa_reason *why)
{
    fa_command *run = add_run(options, 0, runs);
    join_command(run, 0, runs->argv, runs->argc, runs->argv);
    return plan(run, why);
}

/* A run for each combination of the values on the command line. */
static fa_status add_combinations(int argc, char *const argv[], fa_runs *runs, fa_reason *why)
{
    fa_grid grid;
    fa_status status = fa_grid_make(argc, argv, banned, &grid, why);
    for (size_t i = 0; status == FA_PASS && i < grid.runs; i++) {
        fa_options options;
        char **words = fa_grid_words(&grid, i), *values = fa_grid_values(&grid, i);
        status = fa_options_parse(argc, words, &options, why);
        fa_command *run = add_run(&options, (int32_t)i + 1, runs);
        run->text = (char *)words;
        join_command(run, argc, words, 0, NULL);
        FA_THEN(status, plan(run, why));
        if (status != FA_PASS) {
            const fa_reason bare = *why;
            fa_refuse(why, status, "with %.1000s: %.3000s", values, bare.text);
        }
        free(values);
    }
    fa_grid_free(&grid);
    return status;
}

fa_status fa_runs_make(int argc, char *const argv[], const fa_options *options, fa_runs *runs, fa_reason *why)
{
    *runs = (fa_runs){.from = options->runs, .argc = argc, .argv = argv, .options = options};
    runs->many = options->runs != NULL || options->several;
    if (options->stream && options->runs == NULL)
        return fa_refuse(why, FA_USAGE, "--stream goes with --runs: it is about the lines of a list");
    if (options->jobs > 0 && !runs->many)
        return fa_refuse(why, FA_USAGE,
                         "--jobs goes with --runs, or several values for an option: it is about many runs");
    if (runs->many && (options->dump != NULL || options->cubin != NULL))
        return fa_refuse(why, FA_USAGE, "%s with %s: all runs would write the same files",
                         options->dump != NULL ? "--dump" : "--cubin",
                         options->runs != NULL ? "--runs belongs on a line" : "several values for an option");
    if (options->runs == NULL)
        return options->several ? add_combinations(argc, argv, runs, why) : add_single(options, runs, why);
    if (options->several)
        return fa_refuse(why, FA_USAGE, "several values for an option, with --runs, belong on its lines");
    const bool standard = strcmp(options->runs, "-") == 0;
    FILE *in = standard ? stdin : open_lines(options->runs, options->stream);
    if (in == NULL)
        return fa_refuse(why, FA_USAGE, "--runs takes - or a file that can be read, not '%s': %s", options->runs,
                         strerror(errno));
    runs->from = standard ? "standard input" : options->runs;
    if (options->stream) {
        setvbuf(in, NULL, _IONBF, 0); /* the working process must not find, and give back, what is read ahead */
        runs->in = in;
        return FA_PASS;
    }
    const fa_status status = add_lines(in, SIZE_MAX, runs, why);
    if (!standard)
        fclose(in);
    return status;
}

char *fa_command_text(const fa_command *run)
{
    char *text = NULL;
    FILE *out = fa_open_text(&text, NULL);
    const char *slash = strrchr(run->argv[0], '/');
    for (int i = 0; i < run->argc; i++) {
        char *word = fa_shell_word(i == 0 && slash != NULL ? slash + 1 : run->argv[i]);
        fprintf(out, i > 0 ? " %s" : "%s", word);
        free(word);
    }
    fclose(out);
    return text;
}

char *fa_smaller_text(const fa_command *run)
{
    enum { SMALL = 128 };
    const fa_problem *p = &run->problem;
    const bool loaded = run->options.load != NULL, one = p->batch == 1 || loaded, short_q = p->seq_q <= SMALL || loaded,
               short_kv = p->seq_kv <= SMALL || loaded, lengths = p->lengths != NULL;
    const int q = p->seq_q < SMALL ? p->seq_q : SMALL, kv = p->seq_kv < SMALL ? p->seq_kv : SMALL;
    const bool one_head = p->heads == 1 || loaded, one_seed = run->options.seeds == 1;
    char *command, *text = NULL;
    if (one && one_head && short_q && short_kv && one_seed)
        return NULL;
    command = fa_command_text(run);
    FILE *out = fa_open_text(&text, NULL);
    fputs(command, out);
    if (lengths && !(one && short_q && short_kv))
        fprintf(out, " --lengths %d:%d", q, kv);
    fputs(one || lengths ? "" : " --batch 1", out);
    fputs(one_head ? "" : " --heads 1 --kv-heads 1", out);
    if (!lengths && !(short_q && short_kv))
        fprintf(out, " --seq %d --seq-kv %d", q, kv);
    fputs(one_seed ? "" : " --seeds 1", out);
    fclose(out);
    free(command);
    return text;
}

void fa_runs_done(fa_runs *runs, size_t index)
{
    fa_command *run = runs->at[index];
    if (run == NULL)
        return;
    fa_problem_free(&run->problem);
    free(run->argv);
    free(run->line);
    free(run->text);
    free(run);
    runs->at[index] = NULL;
}

void fa_runs_free(fa_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        fa_runs_done(runs, i);
    if (runs->in != NULL && runs->in != stdin)
        fclose(runs->in);
    free(runs->at);
    *runs = (fa_runs){.count = 0};
}
