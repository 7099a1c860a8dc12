/* A library for --library that computes on the CPU: tests run it beside tests/library/host_cuda.c, where device memory
 * is host memory. FA_STUB names what is wrong with it.
 *     gcc -shared -fPIC -Iinclude -o DIR/stub.so tests/library/stub.c -ldl -lm */
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fa_library.h"

static int is(const char *what)
{
    const char *mode = getenv("FA_STUB");
    return mode != NULL && strcmp(mode, what) == 0;
}

void fa_library_info(const fa_library_question *question, fa_library_answer *answer)
{
    const fa_params *p = question->problem;
    answer->abi = is("old_abi") ? 7 : FA_LIBRARY_ABI;
    if (!is("nameless")) {
        snprintf(answer->name, sizeof answer->name, "%s", is("two_lines") ? "a\nb" : "stub");
        snprintf(answer->version, sizeof answer->version, "1.2");
    }
    answer->workspace_bytes = is("negative") ? -1 : 64;
    answer->needs = is("needs") ? FA_NEEDS_WHOLE_N * 2 : 0;
    answer->writes_lse = !is("no_lse");
    answer->nondeterministic = is("nondeterministic");
    if (is("crash_info"))
        raise(SIGSEGV);
    if (is("packed_only") && (p->k_stride_s != p->dim || p->k_stride_h != p->seq_kv * p->dim ||
                              p->k_stride_b != p->kv_heads * p->k_stride_h || p->o_stride_s != p->dim))
        snprintf(answer->refusal, sizeof answer->refusal, "rows of K are %lld elements apart", p->k_stride_s);
    if (is("many_sms") && p->sm_count < 8)
        snprintf(answer->refusal, sizeof answer->refusal, "%d multiprocessors are too few", p->sm_count);
    if (p->dim % 16 != 0)
        snprintf(answer->refusal, sizeof answer->refusal, "head dimension %d: multiples of 16 only", p->dim);
    if (question->arch < 80)
        snprintf(answer->refusal, sizeof answer->refusal, "sm_%d is older than sm_80", question->arch);
    if (question->alignment_bytes < 16)
        snprintf(answer->refusal, sizeof answer->refusal, "tensors aligned to %d bytes", question->alignment_bytes);
}

static const _Float16 *row_of(const void *t, fa_i64 batch, fa_i64 head, fa_i64 row, const fa_i64 *stride)
{
    return (const _Float16 *)t + batch * stride[0] + head * stride[1] + row * stride[2];
}

static void attend(const fa_params *p, int batch, int head, int row)
{
    const int kv_head = head / (p->heads / p->kv_heads), last = row + p->seq_kv - p->seq_q;
    const int keys = p->causal && last + 1 < p->seq_kv ? (last < 0 ? 0 : last + 1) : p->seq_kv;
    const _Float16 *q = row_of(p->q, batch, head, row, &p->q_stride_b);
    _Float16 *o = (_Float16 *)row_of(p->o, batch, head, row, &p->o_stride_b);
    double sum = 0, acc[256] = {0};
    for (int key = 0; key < keys; key++) {
        const _Float16 *k = row_of(p->k, batch, kv_head, key, &p->k_stride_b);
        const _Float16 *v = row_of(p->v, batch, kv_head, key, &p->v_stride_b);
        double score = 0;
        for (int d = 0; d < p->dim; d++)
            score += (double)q[d] * (double)k[d];
        const double weight = exp(score * p->scale - (is("wrong") ? score * p->scale * 0.02 : 0));
        sum += weight;
        for (int d = 0; d < p->dim; d++)
            acc[d] += weight * (double)v[d];
    }
    if (p->lse != NULL)
        p->lse[batch * p->lse_stride_b + head * p->lse_stride_h + row * p->lse_stride_s] = (float)log(sum);
    for (int d = 0; d < p->dim; d++)
        o[d] = (_Float16)(keys > 0 ? acc[d] / sum : 0);
}

/* What a library does that makes a context of its own and forgets it. */
static void leave_no_context(void)
{
    int (*set_current)(void *context) = NULL;
    void *address = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuCtxSetCurrent");
    memcpy(&set_current, &address, sizeof address);
    set_current(NULL);
}

#ifndef WITHOUT_FORWARD
const char *fa_forward(const fa_params *p, void *stream)
{
    static int calls, met;
    if (is("meets") && met++ == 0) /* waits for the other end, in another process */
        close(open(getenv("FA_STUB_PIPE"), p->dim == 16 ? O_RDONLY : O_WRONLY));
    if (is("fails"))
        return "the stub has no\nlaunch today";
    if (is("hang"))
        for (;;)
            pause();
    if (is("crash"))
        raise(SIGSEGV);
    if (stream == NULL || p->workspace == NULL || p->workspace_bytes != 64)
        return "no stream or no workspace";
    for (int batch = 0; batch < p->batch; batch++)
        for (int head = 0; head < p->heads; head++)
            for (int row = 0; row < p->seq_q; row++)
                attend(p, batch, head, row);
    if (is("nondeterministic") || is("wobbles"))
        ((unsigned short *)p->o)[0] ^= ++calls & 1;
    if (is("overwrites"))
        ((unsigned short *)p->k)[3] = 0;
    if (is("context"))
        leave_no_context();
    return NULL;
}
#endif
