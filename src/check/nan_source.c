#include "check/nan_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "check/repeats.h"

/* Which tensors are read: zeros around their rows alone take the NaN away. */
enum { V = 1 << FA_V, K = 1 << FA_K, Q = 1 << FA_Q, TABLES = 1 << FA_TENSORS, ALL = 2 * TABLES - 1 };
enum { O = 1 << FA_O, LSE = 1 << FA_L, D_O = 1 << FA_DO, GRADIENTS = ALL & -(1 << FA_DQ) & ~TABLES, SOURCES = 8 };
static const struct {
    int32_t clean, clean_backward;
    const char *name, *hint;
} sources[SOURCES] = {
    {V, V, "V", " (0 times NaN is NaN)"},
    {K, K, "K", ""},
    {V | K, V | K, "K and V", ""},
    {Q, Q, "Q", ""},
    {TABLES, TABLES, "the bias, sinks, slopes, descales or the workspace", ""},
    {O | LSE, GRADIENTS, "the output", ", or where it was not written yet"},
    {O | LSE, O | LSE | D_O, "O, dO or the log-sum-exp", ""},
    {ALL, ALL, "several tensors", ""},
};

/* Launches with zeros around the rows of some tensors. False: that failed. */
static bool launch_with(fa_session *s, int32_t clean, uint16_t *output)
{
    fa_buffers *buffers = &s->candidate->buffers;
    fa_reason ignored;
    buffers->clean = clean;
    fa_status status = fa_buffers_fill(buffers, &s->kept->tensors, &ignored);
    FA_THEN(status, fa_candidate_launch(s->candidate, &ignored));
    FA_THEN(status, fa_buffers_output(buffers, output, &ignored));
    buffers->clean = 0;
    return status == FA_PASS;
}

/* Where the first launch wrote. Results that may differ in their last bits are NaN in the same places. */
static bool same(const fa_session *s, const uint16_t *a, const uint16_t *b)
{
    const size_t count = fa_buffers_output_count(&s->candidate->buffers);
    const fa_dtype dtype = fa_problem_dtype_o(s->problem);
    for (size_t i = 0; i < count; i++)
        if (s->output[i] != FA_POISON &&
            (s->candidate->nondeterministic ? fa_element_is_finite(dtype, a[i]) != fa_element_is_finite(dtype, b[i])
                                            : a[i] != b[i]))
            return false;
    return true;
}

static bool has_nan(const fa_session *s)
{
    for (size_t i = 0; i < fa_buffers_output_count(&s->candidate->buffers); i++)
        if (s->output[i] != FA_POISON && !fa_element_is_finite(fa_problem_dtype_o(s->problem), s->output[i]))
            return true;
    return false;
}

/* What is wrong without that NaN. */
static void add_rest(const fa_session *s, const uint16_t *output, fa_reason *why)
{
    const fa_kept *kept = s->kept;
    char failure[768] = "";
    if (!s->problem->backward)
        memcpy(failure,
               fa_judge(s->problem, &kept->reference, output, s->tile_m, s->result->atol, s->result->rtol).failure,
               sizeof failure);
    for (int32_t tensor = 0; s->problem->backward && tensor < FA_GRADS && failure[0] == '\0'; tensor++)
        if (kept->gradients.of[tensor].row_count > 0)
            memcpy(failure,
                   fa_judge_gradient(s->problem, tensor, &kept->gradients.of[tensor], output, &kept->tensors,
                                     kept->forward)
                       .failure,
                   sizeof failure);
    const char *pattern = strstr(failure, "looks like: ");
    fa_append_text(why->text, sizeof why->text, "; with zeros there the output %s",
                   failure[0] == '\0' ? "is right"
                   : pattern != NULL  ? pattern
                                      : "is wrong");
}

void fa_nan_source_find(fa_session *s, fa_reason *why)
{
    const fa_problem *p = s->problem;
    uint16_t *clean = fa_alloc(s->count * sizeof *clean), *some = fa_alloc(s->count * sizeof *some);
    int32_t i = 0;
    fa_session_gpu_lock(s, FA_GPU_LOCK_SHARED);
    const bool repeats = fa_check_repeats(p, fa_device_is_emu(s->candidate->device)) > 0 && launch_with(s, 0, some) &&
                         same(s, some, s->output) && launch_with(s, ALL, clean);
    const bool reads = repeats && !same(s, clean, s->output);
    while (reads && i < SOURCES - 1 &&
           !(launch_with(s, p->backward ? sources[i].clean_backward : sources[i].clean, some) && same(s, some, clean)))
        i++;
    fa_session_gpu_lock(s, FA_GPU_LOCK_NONE);
    if (repeats && !reads && has_nan(s))
        fa_append_text(why->text, sizeof why->text,
                       "; with zeros in place of all NaN around the tensors' rows it is the same: the kernel makes it "
                       "(0/0, inf - inf, memory that it has not written)");
    if (reads) {
        fa_append_text(why->text, sizeof why->text, "; NaN is read from %s outside of %s%s", sources[i].name,
                       p->pages != NULL     ? "the sequences' keys (a page's tail, a free page)"
                       : p->lengths != NULL ? "the sequences' rows"
                                            : "the tensor's rows",
                       sources[i].hint);
        add_rest(s, clean, why);
    }
    free(clean);
    free(some);
}
