#include "input/needs.h"

#include <string.h>

fa_status fa_needs_read(const char *text, int32_t *needs, fa_reason *why)
{
    while (true) {
        text += strspn(text, " \t,");
        const size_t length = strcspn(text, " \t,\r\n)*;");
        if (length == 0)
            return FA_PASS;
        char word[32] = "";
        int bit = 0;
        while (fa_word(FA_NEEDS_WORDS, bit, word)[0] != '\0' &&
               (strlen(word) != length || strncmp(word, text, length) != 0))
            bit++;
        if (word[0] == '\0')
            return fa_refuse(why, FA_USAGE, "FA_NEEDS takes words of %s, not '%.*s'", FA_NEEDS_WORDS,
                             (int)(length < 40 ? length : 40), text);
        *needs |= 1 << bit;
        text += length;
    }
}

/* A sequence whose length is no multiple of `tile`; -1: there is none. */
static int32_t odd_length(const fa_problem *problem, bool keys, int32_t tile)
{
    const int32_t count = problem->lengths != NULL ? problem->batch : 1;
    for (int32_t b = 0; b < count && tile > 0; b++) {
        const int32_t length = keys ? fa_problem_seq_kv(problem, b) : fa_problem_seq_q(problem, b);
        if (length % tile != 0)
            return length;
    }
    return -1;
}

/* The first sequence with other keys than queries; -1: there is none. */
static int32_t unlike(const fa_problem *problem)
{
    for (int32_t b = 0; b < (problem->lengths != NULL ? problem->batch : 1); b++)
        if (fa_problem_seq_q(problem, b) != fa_problem_seq_kv(problem, b))
            return b;
    return -1;
}

fa_status fa_needs_check(int32_t needs, const char *name, const fa_options *options, const fa_problem *problem,
                         const fa_knobs *knobs, fa_reason *why)
{
    char strides[32];
    fa_word(FA_STRIDES_WORDS, options->strides, strides);
    if (needs & FA_NEEDS_PACKED && options->strides != FA_STRIDES_PACKED)
        return fa_refuse(why, FA_INFEASIBLE, "%s needs packed tensors: not --strides %s", name, strides);
    if (needs & FA_NEEDS_MHA && problem->kv_heads != problem->heads)
        return fa_refuse(why, FA_INFEASIBLE, "%s needs a K/V head for each query head: not %d for %d", name,
                         problem->kv_heads, problem->heads);
    const int32_t b = needs & FA_NEEDS_SELF ? unlike(problem) : -1;
    if (b >= 0)
        return fa_refuse(why, FA_INFEASIBLE, "%s needs as many keys as queries: not %d and %d", name,
                         fa_problem_seq_kv(problem, b), fa_problem_seq_q(problem, b));
    if (needs & FA_NEEDS_ALIGNED && (options->misalign != 0 || options->strides == FA_STRIDES_ODD))
        return fa_refuse(why, FA_INFEASIBLE, "%s needs tensors and rows on 16-byte boundaries: not --%s", name,
                         options->misalign != 0 ? "misalign" : "strides odd");
    const int32_t rows = needs & FA_NEEDS_WHOLE_M ? odd_length(problem, false, knobs->m) : -1;
    if (rows >= 0)
        return fa_refuse(why, FA_INFEASIBLE, "%s needs query rows in multiples of m (%d): not %d", name, knobs->m,
                         rows);
    const int32_t keys = needs & FA_NEEDS_WHOLE_N ? odd_length(problem, true, knobs->n) : -1;
    if (keys >= 0)
        return fa_refuse(why, FA_INFEASIBLE, "%s needs keys in multiples of n (%d): not %d", name, knobs->n, keys);
    return FA_PASS;
}
