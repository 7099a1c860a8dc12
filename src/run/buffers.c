#include "run/buffers.h"

#include <stdlib.h>
#include <string.h>

#include "run/elements.h"

static const char *const names[] = {"q", "k", "v", "o", "lse", "dout", "dq", "dk", "dv", "dsinks", "the workspace"};

/* Present when AddressSanitizer's runtime is: guards are then out of bounds for the emulator's kernels. */
__attribute__((weak)) void __asan_poison_memory_region(void const volatile *address, size_t size);
__attribute__((weak)) void __asan_unpoison_memory_region(void const volatile *address, size_t size);

/* The elements of one block of a tensor. */
typedef struct range {
    fa_ptr at;
    size_t count;
} range;

/* A guard band: before or after a block of a tensor, or the workspace. */
typedef struct guard {
    int tensor;
    int64_t block;
    bool after;
    range at;
} guard;
static const guard no_guard = {.block = -1, .after = true};

static bool is_clean(const fa_buffers *buffers, int tensor) { return (buffers->clean >> tensor & 1) != 0; }

/* What stands around the rows of a tensor, and in one that is written. */
static fa_status fill(const fa_buffers *buffers, int tensor, range to, fa_reason *why)
{
    return fa_elements_fill(buffers->device, &buffers->layout[tensor], to.at, is_clean(buffers, tensor) ? 0 : FA_POISON,
                            to.count, why);
}

/* V of --v-in-k: K's memory, guards and contents stand for it. */
static bool is_inside_k(const fa_buffers *buffers, int tensor)
{
    return tensor == FA_V && buffers->problem != NULL && buffers->problem->v_in_k;
}

/* Elements from base to the tensor, and bytes of one in memory. The log-sum-exp is counted in halves: --misalign moves
 * it by two for each. */
static size_t offset_of(const fa_buffers *buffers, int tensor)
{
    const size_t aligned = FA_GUARD_COUNT, misaligned = buffers->offset - aligned;
    return aligned + misaligned * (tensor == FA_WORKSPACE ? 0 : fa_tensor_is_fp32(tensor) ? 2 : 1);
}

static size_t bytes_of(const fa_buffers *buffers, int tensor, size_t elements)
{
    return elements * (size_t)fa_layout_bytes(&buffers->layout[tensor]);
}

fa_ptr fa_buffers_at(const fa_buffers *buffers, int tensor)
{
    return buffers->base[tensor] + bytes_of(buffers, tensor, offset_of(buffers, tensor));
}

size_t fa_buffers_bytes(const fa_buffers *buffers, int tensor)
{
    return bytes_of(buffers, tensor, fa_layout_span(&buffers->layout[tensor]));
}

static range block_at(const fa_buffers *buffers, int tensor, int64_t block)
{
    const fa_layout *layout = &buffers->layout[tensor];
    const fa_ptr offset = bytes_of(buffers, tensor, (size_t)(block * layout->block_pitch));
    return (range){fa_buffers_at(buffers, tensor) + offset, layout->block_count};
}

/* The guard before or after a block. Between the blocks of FA_STRIDES_FAR they cover the ends of a longer gap. */
static range guard_at(const fa_buffers *buffers, int tensor, int64_t block, bool after)
{
    const fa_layout *layout = &buffers->layout[tensor];
    const range inside = block_at(buffers, tensor, block);
    const fa_ptr end = inside.at + bytes_of(buffers, tensor, inside.count);
    if (!after && block == 0)
        return (range){buffers->base[tensor], offset_of(buffers, tensor)};
    if (!after)
        return (range){inside.at - bytes_of(buffers, tensor, FA_FAR_GUARD_COUNT), FA_FAR_GUARD_COUNT};
    if (block + 1 < layout->blocks)
        return (range){end, FA_FAR_GUARD_COUNT};
    return (range){end, buffers->capacity[tensor] - fa_layout_span(layout) + FA_GUARD_COUNT};
}

/* From no_guard to the first one, then to the next. False: there is none. */
static bool next_guard(const fa_buffers *buffers, guard *g)
{
    g->after = !g->after;
    g->block += !g->after;
    while (g->tensor <= FA_WORKSPACE &&
           (g->block == buffers->layout[g->tensor].blocks || is_inside_k(buffers, g->tensor)))
        g->tensor++, g->block = 0;
    if (g->tensor <= FA_WORKSPACE)
        g->at = guard_at(buffers, g->tensor, g->block, g->after);
    return g->tensor <= FA_WORKSPACE;
}

static size_t bytes_with_guards(const fa_buffers *buffers, int tensor)
{
    return bytes_of(buffers, tensor, offset_of(buffers, tensor) + buffers->capacity[tensor] + FA_GUARD_COUNT);
}

/* With AddressSanitizer on the emulator: whether a kernel may touch the guards. They open as a whole, whatever the
 * layout was when they were closed. */
static void set_guards(const fa_buffers *buffers, bool closed)
{
    if (!fa_device_is_emu(buffers->device) || !__asan_poison_memory_region || !__asan_unpoison_memory_region)
        return;
    for (int tensor = 0; tensor <= FA_WORKSPACE && !closed; tensor++)
        if (buffers->base[tensor])
            __asan_unpoison_memory_region((const void *)(uintptr_t)buffers->base[tensor],
                                          bytes_with_guards(buffers, tensor));
    for (guard g = no_guard; closed && next_guard(buffers, &g);)
        __asan_poison_memory_region((const void *)(uintptr_t)g.at.at, bytes_of(buffers, g.tensor, g.at.count));
}

static fa_status allocate(fa_buffers *buffers, fa_reason *why)
{
    fa_device *device = buffers->device;
    const size_t to_v = (bytes_with_guards(buffers, FA_K) + 255) / 256 * 256; /* aligned as an allocation is */
    for (int tensor = 0; tensor <= FA_WORKSPACE; tensor++) {
        const bool with_v = buffers->v_after_k && tensor == FA_K;
        if (is_inside_k(buffers, tensor) || (buffers->v_after_k && tensor == FA_V)) {
            buffers->base[FA_V] = buffers->base[FA_K] + (is_inside_k(buffers, tensor) ? 0 : to_v);
            continue;
        }
        if (buffers->layout[tensor].blocks > 0)
            FA_TRY(device->alloc(device, (with_v ? to_v : 0) + bytes_with_guards(buffers, with_v ? FA_V : tensor),
                                 &buffers->base[tensor], why));
    }
    const size_t halves = buffers->capacity[FA_WORKSPACE];
    FA_TRY(fa_tables_make(device, buffers->problem, &buffers->tables, why));
    return halves > 0 ? device->fill16(device, fa_buffers_at(buffers, FA_WORKSPACE), 0, halves, why) : FA_PASS;
}

fa_status fa_buffers_make(fa_device *device, const fa_problem *problem, int64_t workspace_bytes,
                          const fa_options *options, bool lse, fa_buffers *buffers, fa_reason *why)
{
    const size_t halves = ((size_t)workspace_bytes + 1) / 2;
    *buffers = (fa_buffers){.device = device,
                            .problem = problem,
                            .tensors = fa_tensor_count(problem, lse),
                            .offset = FA_GUARD_COUNT + (size_t)options->misalign,
                            .v_after_k = options->l2_persist == FA_L2_PERSIST_KV,
                            .layout[FA_WORKSPACE] = {.blocks = halves > 0, .block_count = halves},
                            .capacity[FA_WORKSPACE] = halves,
                            .workspace_bytes = workspace_bytes};
    for (int tensor = 0; tensor < buffers->tensors; tensor++) {
        const fa_layout *layout = &buffers->layout[tensor];
        buffers->layout[tensor] = fa_layout_of(problem, (fa_strides)options->strides, (uint64_t)options->seed, tensor);
        buffers->count[tensor] = (size_t)layout->blocks * fa_layout_dense(layout);
        buffers->capacity[tensor] = fa_capacity_of(problem, &buffers->layout[tensor], tensor);
    }
    fa_status status = fa_capacity_check(device, buffers->tensors, buffers->layout, buffers->capacity,
                                         workspace_bytes + fa_tables_bytes(problem), why);
    FA_THEN(status, allocate(buffers, why));
    if (status != FA_PASS)
        fa_buffers_free(buffers);
    return status;
}

bool fa_buffers_lay(fa_buffers *buffers, const fa_problem *problem, fa_strides strides, uint64_t seed)
{
    fa_layout layout[FA_TENSORS] = {{.blocks = 0}};
    for (int tensor = 0; tensor < buffers->tensors; tensor++) {
        layout[tensor] = fa_layout_of(problem, strides, seed, tensor);
        if (fa_layout_span(&layout[tensor]) > buffers->capacity[tensor])
            return false;
    }
    memcpy(buffers->layout, layout, sizeof layout);
    buffers->problem = problem;
    return true;
}

void fa_buffers_free(fa_buffers *buffers)
{
    fa_device *device = buffers->device;
    set_guards(buffers, false);
    for (int tensor = 0; tensor <= FA_WORKSPACE; tensor++)
        if (buffers->base[tensor] && !is_inside_k(buffers, tensor) && !(buffers->v_after_k && tensor == FA_V))
            device->free(device, buffers->base[tensor]);
    fa_tables_free(device, &buffers->tables);
    *buffers = (fa_buffers){.device = NULL};
}

fa_status fa_buffers_poison_output(const fa_buffers *buffers, fa_reason *why)
{
    for (int tensor = 0; tensor < buffers->tensors; tensor++)
        for (int64_t block = 0; fa_buffers_write(buffers, tensor) && block < buffers->layout[tensor].blocks; block++)
            FA_TRY(fill(buffers, tensor, block_at(buffers, tensor, block), why));
    return FA_PASS;
}

fa_status fa_buffers_put(const fa_buffers *buffers, int tensor, const uint16_t *dense, fa_reason *why)
{
    const fa_layout *layout = &buffers->layout[tensor];
    uint16_t *scratch = NULL;
    fa_status status = FA_PASS;
    for (fa_part p = {.first = 0}; status == FA_PASS && fa_part_next(layout, FA_PART_MOST, &p);) {
        const fa_ptr to = fa_buffers_at(buffers, tensor) + bytes_of(buffers, tensor, p.at);
        status = fa_elements_put(buffers->device, layout, to,
                                 fa_part_image(&p, dense, is_clean(buffers, tensor), &scratch), p.count, why);
    }
    free(scratch);
    return status;
}

static const uint16_t *input_of(const fa_tensors *t, int tensor)
{
    const uint16_t *const all[FA_DQ] = {t->q, t->k, t->v, t->o, (const void *)t->lse, t->dout};
    return all[tensor];
}

fa_status fa_buffers_fill(fa_buffers *buffers, const fa_tensors *tensors, fa_reason *why)
{
    fa_device *device = buffers->device;
    set_guards(buffers, false);
    for (guard g = no_guard; next_guard(buffers, &g);)
        FA_TRY(fill(buffers, g.tensor, g.at, why));
    for (int tensor = 0; !fa_buffers_write(buffers, tensor); tensor++)
        if (!is_inside_k(buffers, tensor))
            FA_TRY(fa_buffers_put(buffers, tensor, input_of(tensors, tensor), why));
    buffers->tables.clean = is_clean(buffers, FA_WORKSPACE);
    FA_TRY(fa_tables_fill(device, buffers->problem, &tensors->scores, buffers->layout[FA_Q].strides, &buffers->tables,
                          why));
    FA_TRY(fa_buffers_poison_output(buffers, why));
    set_guards(buffers, true);
    return FA_PASS;
}

static fa_status check_guard(const fa_buffers *buffers, const guard *g, fa_reason *why)
{
    const size_t count = g->at.count, halves = fa_tensor_is_fp32(g->tensor) ? 2 : 1; /* of an element */
    size_t changed = 0, nearest = 0;
    uint16_t *scratch = fa_alloc(count * sizeof *scratch);
    const fa_status status =
        fa_elements_get(buffers->device, &buffers->layout[g->tensor], scratch, g->at.at, count, why);
    /* An array of equal elements is itself, moved by one: most guards are intact, and this is fast. */
    const bool intact = status == FA_PASS && count > 0 && scratch[0] == FA_POISON &&
                        memcmp(scratch, scratch + 1, (count - 1) * sizeof *scratch) == 0;
    for (size_t i = 0; !intact && i < count && status == FA_PASS; i++) {
        const size_t distance = g->after ? i : count - 1 - i;
        if (scratch[i] != FA_POISON && (changed++ == 0 || distance < nearest))
            nearest = distance;
    }
    free(scratch);
    FA_TRY(status);
    if (changed == 0)
        return FA_PASS;
    return fa_refuse(why, FA_WRONG,
                     "out of bounds: the guard band %s %s was overwritten: %zu elements, the nearest %zu %s",
                     g->after ? "after" : "before", names[g->tensor], (changed + halves - 1) / halves,
                     nearest / halves + 1, g->after ? "past the last element" : "before the first element");
}

static fa_status check_gaps(const fa_part *part, const uint16_t *image, int tensor, fa_reason *why)
{
    size_t first = 0;
    const size_t changed = fa_layout_gaps_changed(&part->layout, part->block, image, FA_POISON, &first);
    const size_t halves = fa_tensor_is_fp32(tensor) ? 2 : 1; /* of an element */
    char strides[32];
    if (changed == 0)
        return FA_PASS;
    return fa_refuse(why, FA_WRONG,
                     "out of bounds: the gaps between the rows of %s were overwritten (--strides %s): %zu elements, "
                     "the first %zu past the start of %s",
                     names[tensor], fa_word(FA_STRIDES_WORDS, (int)part->layout.strides, strides),
                     (changed + halves - 1) / halves, (part->at + first) / halves, names[tensor]);
}

/* Says which element of a part was overwritten: `got`, where `dense` is the packed tensor. */
static fa_status name_overwritten(const fa_buffers *buffers, int tensor, const fa_part *part, const uint16_t *dense,
                                  const uint16_t *got, fa_reason *why)
{
    FA_TRY(check_gaps(part, got, tensor, why));
    const size_t count = fa_layout_dense(&part->layout), end = (size_t)(part->block + 1) * count;
    uint16_t *packed = fa_alloc(end * sizeof *packed);
    size_t i = end - count;
    fa_layout_gather(&part->layout, part->block, got, packed);
    while (i + 1 < end && packed[i] == dense[part->dense + i])
        i++;
    const fa_status status =
        fa_refuse(why, FA_WRONG, "input %s was overwritten: element %zu of %zu was 0x%04x and is 0x%04x", names[tensor],
                  part->dense + i, buffers->count[tensor], dense[part->dense + i], packed[i]);
    free(packed);
    return status;
}

static fa_status check_input(const fa_buffers *buffers, int tensor, const uint16_t *dense, fa_reason *why)
{
    const fa_layout *layout = &buffers->layout[tensor];
    uint16_t *got = NULL, *scratch = NULL;
    fa_status status = FA_PASS;
    for (fa_part p = {.first = 0}; status == FA_PASS && fa_part_next(layout, FA_PART_MOST, &p);) {
        const fa_ptr from = fa_buffers_at(buffers, tensor) + bytes_of(buffers, tensor, p.at);
        got = got != NULL ? got : fa_alloc(p.count * sizeof *got);
        status = fa_elements_get(buffers->device, layout, got, from, p.count, why);
        if (status == FA_PASS && memcmp(got, fa_part_image(&p, dense, false, &scratch), p.count * sizeof *got) != 0)
            status = name_overwritten(buffers, tensor, &p, dense, got, why);
    }
    free(got);
    free(scratch);
    return status;
}

static fa_status check_inputs(const fa_buffers *buffers, const fa_tensors *tensors, fa_reason *why)
{
    for (int tensor = 0; !fa_buffers_write(buffers, tensor) && !is_inside_k(buffers, tensor); tensor++)
        FA_TRY(check_input(buffers, tensor, input_of(tensors, tensor), why));
    return fa_tables_check(buffers->device, buffers->problem, &tensors->scores, buffers->layout[FA_Q].strides,
                           &buffers->tables, why);
}

/* What lies between sequences, or past their used rows, keeps its poison. */
static fa_status check_unused(const fa_buffers *buffers, int tensor, const uint16_t *output, fa_reason *why)
{
    const fa_problem *problem = buffers->problem;
    const bool keys = tensor == FA_DK || tensor == FA_DV;
    const int64_t dim = buffers->layout[tensor].dim, rows = dim > 0 ? (int64_t)buffers->count[tensor] / dim : 0;
    for (int64_t row = 0; problem->lengths != NULL && tensor != FA_DSINKS && row < rows; row++) {
        const fa_row at = keys ? fa_problem_key_at(problem, row) : fa_problem_row(problem, row);
        for (int64_t i = row * dim; !at.used && i < (row + 1) * dim; i++)
            if (output[i] != FA_POISON)
                return fa_refuse(why, FA_WRONG,
                                 "out of bounds: %s was written past the end of sequence %d, which has %d %s: "
                                 "head %d row %d",
                                 names[tensor], at.batch, keys ? at.seq_kv : at.seq_q, keys ? "keys" : "queries",
                                 at.head, at.row);
    }
    return FA_PASS;
}

/* The output or the log-sum-exp without gaps, which may be looked at on the way. */
static fa_status copy_output(const fa_buffers *buffers, int tensor, bool look, uint16_t *output, fa_reason *why)
{
    const fa_layout *layout = &buffers->layout[tensor];
    uint16_t *scratch = fa_layout_is_dense(layout) ? NULL : fa_alloc(layout->block_count * sizeof *scratch);
    fa_status status = FA_PASS, gaps = FA_PASS;
    for (int64_t block = 0; block < layout->blocks && status == FA_PASS; block++) {
        const range from = block_at(buffers, tensor, block);
        uint16_t *to = scratch != NULL ? scratch : output + (size_t)block * fa_layout_dense(layout);
        status = fa_elements_get(buffers->device, layout, to, from.at, from.count, why);
        if (scratch == NULL || status != FA_PASS)
            continue;
        fa_layout_gather(layout, block, scratch, output);
        if (look && gaps == FA_PASS)
            gaps = check_gaps(&(fa_part){.layout = *layout, .block = block}, scratch, tensor, why);
    }
    free(scratch);
    if (status == FA_PASS && look && gaps == FA_PASS)
        gaps = check_unused(buffers, tensor, output, why);
    return status != FA_PASS ? status : gaps;
}

static fa_status copy_outputs(const fa_buffers *buffers, bool look, uint16_t *output, fa_reason *why)
{
    fa_reason next;
    fa_status status = FA_PASS;
    for (int tensor = FA_O; tensor < buffers->tensors; tensor++) {
        if (!fa_buffers_write(buffers, tensor) || tensor == FA_L)
            continue;
        const fa_status one = copy_output(buffers, tensor, look, output, &next);
        if (one != FA_PASS && (one != FA_WRONG || status == FA_PASS))
            status = fa_refuse(why, one, "%s", next.text);
        if (one != FA_PASS && one != FA_WRONG)
            return one;
        output += buffers->count[tensor];
    }
    return status;
}

fa_status fa_buffers_output(const fa_buffers *buffers, uint16_t *output, fa_reason *why)
{
    return copy_outputs(buffers, false, output, why);
}

fa_status fa_buffers_read(const fa_buffers *buffers, const fa_tensors *tensors, uint16_t *output, fa_reason *why)
{
    FA_TRY(copy_outputs(buffers, true, output, why));
    set_guards(buffers, false);
    fa_status status = FA_PASS;
    for (guard g = no_guard; status == FA_PASS && next_guard(buffers, &g);)
        status = check_guard(buffers, &g, why);
    set_guards(buffers, true);
    FA_TRY(status);
    return check_inputs(buffers, tensors, why);
}

fa_status fa_buffers_read_lse(const fa_buffers *buffers, float *lse, fa_reason *why)
{
    return fa_buffers_has_lse(buffers) ? copy_output(buffers, FA_L, true, (uint16_t *)(void *)lse, why) : FA_PASS;
}
