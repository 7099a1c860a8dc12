#include "compile/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Static shared memory per block, on every architecture (CUDA C++ Programming Guide). */
#define STATIC_SMEM_LIMIT (48 << 10)

static size_t line_length(const char *line) { return strcspn(line, "\n"); }

static const char *next_line(const char *line)
{
    line += line_length(line);
    return *line == '\n' ? line + 1 : NULL;
}

static bool line_has(const char *line, const char *word)
{
    const char *found = strstr(line, word);
    return found != NULL && found < line + line_length(line);
}

/* The whole number before `unit` on this line: "24 bytes smem" with unit " bytes smem". */
static int32_t number_before(const char *line, const char *unit)
{
    const char *at = strstr(line, unit);
    if (at == NULL || at >= line + line_length(line))
        return 0;
    while (at > line && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return (int32_t)strtol(at, NULL, 10);
}

static void collect_warning(const char *line, fa_ptxas *ptxas)
{
    const bool ptxas_says = strncmp(line, "ptxas", 5) == 0;
    const bool costs_speed = line_has(line, "(C7") || line_has(line, "Local memory") || line_has(line, "local memory");
    if (!(ptxas_says && (line_has(line, "warning") || costs_speed)) && !(costs_speed && line_has(line, "warning")))
        return;
    if (ptxas->warning_count < FA_WARNINGS_MAX)
        snprintf(ptxas->warnings[ptxas->warning_count++], sizeof ptxas->warnings[0], "%.*s", (int)line_length(line),
                 line);
}

bool fa_log_ptxas(const char *log, const char *entry, fa_ptxas *ptxas)
{
    bool inside = false;
    char opening[128];
    snprintf(opening, sizeof opening, "Compiling entry function '%s' for '", entry);
    for (const char *line = log; line != NULL; line = next_line(line)) {
        collect_warning(line, ptxas);
        if (line_has(line, "Compiling entry function")) {
            inside = line_has(line, opening);
            if (inside)
                sscanf(strstr(line, opening) + strlen(opening), "%15[^'\n]", ptxas->arch);
        }
        if (!inside)
            continue;
        if (line_has(line, "bytes stack frame")) {
            ptxas->stack_bytes = number_before(line, " bytes stack frame");
            ptxas->spill_store_bytes = number_before(line, " bytes spill stores");
            ptxas->spill_load_bytes = number_before(line, " bytes spill loads");
        }
        if (line_has(line, "Used ") && line_has(line, " registers")) {
            ptxas->registers = number_before(line, " registers");
            ptxas->barriers = number_before(line, " barriers");
            ptxas->smem_static_bytes = number_before(line, " bytes smem");
            ptxas->known = true;
        }
    }
    return ptxas->known;
}

/* " (FILE:LINE)": the line of the kernel that a header of the emulator refuses at `error`. g++ prints it before. */
static void put_place(const char *log, const char *error, char *text, size_t size)
{
    const char *path = strstr(error, "src/emu/include/");
    if (path == NULL || path > error + strcspn(error, "\n"))
        return;
    for (const char *line = log; line != NULL && line < error; line = next_line(line)) {
        int file = 0, end = 0;
        sscanf(line, "%*[^:\n]%n:%*d%n", &file, &end);
        if (end > file && line_has(line, "required from here"))
            snprintf(text, size, " (%.*s)", end, line);
    }
}

/* Whether a text begins as NVRTC said it, with ? for bytes that are none of C++'s own characters. */
static bool begins(const char *text, const char *said)
{
    for (; *said != '\0'; text++, said++)
        if (*text != *said && (*said != '?' || (unsigned char)*text < ' '))
            return false;
    return true;
}

/* The sentence as it stands in the source line behind the message, where it stands there. */
static void restore(char *sentence, const char *source)
{
    const char *at = strchr(source, '"');
    while (at != NULL && !begins(at + 1, sentence))
        at = strchr(at + 1, '"');
    if (at != NULL)
        memcpy(sentence, at + 1, strlen(sentence));
}

bool fa_log_static_assert(const char *log, char *sentence, size_t size)
{
    static const char failed[] = "static assertion failed", with[] = " with \"";
    char place[1100] = "";
    for (const char *line = log; line != NULL; line = next_line(line)) {
        const char *said = strstr(line, failed), *end = line + line_length(line);
        if (said == NULL || said >= end)
            continue;
        said += strlen(failed);
        if (strncmp(said, with, strlen(with)) == 0) {
            said += strlen(with);
            end -= end > said && end[-1] == '"';
        } else {
            said += strncmp(said, ": ", 2) == 0 ? 2 : 0;
            put_place(log, line, place, sizeof place);
        }
        if (said < end) {
            snprintf(sentence, size, "%.*s%s", (int)(end - said), said, place);
            restore(sentence, next_line(line) != NULL ? next_line(line) : "");
        } else { /* the source follows, of g++ behind its number and a bar */
            const char *source = next_line(line) != NULL ? next_line(line) : "";
            source += strspn(source, " 0123456789|");
            snprintf(sentence, size, "without a sentence: %.*s", (int)line_length(source), source);
        }
        return true;
    }
    return false;
}

int32_t fa_log_static_smem_overflow(const char *log)
{
    int32_t most = 0;
    for (const char *line = log; line != NULL; line = next_line(line)) {
        int32_t bytes = number_before(line, " bytes smem");
        const char *wanted = strstr(line, "uses too much shared data (");
        if (wanted != NULL && wanted < line + line_length(line))
            bytes = (int32_t)strtol(wanted + strlen("uses too much shared data ("), NULL, 16);
        most = bytes > most ? bytes : most;
    }
    return most > STATIC_SMEM_LIMIT ? most : 0;
}

enum { LINE_LIMIT = 500 }; /* an #error, or a type of many templates, can be longer than all that is kept */

void fa_log_errors(const char *log, char *text, size_t size)
{
    int following = 0; /* the source line and its caret come after the message */
    text[0] = '\0';
    for (const char *line = log; line != NULL; line = next_line(line)) {
        const bool error = line_has(line, "error") || line_has(line, "undefined symbol");
        following = error ? 3 : following - 1;
        const size_t used = strlen(text), length = line_length(line);
        const size_t kept = length <= LINE_LIMIT ? length : LINE_LIMIT;
        if (following > 0 && length > 0 && used + kept + sizeof " ...\n" < size)
            snprintf(text + used, size - used, "%.*s%s\n", (int)kept, line, kept < length ? " ..." : "");
    }
    if (text[0] == '\0')
        snprintf(text, size, "%s", log);
    const size_t used = strlen(text);
    if (used > 0 && text[used - 1] == '\n')
        text[used - 1] = '\0';
}

fa_status fa_log_explain(const char *log, fa_reason *why)
{
    char text[3500];
    if (fa_log_static_assert(log, text, sizeof text))
        return fa_refuse(why, FA_INFEASIBLE, "%s", text);
    const int32_t bytes = fa_log_static_smem_overflow(log);
    if (bytes > 0)
        return fa_refuse(why, FA_INFEASIBLE,
                         "%d bytes of static shared memory against the limit of %d (declare it dynamic: FA_SHARED)",
                         bytes, STATIC_SMEM_LIMIT);
    fa_log_errors(log, text, sizeof text);
    return fa_refuse(why, FA_COMPILE_ERROR, "%s", text);
}
