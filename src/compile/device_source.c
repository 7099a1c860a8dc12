#include "compile/device_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "compile/host_code.h"
#include "compile/launch_source.h"
#include "compile/paths.h"
#include "compile/source_digest.h"

typedef struct edit {
    const char *from, *to;
    char *text;
} edit;

typedef struct rewriting {
    const fa_spec *spec;
    fa_device_compiler whom;
    fa_source_files paths; /* only the user's files are rewritten: user[i] */
    bool *user;
    char **texts; /* as they are on disk */
    fa_cuda_file *files;
    edit *edits; /* of the current file, in order */
    size_t edit_count;
    fa_launch_lines lines; /* of the source */
    bool uses_std;         /* device code uses std */
    bool changed;
} rewriting;

static bool is_below(const char *path, const char *folder)
{
    const size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Leaves the files below a folder unchanged. word: only if one of them contains it; NULL: always. */
static void leave_folder(rewriting *r, const char *folder, const char *word)
{
    char *real = realpath(folder, NULL); /* as `paths` are */
    bool leaves = word == NULL;
    for (size_t f = 1; f < r->paths.count && real != NULL && !leaves; f++)
        leaves = r->user[f] && is_below(r->paths.paths[f], real) && strstr(r->texts[f], word) != NULL;
    for (size_t f = 1; f < r->paths.count && real != NULL && leaves; f++)
        if (is_below(r->paths.paths[f], real))
            r->user[f] = false;
    free(real);
}

/* Our own headers suit every compiler. */
static void leave_ours(rewriting *r)
{
    static const char *const folders[] = {"include", "kernels", "src/emu/include"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char *folder = fa_format("%s/%s", fa_home(), folders[i]);
        leave_folder(r, folder, NULL);
        free(folder);
    }
}

static void add_edit(rewriting *r, const char *from, const char *to, char *text)
{
    size_t at = r->edit_count;
    while (at > 0 && from < r->edits[at - 1].from)
        at--;
    if (at > 0 && from < r->edits[at - 1].to) { /* inside a range that is already replaced */
        free(text);
        return;
    }
    r->edits = fa_resize(r->edits, (r->edit_count + 1) * sizeof *r->edits);
    memmove(r->edits + at + 1, r->edits + at, (r->edit_count++ - at) * sizeof *r->edits);
    r->edits[at] = (edit){.from = from, .to = to, .text = text};
    r->changed = true;
}

/* [] __device__ (int x) { }: nvcc takes it with --extended-lambda. NVRTC has no such option and needs none. */
static void rewrite_lambdas(rewriting *r, const fa_cxx_tokens *t, const fa_declaration *d)
{
    for (size_t i = d->body; i < d->last; i++)
        if (t->at[i].kind == FA_CXX_MARK && *t->at[i].at == ']')
            while (fa_cxx_is(&t->at[i + 1], "__device__") || fa_cxx_is(&t->at[i + 1], "__host__")) {
                i++;
                add_edit(r, t->at[i].at, fa_cxx_end(&t->at[i]), fa_format("%s", ""));
            }
}

/* NVRTC takes no __host__ functions. Members of a class that the device needs become __host__ __device__. */
static void rewrite_host_members(rewriting *r, const fa_cxx_tokens *t, const fa_declaration *d)
{
    for (size_t i = d->first + 1; i + 1 < d->last; i++)
        if (fa_cxx_is(&t->at[i], "__host__") && !fa_cxx_is(&t->at[i - 1], "__device__") &&
            !fa_cxx_is(&t->at[i + 1], "__device__"))
            add_edit(r, t->at[i].at, fa_cxx_end(&t->at[i]), fa_format("__host__ __device__"));
}

/* The next "using namespace std" from `i` on; `last`: none. */
static size_t find_using_std(const fa_cxx_tokens *t, size_t i, size_t last)
{
    while (i + 2 < last &&
           !(fa_cxx_is(&t->at[i], "using") && fa_cxx_is(&t->at[i + 1], "namespace") && fa_cxx_is(&t->at[i + 2], "std")))
        i++;
    return i + 2 < last ? i : last;
}

/* NVRTC has the functions of <cmath> twice, built in and in cuda::std: the namespace of fa_names.h leaves them out. */
static void rewrite_using_std(rewriting *r, const fa_cxx_tokens *t, const fa_declaration *d)
{
    for (size_t i = d->first; (i = find_using_std(t, i, d->last)) < d->last; i += 3)
        add_edit(r, t->at[i + 2].at, fa_cxx_end(&t->at[i + 2]), fa_format("fa_std_names"));
}

static int32_t line_of(const char *text, const char *at)
{
    int32_t line = 1;
    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

/* #define __global__ __device__ */
static bool defines_wrapping(const fa_cxx_token *line)
{
    char name[32];
    return sscanf(line->at, "# define %31[_a-z]", name) == 1 && strcmp(name, "__global__") == 0 &&
           memmem(line->at, line->length, "__device__", strlen("__device__")) != NULL;
}

static bool any_wrapping(const rewriting *r)
{
    for (size_t f = 0; f < r->paths.count; f++)
        for (size_t i = 0; i < r->files[f].tokens.count; i++) {
            const fa_cxx_token *token = &r->files[f].tokens.at[i];
            if (token->kind == FA_CXX_DIRECTIVE && defines_wrapping(token))
                return true;
        }
    return false;
}

/* The usual way to wrap a kernel: #define __global__ __device__, an include, and #undef (or pop_macro). */
static bool rewrite_wrapping(rewriting *r, size_t f, const fa_cxx_token *line)
{
    char name[32] = "", how[8] = "";
    const bool defines = sscanf(line->at, "# %7[a-z] %31[_a-z]", how, name) == 2 &&
                         (strcmp(how, "define") == 0 || strcmp(how, "undef") == 0);
    if ((!defines && sscanf(line->at, "# pragma pop_macro(\"%31[_a-z]", name) != 1) || strcmp(name, "__global__") != 0)
        return false;
    const int32_t next = line_of(r->texts[f], fa_cxx_end(line)) + 1;
    const char *macros = fa_launch_source_wrap(r->whom == FA_FOR_EMULATOR, defines_wrapping(line));
    add_edit(r, line->at, fa_cxx_end(line), fa_format("%s\n#line %d", macros, next));
    return true;
}

/* Standard headers include each other: std::numeric_limits may come with <string>. */
static char *stand_in(const rewriting *r, const char *name)
{
    const bool library = strpbrk(name, "./") == NULL || strcmp(name, "bits/stdc++.h") == 0;
    return fa_format("%s", !library || !r->uses_std     ? ""
                           : r->whom == FA_FOR_EMULATOR ? "#include \"fa_emu_std.h\""
                                                        : "#include <limits>");
}

/* An include of another user file names its copy; a host-only header is removed. */
static void rewrite_include(rewriting *r, size_t f, const fa_cxx_token *line)
{
    char name[FA_INCLUDE_NAME], found[PATH_MAX], real[PATH_MAX];
    bool quoted = false;
    if (!fa_source_include(line->at, name, &quoted))
        return;
    if (!fa_source_resolve(r->paths.paths[0], &r->spec->include, r->paths.paths[f], name, quoted, found) ||
        realpath(found, real) == NULL) {
        if (r->whom != FA_FOR_NVCC && fa_host_code_header(name))
            add_edit(r, line->at, fa_cxx_end(line), stand_in(r, name));
        return;
    }
    const bool was_changed = r->changed;
    for (size_t i = 0; i < r->paths.count; i++)
        if (r->user[i] && strcmp(r->paths.paths[i], real) == 0)
            add_edit(r, line->at, fa_cxx_end(line), fa_format("#include \"FA_FOLDER/user%zu.cu\"", i));
    r->changed = was_changed; /* an include alone is no reason to copy */
}

static void find_edits(rewriting *r, size_t f)
{
    const fa_cuda_file *file = &r->files[f];
    const fa_cxx_tokens *t = &file->tokens;
    for (size_t i = 0; i < file->count; i++) {
        const fa_declaration *d = &file->declarations[i];
        if (d->host) {
            add_edit(r, t->at[d->first].at, fa_cxx_end(&t->at[d->last]), fa_format("%s", ""));
        } else if (r->whom == FA_FOR_NVRTC) {
            rewrite_using_std(r, t, d);
            if (d->type)
                rewrite_host_members(r, t, d);
            if (d->body > 0)
                rewrite_lambdas(r, t, d);
        }
    }
    for (size_t line = 0; line < t->count; line++)
        if (t->at[line].kind == FA_CXX_DIRECTIVE && !rewrite_wrapping(r, f, &t->at[line]))
            rewrite_include(r, f, &t->at[line]);
}

/* Applies the edits; they keep the number of lines. */
static char *apply_edits(rewriting *r, size_t f)
{
    char *text = NULL;
    const char *at = r->texts[f];
    FILE *out = fa_open_text(&text, NULL);
    char *shown = fa_path_to_show(r->paths.paths[f]);
    const bool launches = f == 0 && r->lines.launch_count > 0, emulator = r->whom == FA_FOR_EMULATOR;
    if (launches)
        fprintf(out, "#include \"fa_launch.h\"\n%s\n", fa_launch_source_wrap(emulator, true));
    fprintf(out, "#line 1 \"%s\"\n", shown);
    for (size_t i = 0; i < r->edit_count; i++) {
        fwrite(at, 1, (size_t)(r->edits[i].from - at), out);
        fputs(r->edits[i].text, out);
        fa_cxx_put_breaks(out, r->edits[i].from, r->edits[i].to);
        at = r->edits[i].to;
        free(r->edits[i].text);
    }
    fputs(at, out);
    if (launches) {
        fprintf(out, "\n%s\n", fa_launch_source_wrap(emulator, false));
        fa_launch_source_put(out, &r->lines, shown, r->files, r->paths.count);
    }
    fclose(out);
    free(shown);
    r->edit_count = 0;
    return text;
}

static fa_status read_texts(rewriting *r, fa_reason *why)
{
    for (size_t f = 0; f < r->paths.count; f++) {
        size_t size = 0;
        if (r->user[f])
            FA_TRY(fa_read_file(r->paths.paths[f], &r->texts[f], &size, why));
        if (r->user[f] && strncmp(r->texts[f], "\xEF\xBB\xBF", 3) == 0)
            memset(r->texts[f], ' ', 3); /* a byte order mark, which compilers take at the start of a file alone */
    }
    return FA_PASS;
}

/* Whether device code uses std other than in "using namespace std". */
static bool any_std(const rewriting *r)
{
    for (size_t f = 0; f < r->paths.count; f++)
        for (size_t i = 0; i < r->files[f].count; i++) {
            const fa_declaration *d = &r->files[f].declarations[i];
            const fa_cxx_tokens *t = &r->files[f].tokens;
            if (!d->host && fa_cxx_has(t, d->first, d->last, "std") && find_using_std(t, d->first, d->last) != d->first)
                return true;
        }
    return false;
}

/* The source's digest says nothing of what our own code made of its lines. */
static fa_status digest_launches(fa_device_source *made, fa_reason *why)
{
    char *header = fa_format("%s/include/fa_launch.h", fa_home());
    const fa_status status = fa_source_digest(header, NULL, &made->launch_digest, why);
    char *all = fa_format("%s%s", made->files[0].text, made->launch_digest.hex);
    made->launch_digest = fa_sha256(all, strlen(all));
    free(all);
    free(header);
    return status;
}

static fa_status rewrite(rewriting *r, fa_device_source *made, fa_reason *why)
{
    const size_t count = r->paths.count;
    r->user = fa_alloc(count * sizeof *r->user);
    r->texts = fa_alloc(count * sizeof *r->texts);
    r->files = fa_alloc(count * sizeof *r->files);
    for (size_t f = 0; f < count; f++)
        r->user[f] = true;
    leave_ours(r);
    FA_TRY(read_texts(r, why));
    FA_TRY(fa_launch_lines_read(r->spec->source, r->texts[0], &r->lines, why));
    for (int i = 0; i < r->spec->include.count; i++) /* libraries like CUTLASS, which know NVRTC by its macro */
        leave_folder(r, r->spec->include.at[i], "__CUDACC_RTC__");
    for (size_t f = 0; f < count; f++)
        r->files[f].text = r->user[f] ? r->texts[f] : "";
    if (!fa_host_code_find(r->files, count))
        return FA_PASS; /* the compiler reports the error */
    made->launches = r->changed = r->lines.launch_count > 0;
    if (r->whom == FA_FOR_NVCC && !any_wrapping(r) && !made->launches)
        return FA_PASS;
    r->uses_std = any_std(r);
    made->files = fa_alloc(count * sizeof *made->files);
    made->count = count;
    for (size_t f = 0; f < count; f++) {
        made->plain_functions = made->plain_functions || fa_host_code_plain_functions(&r->files[f]);
        if (!r->user[f])
            continue;
        find_edits(r, f);
        made->files[f] = (fa_device_file){.path = fa_format("%s", r->paths.paths[f]), .text = apply_edits(r, f)};
    }
    return made->launches ? digest_launches(made, why) : FA_PASS;
}

fa_status fa_device_source_read(const fa_spec *spec, fa_device_compiler whom, fa_device_source *made, fa_reason *why)
{
    rewriting r = {.spec = spec, .whom = whom};
    *made = (fa_device_source){.count = 0};
    if (spec->asked != NULL)
        return FA_PASS;
    fa_status status = fa_source_files_read(spec->source, &spec->include, &r.paths, why);
    FA_THEN(status, rewrite(&r, made, why));
    if (status != FA_PASS || !r.changed) {
        const bool plain_functions = made->plain_functions;
        fa_device_source_free(made);
        made->plain_functions = plain_functions;
    }
    for (size_t f = 0; r.files != NULL && f < r.paths.count; f++) {
        fa_host_code_free(&r.files[f]);
        free(r.texts[f]);
    }
    free(r.edits);
    free(r.files);
    free(r.texts);
    free(r.user);
    fa_launch_lines_free(&r.lines);
    fa_source_files_free(&r.paths);
    return status;
}

static char *copy_path(const char *folder, size_t number) { return fa_format("%s/user%zu.cu", folder, number); }

/* Replaces FA_FOLDER in includes by the folder's name. */
static char *with_folder(const char *text, const char *folder)
{
    char *out_text = NULL;
    FILE *out = fa_open_text(&out_text, NULL);
    static const char mark[] = "#include \"FA_FOLDER/";
    for (const char *at; (at = strstr(text, mark)) != NULL; text = at + strlen(mark)) {
        fwrite(text, 1, (size_t)(at - text), out);
        fprintf(out, "#include \"%s/", fa_path_to_open(folder));
    }
    fputs(text, out);
    fclose(out);
    return out_text;
}

fa_status fa_device_source_write(const fa_device_source *made, const char *own_source, const char *folder,
                                 char **source, fa_reason *why)
{
    fa_status status = FA_PASS;
    for (size_t i = 0; i < made->count && status == FA_PASS; i++) {
        if (made->files[i].text == NULL)
            continue;
        char *path = copy_path(folder, i), *text = with_folder(made->files[i].text, folder);
        status = fa_write_file(path, text, strlen(text), why);
        free(text);
        free(path);
    }
    *source = made->count > 0 ? copy_path(folder, 0) : fa_format("%s", own_source);
    return status;
}

void fa_device_source_unlink(const fa_device_source *made, const char *folder)
{
    for (size_t i = 0; i < made->count; i++) {
        char *path = copy_path(folder, i);
        if (made->files[i].text != NULL)
            unlink(path);
        free(path);
    }
}

void fa_device_source_free(fa_device_source *made)
{
    for (size_t i = 0; i < made->count; i++) {
        free(made->files[i].path);
        free(made->files[i].text);
    }
    free(made->files);
    *made = (fa_device_source){.count = 0};
}
