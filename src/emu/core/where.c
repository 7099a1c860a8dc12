#include "emu/core/where.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NEAR_BYTES (1 << 20)

typedef struct tensor {
    const char *name;
    const void *first;
    int64_t bytes, stride[3], count[3], columns; /* bytes: of an element; batch, head, row; strides in elements */
} tensor;

/* Elements from the first to one past the last, with gaps. */
static int64_t span_of(const tensor *t)
{
    int64_t span = t->columns;
    for (int i = 0; i < 3; i++)
        span += (t->count[i] - 1) * t->stride[i];
    return span;
}

/* Distance of `at` from the tensor in elements: 0 inside, negative before it. */
static int64_t distance_of(const tensor *t, int64_t at)
{
    const int64_t span = span_of(t);
    return at < 0 ? at : at < span ? 0 : at - span + 1;
}

static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* The element that the address would be, by the largest stride first; past the last row it stays in the last head. */
static void index_of(const tensor *t, int64_t at, int64_t index[3], int64_t *column)
{
    bool done[3] = {false};
    for (int left = 3; left > 0; left--) {
        int next = -1;
        for (int i = 0; i < 3; i++)
            if (!done[i] && (next < 0 || t->stride[i] > t->stride[next]))
                next = i;
        const int64_t last = t->count[next] - 1;
        index[next] = t->stride[next] > 0 ? floor_divide(at, t->stride[next]) : 0;
        if (left > 1)
            index[next] = index[next] < 0 ? 0 : index[next] > last ? last : index[next];
        at -= index[next] * t->stride[next];
        done[next] = true;
    }
    *column = at;
}

static void describe(const tensor *t, int64_t at, char *text, size_t size)
{
    const int64_t far = distance_of(t, at);
    int64_t index[3], column;
    char side[64] = "between its rows";
    index_of(t, at, index, &column);
    if (far != 0)
        snprintf(side, sizeof side, "%" PRId64 " element%s %s", far < 0 ? -far : far, far == 1 || far == -1 ? "" : "s",
                 far < 0 ? "before its start" : "past its end");
    else if (column < t->columns)
        snprintf(side, sizeof side, "inside");
    snprintf(text, size,
             "%s, %s: batch %" PRId64 ", head %" PRId64 ", row %" PRId64 " (rows 0 to %" PRId64 "), column %" PRId64,
             t->name, side, index[0], index[1], index[2], t->count[2] - 1, column);
}

bool fa_emu_where(const fa_params *params, const void *address, char *text, size_t size)
{
    const fa_params *p = params;
    const fa_i64(*g)[3] = p->grad_stride;
    const tensor tensors[] = {
        {"Q", p->q, 2, {p->q_stride_b, p->q_stride_h, p->q_stride_s}, {p->batch, p->heads, p->seq_q}, p->dim},
        {"K", p->k, 2, {p->k_stride_b, p->k_stride_h, p->k_stride_s}, {p->batch, p->kv_heads, p->seq_kv}, p->dim},
        {"V", p->v, 2, {p->v_stride_b, p->v_stride_h, p->v_stride_s}, {p->batch, p->kv_heads, p->seq_kv}, p->dim},
        {"O", p->o, 2, {p->o_stride_b, p->o_stride_h, p->o_stride_s}, {p->batch, p->heads, p->seq_q}, p->dim},
        {"LSE", p->lse, 4, {p->lse_stride_b, p->lse_stride_h, p->lse_stride_s}, {p->batch, p->heads, p->seq_q}, 1},
        {"dO", p->dout, 2, {g[0][0], g[0][1], g[0][2]}, {p->batch, p->heads, p->seq_q}, p->dim_v},
        {"dQ", p->dq, 2, {g[1][0], g[1][1], g[1][2]}, {p->batch, p->heads, p->seq_q}, p->dim},
        {"dK", p->dk, 2, {g[2][0], g[2][1], g[2][2]}, {p->batch, p->kv_heads, p->seq_kv}, p->dim},
        {"dV", p->dv, 2, {g[3][0], g[3][1], g[3][2]}, {p->batch, p->kv_heads, p->seq_kv}, p->dim_v},
    };
    const tensor *nearest = NULL;
    int64_t nearest_at = 0, least = NEAR_BYTES + 1;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const tensor *t = &tensors[i];
        const int64_t at = floor_divide((int64_t)((intptr_t)address - (intptr_t)t->first), t->bytes);
        const int64_t far = distance_of(t, at) * t->bytes, size_of_gap = far < 0 ? -far : far;
        if (t->first == NULL || size_of_gap >= least)
            continue;
        nearest = t;
        nearest_at = at;
        least = size_of_gap;
    }
    if (nearest == NULL)
        return false;
    describe(nearest, nearest_at, text, size);
    return true;
}

const char *fa_emu_frame_read(const char *lines, char frame[FA_EMU_FRAME])
{
    const size_t length = strcspn(lines, "\n");
    snprintf(frame, FA_EMU_FRAME, "%.*s", (int)length, lines);
    char *more = strstr(frame, " (discriminator ");
    if (more != NULL)
        *more = '\0';
    return lines[length] == '\n' && lines[length + 1] != '\0' ? lines + length + 1 : NULL;
}

const char *fa_emu_frame_name(const char *frame)
{
    const char *slash = strrchr(frame, '/');
    return slash != NULL ? slash + 1 : frame;
}

bool fa_emu_frame_in_kernel(const char *frame)
{
    if (strstr(frame, ".cu:") != NULL || strstr(frame, ".cuh:") != NULL)
        return true;
    const char *path = frame[0] == '/' ? frame : strstr(frame, " /");
    return path != NULL && strstr(path, "/src/emu/") == NULL && strncmp(path + (*path == ' '), "/usr/", 5) != 0;
}

bool fa_emu_frame_is_instruction(const char *frame)
{
    return strstr(frame, "/kernels/shared/prims.cuh:") != NULL || strstr(frame, "/kernels/shared/hopper.cuh:") != NULL;
}
