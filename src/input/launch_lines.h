/* How a user's file says that its kernels are launched, in comments of the file, a statement each:
 *     // FA_BUFFER: float scores[batch * heads * seq_q * seq_kv] = 0
 *     // FA_BUFFER: float K = k.bhds
 *     // FA_LAUNCH: attention<dim><<<dim3(heads, batch), 128, 4 * dim * seq_kv>>>(q, K, v, o, scores, seq_q)
 * A line that ends with a backslash goes on in the next comment. docs/ordinary.md explains the forms. */
#pragma once

#include "base/status.h"
#include "fa_launch.h"

enum { FA_LAUNCH_LINES_MAX = 8, FA_BUFFER_LINES_MAX = FA_BUFFERS_MAX - 9 };

/* A kernel that is launched. Texts are C++ and malloc'd. */
typedef struct fa_launch_line {
    int32_t line;
    char *kernel, *grid, *block, *shared, *arguments;
    char *words; /* the arguments, and the macros of the file that they name */
} fa_launch_line;

/* Memory for the launches. Of a tensor, it holds a copy: of q, k, v, kv, qkv before the launches; o and lse are made of
 * it after them. Where the file computes gradients, o, lse and dout are copied before; dq, dk, dv, dkv, dqkv after. */
typedef struct fa_buffer_line {
    int32_t line; /* 0: no line: the bare name of a tensor in an argument */
    char *type, *name;
    char *count;    /* elements; NULL: a tensor's */
    char tensor[5]; /* one of FA_OF_NAMES (include/fa_launch.h) */
    char order[8];  /* of its axes, the last one innermost: b s d, h heads, H a K/V head once per query head, 2, 3 */
    char *first;    /* the value of every element before the launches, an expression in `i`; NULL: none */
    char *factor;   /* of q in a copy of q or qkv, of dq in one of dq or dqkv; NULL: 1 */
} fa_buffer_line;

typedef struct fa_launch_lines {
    fa_launch_line launches[FA_LAUNCH_LINES_MAX];
    fa_buffer_line buffers[FA_BUFFERS_MAX]; /* those of bare names last */
    int launch_count, buffer_count;         /* 0 launches: the file has none and is an ordinary one */
    bool gradients;
} fa_launch_lines;

/* FA_USAGE: a line that cannot be read, as "FILE:LINE: ...". Free the lines either way. */
fa_status fa_launch_lines_read(const char *path, const char *text, fa_launch_lines *lines, fa_reason *why);
void fa_launch_lines_free(fa_launch_lines *lines);
/* Whether one of the texts of the lines has that word, as a name of its own (not a member's). */
bool fa_launch_lines_have(const fa_launch_lines *lines, const char *word);
/* Whether the tensor is made of the buffer, after the launches. */
bool fa_launch_lines_output(const fa_launch_lines *lines, const fa_buffer_line *buffer);
