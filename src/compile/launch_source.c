#include "compile/launch_source.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

typedef struct writing {
    const fa_launch_lines *lines;
    const char *shown;
    const fa_cuda_file *files;
    size_t file_count;
    FILE *out;
} writing;

static int tensor_of(const fa_buffer_line *b)
{
    static const char *const names[] = FA_OF_NAMES;
    int tensor = FA_OF_COUNT - 1;
    while (tensor > 0 && strcmp(names[tensor], b->tensor) != 0)
        tensor--;
    return tensor;
}

/* The tensor may take the buffer's place, if the types are the same. */
static bool can_stand(const fa_buffer_line *b) { return strpbrk(b->order, "23H") == NULL && b->factor == NULL; }

/* Between both texts a kernel is a device function: it may have __launch_bounds__, __cluster_dims__ and parameters that
 * are __grid_constant__. */
const char *fa_launch_source_wrap(bool emulator, bool begins)
{
#define AGAIN "\n#undef __global__\n#undef __launch_bounds__\n#undef __cluster_dims__\n#define __global__"
    if (begins)
        return "#pragma push_macro(\"__grid_constant__\")\n#undef __grid_constant__\n#define __grid_constant__" AGAIN
               " __device__\n#define __launch_bounds__(...)\n#define __cluster_dims__(...)";
    return emulator ? "#pragma pop_macro(\"__grid_constant__\")" AGAIN
                      "\n#define __launch_bounds__(...) fa_emu_launch_bounds_of(__VA_ARGS__)\n"
                      "#define __cluster_dims__(...) fa_emu_cluster_dims_of(__VA_ARGS__)"
                    : "#pragma pop_macro(\"__grid_constant__\")" AGAIN " __attribute__((global))\n"
                      "#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))\n"
                      "#define __cluster_dims__(...) __attribute__((cluster_dims(__VA_ARGS__)))";
#undef AGAIN
}

/* The line of the file that what follows comes from. */
static void put_line(const writing *w, int32_t line)
{
    if (line > 0)
        fprintf(w->out, "#line %d \"%s\"\n", line, w->shown);
}

/* What the lines take for granted, as sentences. */
static void put_limits(const writing *w)
{
    bool floats = true, bare = false, lse = false;
    for (int i = 0; i < w->lines->buffer_count; i++) {
        const fa_buffer_line *b = &w->lines->buffers[i];
        if (b->count != NULL)
            continue;
        const bool query = strpbrk(b->tensor, "qlo") != NULL;
        lse = lse || strcmp(b->tensor, "lse") == 0;
        bare = bare || (b->line == 0 && strcmp(b->tensor, "lse") != 0);
        floats = floats && (strcmp(b->type, "float") == 0 || strcmp(b->tensor, "lse") == 0);
        put_line(w, b->line);
        if (strchr(b->order, 'b') == NULL)
            fprintf(w->out, "static_assert(FA_BATCH == 1, \"FA_BUFFER %s: %s.%s has no axis b: one batch\");\n",
                    b->name, b->tensor, b->order);
        if (strpbrk(b->order, "hH") == NULL)
            fprintf(w->out, "static_assert(%s == 1, \"FA_BUFFER %s: %s.%s has no axis h: one head\");\n",
                    query ? "FA_HEADS" : "FA_KV_HEADS", b->name, b->tensor, b->order);
        if (strstr(b->tensor, "qkv") != NULL)
            fprintf(w->out,
                    "static_assert(FA_SEQ_Q == FA_SEQ_KV%s, \"FA_BUFFER %s: %s in one tensor: as many queries as "
                    "keys%s\");\n",
                    strchr(b->order, 'H') == NULL ? " && FA_HEADS == FA_KV_HEADS" : "", b->name,
                    b->tensor[0] == 'd' ? "dq, dk and dv" : "q, k and v",
                    strchr(b->order, 'H') == NULL ? ", as many K/V heads as heads" : "");
    }
    put_line(w, w->lines->launches[0].line);
    if (w->lines->gradients)
        fputs("static_assert((FA_FEATURES & FA_FEATURE_BACKWARD) != 0, \"FA_LAUNCH: the lines compute gradients: for "
              "--op backward\");\n",
              w->out);
    if (fa_launch_lines_have(w->lines, "seq"))
        fputs("static_assert(FA_SEQ_Q == FA_SEQ_KV, \"FA_LAUNCH says seq: as many queries as keys\");\n", w->out);
    const bool bf16 = (floats && !bare) || fa_launch_lines_have(w->lines, "fa_element") ||
                      fa_launch_lines_have(w->lines, "__nv_bfloat16") || fa_launch_lines_have(w->lines, "nv_bfloat16");
    fprintf(w->out, "#define FA_LINES_BF16 %d\n#define FA_LINES_LSE %d\n", bf16, lse);
    if (!bf16)
        fputs("static_assert(!FA_BF16, \"FA_LAUNCH: the lines take FP16; with fa_element in them, BF16 too\");\n",
              w->out);
}

/* The types of the buffers, and where each begins in the workspace. */
static void put_memory(const writing *w)
{
    const int count = w->lines->buffer_count;
    for (int i = 0; i < count; i++) {
        put_line(w, w->lines->buffers[i].line);
        fprintf(w->out, "using fa_type_%d = %s;\n", i, w->lines->buffers[i].type);
    }
    fputs("__host__ __device__ constexpr fa_memory fa_memory_make()\n{\n    FA_LAUNCH_COUNTS;\n    fa_memory fa_m{};\n",
          w->out);
    for (int i = 0; i < count; i++) {
        const fa_buffer_line *b = &w->lines->buffers[i];
        put_line(w, b->line);
        fprintf(w->out, "    fa_m.count[%d] = ", i);
        if (b->count != NULL)
            fprintf(w->out, "(fa_i64)(%s);\n", b->count);
        else
            fprintf(w->out, "fa_count_of(%d, \"%s\");\n", tensor_of(b), b->order);
        fprintf(w->out,
                "    fa_m.at[%d] = fa_m.at[%d] + (fa_m.count[%d] * (fa_i64)sizeof(fa_type_%d) + 255) / 256 * 256;\n",
                i + 1, i, i, i);
    }
    fputs("    return fa_m;\n}\ntemplate <int fa_n> inline constexpr fa_i64 fa_at = fa_memory_make().at[fa_n];\n"
          "template <int fa_n> inline constexpr fa_i64 fa_count = fa_memory_make().count[fa_n];\n",
          w->out);
    for (int i = 0; i < count; i++) {
        const fa_buffer_line *b = &w->lines->buffers[i];
        put_line(w, b->line);
        fprintf(w->out, "static_assert(fa_count<%d> > 0, \"FA_BUFFER %s has no elements\");\n", i, b->name);
        if (b->count == NULL)
            fprintf(w->out, "constexpr bool fa_as_is_%d = %s && fa_same<fa_type_%d, %s>;\n", i,
                    can_stand(b) ? "true" : "false", i, strcmp(b->tensor, "lse") == 0 ? "float" : "fa_element");
    }
}

/* The last name of KERNEL: attention of flash::attention<64>. */
static fa_cxx_token base_name(const char *kernel)
{
    const char *end = kernel, *from;
    for (const char *c = kernel; *c != '\0' && *c != '<'; c++)
        end = isspace((unsigned char)*c) ? end : c + 1;
    for (from = end; from > kernel && (isalnum((unsigned char)from[-1]) || from[-1] == '_'); from--)
        ;
    return (fa_cxx_token){.kind = FA_CXX_WORD, .at = from, .length = (size_t)(end - from)};
}

/* The attribute of the kernel's declaration, "__launch_bounds__(128, 2) "; of a template's nothing: its arguments may
 * be parameters. malloc'd, or NULL. */
static char *attribute_of(const writing *w, const char *kernel, const char *attribute)
{
    const fa_cxx_token name = base_name(kernel);
    char *text = NULL;
    for (size_t f = 0; f < w->file_count; f++)
        for (size_t i = 0; i < w->files[f].count && text == NULL; i++) {
            const fa_declaration *d = &w->files[f].declarations[i];
            const fa_cxx_tokens *t = &w->files[f].tokens;
            if (d->body == 0 || strlen(d->name) != name.length || strncmp(d->name, name.at, name.length) != 0 ||
                fa_cxx_is(&t->at[d->first], "template"))
                continue;
            for (size_t k = d->first; k + 1 < d->body; k++)
                if (fa_cxx_is(&t->at[k], attribute)) {
                    const size_t close = fa_cxx_close(t, k + 1);
                    text = fa_format("%.*s ", (int)(fa_cxx_end(&t->at[close]) - t->at[k].at), t->at[k].at);
                    for (char *c = text; *c != '\0'; c++)
                        *c = isspace((unsigned char)*c) ? ' ' : *c;
                    break;
                }
        }
    return text;
}

/* An entry point, and its call for the emulator. step: its place in the plan, where its number is one more; the first
 * launch of the lines is fa_kernel. */
static void put_entry(const writing *w, int step, int first, const char *attributes, const char *body)
{
    char name[32] = "fa_kernel";
    if (step != first)
        snprintf(name, sizeof name, "fa_step_%d", step + 1);
    fprintf(w->out,
            "extern \"C\" __global__ void %s%s(const __grid_constant__ fa_params fa_p)\n{\n%s}\nFA_EMU_CALL(%d, %s)\n",
            attributes, name, body, step + 1, name);
}

/* What a launch sees: sizes, tensors, buffers. */
static char *names_of(const writing *w)
{
    char *text = fa_format("    FA_LAUNCH_SIZES;\n    [[maybe_unused]] const fa_params &p = fa_own(fa_p);\n"
                           "    [[maybe_unused]] const float scale = fa_p.scale;\n");
    for (int i = 0; i < w->lines->buffer_count; i++) {
        const fa_buffer_line *b = &w->lines->buffers[i];
        char *place = fa_format("(fa_type_%d *)((char *)fa_p.workspace + fa_at<%d>)", i, i);
        if (b->count == NULL && can_stand(b))
            fa_extend(&text,
                      "    [[maybe_unused]] fa_type_%d *const %s = fa_tensor(fa_p, %d, \"%s\", fa_as_is_%d, %s);\n", i,
                      b->name, tensor_of(b), b->order, i, place);
        else
            fa_extend(&text, "    [[maybe_unused]] fa_type_%d *const %s = %s;\n", i, b->name, place);
        free(place);
    }
    return text;
}

typedef enum { COPY_IN, FILL, COPY_OUT } transfer;

static bool has_transfer(const writing *w, const fa_buffer_line *b, transfer what)
{
    return what == FILL ? b->first != NULL
                        : b->count == NULL && (what == COPY_OUT) == fa_launch_lines_output(w->lines, b);
}

/* The entries of one kind of transfer, from step `step` on. Returns the next step. */
static int put_transfers(const writing *w, transfer what, int step, int first, const char *names)
{
    for (int i = 0; i < w->lines->buffer_count; i++) {
        const fa_buffer_line *b = &w->lines->buffers[i];
        if (!has_transfer(w, b, what))
            continue;
        char *body;
        if (what == FILL)
            body = fa_format("%s    for (fa_i64 i = fa_first_element(); i < fa_count<%d>; i += fa_element_step())\n"
                             "#line %d \"%s\"\n        %s[i] = (fa_type_%d)(%s);\n",
                             names, i, b->line, w->shown, b->name, i, b->first);
        else
            body = fa_format("%s    fa_copy_%s(fa_p, %d, \"%s\", (fa_type_%d *)((char *)fa_p.workspace + fa_at<%d>), "
                             "fa_count<%d>%s%s%s);\n",
                             b->factor != NULL ? names : "", what == COPY_IN ? "in" : "out", tensor_of(b), b->order, i,
                             i, i, b->factor != NULL ? ", (float)(" : "", b->factor != NULL ? b->factor : "",
                             b->factor != NULL ? ")" : "");
        put_entry(w, step++, first, "__launch_bounds__(FA_COPY_THREADS) ", body);
        free(body);
    }
    return step;
}

static void put_launches(const writing *w, int first, const char *names)
{
    for (int i = 0; i < w->lines->launch_count; i++) {
        const fa_launch_line *l = &w->lines->launches[i];
        const bool named = strstr(l->kernel, "::") != NULL; /* what its bounds name may not be seen from here */
        char *bounds = named ? NULL : attribute_of(w, l->kernel, "__launch_bounds__");
        char *cluster = attribute_of(w, l->kernel, "__cluster_dims__");
        char *attributes = bounds != NULL ? fa_format("%s%s", bounds, cluster != NULL ? cluster : "")
                                          : fa_format("__launch_bounds__(fa_threads_%d) %s", first + i,
                                                      cluster != NULL ? cluster : "");
        char *body = fa_format("%s#line %d \"%s\"\n    %s(%s);\n", names, l->line, w->shown, l->kernel, l->arguments);
        put_line(w, l->line);
        put_entry(w, first + i, first, attributes, body);
        free(body);
        free(attributes);
        free(cluster);
        free(bounds);
    }
}

static void put_plan_transfers(const writing *w, transfer what, int *step)
{
    for (int i = 0; i < w->lines->buffer_count; i++) {
        const fa_buffer_line *b = &w->lines->buffers[i];
        char as_is[32] = "false";
        if (what != FILL)
            snprintf(as_is, sizeof as_is, "fa_as_is_%d", i);
        if (has_transfer(w, b, what))
            fprintf(w->out, "    plan.steps[plan.count++] = fa_copy_step(%d, fa_count<%d>, %d, %s, \"%s\");\n", ++*step,
                    i, what == FILL ? 0 : tensor_of(b), as_is, what == FILL ? "" : b->order);
    }
}

/* Returns the step of the first launch. */
static int put_plan(const writing *w)
{
    int step = 0;
    fputs("__host__ __device__ constexpr fa_plan fa_plan_make()\n{\n    FA_LAUNCH_SIZES;\n    fa_plan plan{};\n",
          w->out);
    fprintf(w->out, "    plan.workspace_bytes = fa_at<%d>;\n", w->lines->buffer_count);
    put_plan_transfers(w, COPY_IN, &step);
    put_plan_transfers(w, FILL, &step);
    const int first = step;
    for (int i = 0; i < w->lines->launch_count; i++, step++) {
        const fa_launch_line *l = &w->lines->launches[i];
        put_line(w, l->line);
        fprintf(w->out, "    plan.steps[plan.count++] = fa_step_of(%d, %d, %s, %s, %s);\n",
                step == first ? 0 : step + 1, l->line, l->grid, l->block, l->shared);
    }
    put_plan_transfers(w, COPY_OUT, &step);
    fputs("    return plan;\n}\nconstexpr fa_plan fa_plan_made = fa_plan_make();\n", w->out);
    for (int i = 0; i < w->lines->launch_count; i++)
        fprintf(w->out, "constexpr int fa_threads_%d = fa_threads_of(fa_plan_made.steps[%d]);\n", first + i, first + i);
    fputs("extern \"C\" __device__ const fa_plan fa_launch_plan = fa_plan_made;\n", w->out);
    fprintf(w->out,
            "FA_KERNEL_INFO(.threads = fa_threads_%d, .smem_dynamic_bytes = fa_shared_of(fa_plan_made.steps[%d]), "
            ".workspace_bytes_fixed = fa_at<%d>, .nondeterministic = FA_NONDETERMINISTIC, .writes_lse = FA_LINES_LSE, "
            ".serves_bf16 = FA_LINES_BF16, .serves = %s);\n",
            first, first, w->lines->buffer_count,
            w->lines->gradients ? "FA_FEATURE_BACKWARD | (FA_NONDETERMINISTIC ? 0 : FA_FEATURE_DETERMINISTIC)" : "0");
    return first;
}

void fa_launch_source_put(FILE *out, const fa_launch_lines *lines, const char *shown, const fa_cuda_file *files,
                          size_t count)
{
    const writing w = {.lines = lines, .shown = shown, .files = files, .file_count = count, .out = out};
    fputs("\n#undef p\n#undef q\n#undef k\n#undef v\n#undef o\n#undef i\n#undef lse\n#undef dout\n#undef dq\n#undef "
          "dk\n#undef dv\n#undef batch\n#undef heads\n"
          "#undef kv_heads\n#undef seq\n#undef seq_q\n#undef seq_kv\n#undef dim\n#undef causal\n#undef scale\n",
          out);
    put_limits(&w);
    put_memory(&w);
    char *names = names_of(&w);
    const int first = put_plan(&w);
    int step = put_transfers(&w, COPY_IN, 0, first, names);
    step = put_transfers(&w, FILL, step, first, names);
    put_launches(&w, first, names);
    put_transfers(&w, COPY_OUT, step + lines->launch_count, first, names);
    free(names);
}
