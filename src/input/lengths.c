#include "input/lengths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/random.h"
#include "input/definition.h"

#define LENGTH_MOST 1048576 /* as --seq */

static fa_status add(fa_lengths *lengths, int32_t q, int32_t kv, fa_reason *why)
{
    if (lengths->count == FA_SEQUENCES_MOST)
        return fa_refuse(why, FA_USAGE, "--lengths takes at most %d sequences", FA_SEQUENCES_MOST);
    lengths->q[lengths->count] = q;
    lengths->kv[lengths->count++] = kv;
    return FA_PASS;
}

/* A whole number at `text`, which moves behind it; -1: there is none, or it is too large. */
static int32_t number(const char **text)
{
    char *end;
    if (**text < '0' || **text > '9')
        return -1;
    errno = 0;
    const long value = strtol(*text, &end, 10);
    *text = end;
    return errno != 0 || value > LENGTH_MOST ? -1 : (int32_t)value;
}

/* "17" or "1:4096", as a whole. */
static fa_status add_text(fa_lengths *lengths, const char *item, size_t size, fa_reason *why)
{
    char text[32];
    const char *at = text;
    int32_t q = -1, kv = -1;
    if (size < sizeof text) {
        memcpy(text, item, size);
        text[size] = '\0';
        q = kv = number(&at);
        if (q >= 0 && *at == ':') {
            at++;
            kv = number(&at);
        }
    }
    if (q < 0 || kv < 0 || *at != '\0')
        return fa_refuse(why, FA_USAGE,
                         "--lengths takes lengths from 0 to %d, N or QUERIES:KEYS, separated by commas, @FILE or "
                         "draw, not '%.*s'",
                         LENGTH_MOST, (int)(size < 60 ? size : 60), item);
    return add(lengths, q, kv, why);
}

static fa_status read_list(const char *list, fa_lengths *lengths, fa_reason *why)
{
    for (const char *at = list;; at++) {
        const size_t size = strcspn(at, ",");
        FA_TRY(add_text(lengths, at, size, why));
        at += size;
        if (*at == '\0')
            return FA_PASS;
    }
}

static fa_status read_lines(const char *path, fa_lengths *lengths, fa_reason *why)
{
    char *text = NULL;
    size_t size = 0;
    fa_reason inner;
    if (fa_read_file(path, &text, &size, &inner) != FA_PASS)
        return fa_refuse(why, FA_USAGE, "--lengths: %.1000s", inner.text);
    fa_status status = strlen(text) == size ? FA_PASS : fa_refuse(why, FA_USAGE, "--lengths: %s is no text", path);
    for (char *at = text + (strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0); status == FA_PASS && *at != '\0';) {
        const size_t line = strcspn(at, "\r\n"), blank = strspn(at, " \t");
        if (blank < line && at[blank] != '#') {
            size_t end = line;
            while (at[end - 1] == ' ' || at[end - 1] == '\t')
                end--;
            status = add_text(lengths, at + blank, end - blank, why);
        }
        at += line + (at[line] != '\0');
    }
    free(text);
    return status;
}

/* In turn: the largest, none, one, and then any. */
static int32_t drawn(uint64_t random, int32_t turn, int32_t most)
{
    return turn == 0 ? most : turn == 1 ? 0 : turn == 2 ? 1 : (int32_t)(random % (uint64_t)((int64_t)most + 1));
}

static fa_status draw(const fa_options *options, fa_lengths *lengths, fa_reason *why)
{
    uint64_t state = fa_random_mix((uint64_t)options->seed + FA_RANDOM_STEP);
    const int32_t keys = options->seq_kv == FA_UNSET ? options->seq : options->seq_kv;
    const int32_t shift = (int32_t)(fa_random_next(&state) % 8);
    for (int32_t b = 0; b < options->batch; b++) {
        const uint64_t q = fa_random_next(&state), kv = fa_random_next(&state);
        const int32_t turn =
            options->batch < 3 ? (b == 0 ? 0 : 3) : (b + shift) % (options->batch < 8 ? options->batch : 8);
        const int32_t rows = drawn(q, turn, options->seq);
        FA_TRY(add(lengths, rows, options->seq_kv == FA_UNSET ? rows : drawn(kv, (turn + b) % 8, keys), why));
    }
    return FA_PASS;
}

/* Starts for the lengths, with a gap of 1 to 7 rows after each sequence or without. At least one row is stored. */
static fa_status place(fa_lengths *lengths, bool gaps, fa_reason *why)
{
    int64_t q = 0, kv = 0;
    for (int32_t b = 0; b < lengths->count; b++) {
        const uint64_t random = fa_random_mix((uint64_t)b + FA_RANDOM_STEP);
        lengths->q_start[b] = (int32_t)q;
        lengths->kv_start[b] = (int32_t)kv;
        q += lengths->q[b] + (gaps ? 1 + (int64_t)(random % 7) : 0);
        kv += lengths->kv[b] + (gaps ? 1 + (int64_t)(random / 7 % 7) : 0);
        if (q > INT32_MAX || kv > INT32_MAX)
            return fa_refuse(why, FA_USAGE, "--lengths takes at most 2147483647 rows in all");
    }
    lengths->q_start[lengths->count] = (int32_t)q;
    lengths->kv_start[lengths->count] = (int32_t)(kv > 0 ? kv : 1);
    return FA_PASS;
}

fa_status fa_lengths_make(const fa_options *options, fa_lengths *lengths, fa_reason *why)
{
    const char *text = options->lengths;
    lengths->count = 0;
    if (strcmp(text, "draw") == 0)
        FA_TRY(draw(options, lengths, why));
    else if (strcmp(text, "workload") == 0 && options->workload != NULL)
        FA_TRY(fa_definition_lengths(options->definition, options->workload, lengths->q, lengths->kv, &lengths->count,
                                     why));
    else if (text[0] == '@')
        FA_TRY(read_lines(text + 1, lengths, why));
    else
        FA_TRY(read_list(text, lengths, why));
    if (fa_lengths_largest(lengths->q, lengths->count) == 0)
        return fa_refuse(why, FA_USAGE, "--lengths: no sequence has a query");
    return place(lengths, options->strides == FA_STRIDES_PADDED, why);
}

void fa_lengths_vary(const fa_lengths *asked, int32_t variant, fa_lengths *varied)
{
    const int32_t count = asked->count;
    *varied = *asked;
    for (int32_t b = 0; b < count; b++) {
        const int32_t other = count - 1 - b;
        varied->q[b] = variant % 2 == 1 ? asked->q[b] - asked->q[b] / 3 : asked->q[other];
        varied->kv[b] = variant % 2 == 1 ? asked->kv[b] - asked->kv[b] / 4 : asked->kv[other];
        if (variant % 2 == 1)
            continue;
        varied->q_start[b + 1] = varied->q_start[b] + asked->q_start[other + 1] - asked->q_start[other];
        varied->kv_start[b + 1] = varied->kv_start[b] + asked->kv_start[other + 1] - asked->kv_start[other];
    }
}

int32_t fa_lengths_largest(const int32_t *lengths, int32_t count)
{
    int32_t largest = 0;
    for (int32_t b = 0; b < count; b++)
        largest = lengths[b] > largest ? lengths[b] : largest;
    return largest;
}

int32_t fa_lengths_sequence(const int32_t *start, int32_t count, int32_t row)
{
    int32_t low = 0, high = count; /* start[low] <= row < start[high] */
    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        if (start[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}
