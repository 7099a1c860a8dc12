#include "compile/sass.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "compile/cache.h"

/* State while the listing is read: labels, and the control flow of each instruction. */
typedef struct label {
    const char *name;
    int32_t at; /* the next instruction */
} label;

typedef struct parser {
    fa_sass *sass;
    label *labels;
    int32_t label_count;
    bool *starts; /* a block begins at this instruction */
} parser;

bool fa_opcode_is(const char *opcode, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(opcode, name, length) == 0 && (opcode[length] == '\0' || opcode[length] == '.');
}

/* "`(.L_x_4)" in the operands: the label's name, or NULL. Cuts the text at its closing bracket. */
static const char *label_in(const char *operands, size_t *length)
{
    const char *from = strstr(operands, "`(");
    if (from == NULL)
        return NULL;
    from += 2;
    *length = strcspn(from, ")");
    return from;
}

static int32_t find_label(const parser *all, const char *name, size_t length)
{
    for (int32_t i = 0; i < all->label_count; i++)
        if (strncmp(all->labels[i].name, name, length) == 0 && all->labels[i].name[length] == '\0')
            return all->labels[i].at;
    return -1;
}

/* "/\*0010*\/  @!P0 BRA `(.L_x_3) ;" in place: true when the line holds an instruction. */
static bool read_instruction(char *line, fa_instruction *one)
{
    char *at = line + strspn(line, " \t");
    if (strncmp(at, "/*", 2) != 0 || !isxdigit((unsigned char)at[2]) || (at = strstr(at, "*/")) == NULL)
        return false;
    at += 2;
    at += strspn(at, " \t");
    one->predicated = false;
    if (*at == '@') {
        one->predicated = strncmp(at, "@PT", 3) != 0 && strncmp(at, "@UPT", 4) != 0;
        at += strcspn(at, " \t");
        at += strspn(at, " \t");
    }
    if (!isupper((unsigned char)*at))
        return false;
    one->opcode = at;
    at += strcspn(at, " \t;");
    char *end = strchr(at, ';');
    if (end != NULL)
        *end = '\0';
    one->operands = *at == '\0' ? at : at + 1;
    *at = '\0';
    return true;
}

static void read_lines(parser *all, char *listing)
{
    fa_sass *sass = all->sass;
    bool in_text = false;
    char *rest = listing;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        const size_t length = strlen(line);
        if (strncmp(line + strspn(line, " \t"), ".section\t", 9) == 0)
            in_text = strstr(line, ".text.") != NULL && strstr(line, ".text.fa_before") == NULL &&
                      strstr(line, ".text.fa_after") == NULL; /* kernels of their own beside fa_kernel */
        if (!in_text)
            continue;
        if (length > 1 && line[length - 1] == ':' && !isspace((unsigned char)line[0])) {
            line[length - 1] = '\0';
            all->labels[all->label_count++] = (label){line, sass->instructions};
        } else if (read_instruction(line, &sass->instruction[sass->instructions])) {
            sass->instructions++;
        }
    }
}

static bool is_jump(const char *opcode)
{
    return fa_opcode_is(opcode, "BRA") || fa_opcode_is(opcode, "JMP") || fa_opcode_is(opcode, "WARPSYNC");
}

static bool ends_block(const fa_instruction *one)
{
    return is_jump(one->opcode) || fa_opcode_is(one->opcode, "EXIT") || fa_opcode_is(one->opcode, "CALL") ||
           fa_opcode_is(one->opcode, "RET") || fa_opcode_is(one->opcode, "BSYNC") || fa_opcode_is(one->opcode, "BRX") ||
           fa_opcode_is(one->opcode, "JMX") || fa_opcode_is(one->opcode, "BREAK");
}

static void add_edge(fa_sass *sass, int32_t from, int32_t to_block)
{
    fa_basic_block *block = &sass->block[from];
    for (int32_t i = 0; i < block->successors; i++)
        if (sass->successor[block->first_successor + i] == to_block)
            return;
    sass->successor[sass->edges++] = to_block;
    block->successors++;
}

static int32_t block_at(const fa_sass *sass, int32_t instruction)
{
    int32_t low = 0, high = sass->blocks - 1;
    while (low < high) {
        const int32_t middle = (low + high + 1) / 2;
        if (sass->block[middle].first <= instruction)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void add_target(const parser *all, int32_t from, const fa_instruction *one)
{
    size_t length = 0;
    const char *name = label_in(one->operands, &length);
    const int32_t at = name != NULL ? find_label(all, name, length) : -1;
    if (at >= 0 && at < all->sass->instructions)
        add_edge(all->sass, from, block_at(all->sass, at));
}

/* A thread that waits at "BSYNC B1" goes on where some "BSSY B1, label" says: all of them are successors. */
static void add_reconvergence(const parser *all, int32_t from, const fa_instruction *sync)
{
    char name[8];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(sync->operands, " ,"), sync->operands);
    for (int32_t i = 0; i < all->sass->instructions; i++) {
        const fa_instruction *one = &all->sass->instruction[i];
        if (fa_opcode_is(one->opcode, "BSSY") && strncmp(one->operands, name, strlen(name)) == 0)
            add_target(all, from, one);
    }
}

/* A return goes on after any call. */
static void add_returns(const parser *all, int32_t from)
{
    for (int32_t i = 0; i + 1 < all->sass->instructions; i++)
        if (fa_opcode_is(all->sass->instruction[i].opcode, "CALL") && all->starts[i + 1])
            add_edge(all->sass, from, block_at(all->sass, i + 1));
}

static fa_status add_edges(const parser *all, int32_t from, fa_reason *why)
{
    fa_sass *sass = all->sass;
    fa_basic_block *block = &sass->block[from];
    const fa_instruction *last = &sass->instruction[block->first + block->count - 1];
    const char *opcode = last->opcode;
    block->first_successor = sass->edges;
    if (fa_opcode_is(opcode, "BRX") || fa_opcode_is(opcode, "JMX"))
        return fa_refuse(why, FA_NOT_RUN, "the targets of '%s %s' are not known", opcode, last->operands);
    /* "BRA P0, label" is predicated too; "BRA.DIV" and WARPSYNC go on or jump. */
    const bool plain_jump = fa_opcode_is(opcode, "BRA") && strchr(opcode, '.') == NULL && last->operands[0] == '`';
    const bool falls = last->predicated ||
                       !(plain_jump || fa_opcode_is(opcode, "EXIT") || fa_opcode_is(opcode, "RET") ||
                         fa_opcode_is(opcode, "CALL") || fa_opcode_is(opcode, "BSYNC") || fa_opcode_is(opcode, "JMP"));
    block->exits = fa_opcode_is(opcode, "EXIT") || from + 1 == sass->blocks;
    if (is_jump(opcode) || fa_opcode_is(opcode, "CALL"))
        add_target(all, from, last);
    if (fa_opcode_is(opcode, "BSYNC"))
        add_reconvergence(all, from, last);
    if (fa_opcode_is(opcode, "RET"))
        add_returns(all, from);
    if (falls && from + 1 < sass->blocks)
        add_edge(sass, from, from + 1);
    return FA_PASS;
}

static void cut_blocks(parser *all)
{
    fa_sass *sass = all->sass;
    all->starts[0] = true;
    for (int32_t i = 0; i < all->label_count; i++)
        if (all->labels[i].at < sass->instructions)
            all->starts[all->labels[i].at] = true;
    for (int32_t i = 0; i + 1 < sass->instructions; i++)
        if (ends_block(&sass->instruction[i]))
            all->starts[i + 1] = true;
    for (int32_t i = 0; i < sass->instructions; i++) {
        if (all->starts[i])
            sass->block[sass->blocks++] = (fa_basic_block){.first = i};
        sass->block[sass->blocks - 1].count++;
    }
}

fa_status fa_sass_parse(char *listing, fa_sass *sass, fa_reason *why)
{
    size_t lines = 1;
    for (const char *at = listing; *at != '\0'; at++)
        lines += *at == '\n';
    *sass = (fa_sass){.listing = listing, .instruction = fa_alloc(lines * sizeof *sass->instruction)};
    parser all = {.sass = sass, .labels = fa_alloc(lines * sizeof *all.labels), .starts = fa_alloc(lines)};
    read_lines(&all, listing);
    fa_status status = FA_PASS;
    if (sass->instructions == 0)
        status = fa_refuse(why, FA_NOT_RUN, "nvdisasm listed no instruction");
    if (status == FA_PASS) {
        sass->block = fa_alloc((size_t)sass->instructions * sizeof *sass->block);
        cut_blocks(&all);
        sass->successor = fa_alloc(((size_t)sass->blocks + 2) * (size_t)sass->blocks * sizeof *sass->successor);
    }
    for (int32_t i = 0; status == FA_PASS && i < sass->blocks; i++)
        status = add_edges(&all, i, why);
    free(all.labels);
    free(all.starts);
    if (status != FA_PASS)
        fa_sass_free(sass);
    return status;
}

static fa_status disassemble(const char *cubin_path, char **listing, fa_reason *why)
{
    char *beside = fa_format("%s/build/tools/py/nvidia/cu13/bin/nvdisasm", fa_home());
    const char *const tools[] = {"nvdisasm", beside, "/usr/local/cuda/bin/nvdisasm"};
    int code = -1;
    for (size_t i = 0; i < sizeof tools / sizeof *tools && code != 0; i++) {
        if (strchr(tools[i], '/') != NULL && access(tools[i], X_OK) != 0)
            continue;
        const char *const command[] = {tools[i], "-c", cubin_path, NULL};
        free(*listing);
        *listing = NULL;
        code = fa_run(command, listing);
    }
    free(beside);
    if (code == 0)
        return FA_PASS;
    free(*listing);
    *listing = NULL;
    return fa_refuse(why, FA_NOT_RUN, "no nvdisasm (CUDA Toolkit, or scripts/setup.sh)");
}

/* nvdisasm takes half a second, so the cache keeps its listing of a cubin. */
fa_status fa_sass_read(const char *cubin_path, fa_sass *sass, fa_reason *why)
{
    char *cubin = NULL, *listing = NULL;
    size_t size = 0;
    fa_cache_entry entry;
    *sass = (fa_sass){.listing = NULL};
    FA_TRY(fa_read_file(cubin_path, &cubin, &size, why));
    char *text = fa_format("nvdisasm -c\n%s\n", fa_sha256(cubin, size).hex);
    const fa_digest key = fa_sha256(text, strlen(text));
    free(text);
    free(cubin);
    FA_TRY(fa_cache_open(&key, &entry, why));
    char *kept = fa_format("%s/listing", entry.folder);
    fa_status status = FA_PASS;
    if (entry.hit) {
        status = fa_read_file(kept, &listing, &size, why);
    } else {
        status = disassemble(cubin_path, &listing, why);
        FA_THEN(status, fa_write_file(kept, listing, strlen(listing), why));
        FA_THEN(status, fa_cache_publish(&key, &entry, why));
        if (status != FA_PASS)
            fa_cache_discard(&entry);
    }
    free(kept);
    if (status == FA_PASS)
        return fa_sass_parse(listing, sass, why);
    free(listing);
    return status;
}

void fa_sass_free(fa_sass *sass)
{
    free(sass->listing);
    free(sass->instruction);
    free(sass->block);
    free(sass->successor);
    *sass = (fa_sass){.listing = NULL};
}
