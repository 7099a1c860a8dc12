#include "run/elements.h"

#include <stdlib.h>

bool fa_part_next(const fa_layout *layout, size_t most, fa_part *part)
{
    const bool begun = part->layout.blocks > 0;
    const size_t apart = (size_t)layout->stride_b, before = (size_t)(layout->batch - 1) * apart;
    const bool whole = layout->blocks > 1 || before >= layout->block_count || layout->block_count - before > apart;
    const int32_t first = part->first + part->layout.batch, left = layout->batch - first;
    if (begun && (whole ? part->block + 1 == layout->blocks : left == 0))
        return false;
    if (whole) {
        const int64_t block = begun ? part->block + 1 : 0;
        *part = (fa_part){.layout = *layout,
                          .block = block,
                          .at = (size_t)(block * layout->block_pitch),
                          .count = layout->block_count};
        return true;
    }
    const size_t many = most / apart > 1 ? most / apart : 1;
    *part = (fa_part){.layout = *layout, .first = first, .at = (size_t)first * apart};
    part->layout.batch = many < (size_t)left ? (int32_t)many : left;
    part->count = part->layout.batch < left ? many * apart : layout->block_count - part->at;
    part->layout.block_count = part->count;
    part->dense = (size_t)first * (size_t)layout->heads * (size_t)(layout->seq * layout->dim);
    return true;
}

const uint16_t *fa_part_image(const fa_part *part, const uint16_t *dense, bool clean, uint16_t **scratch)
{
    if (*scratch == NULL && (clean || !fa_layout_is_dense(&part->layout)))
        *scratch = fa_alloc(part->count * sizeof **scratch);
    const uint16_t *image = fa_layout_image(&part->layout, part->block, dense + part->dense, FA_POISON, *scratch);
    for (size_t i = 0; clean && i < part->count; i++)
        (*scratch)[i] = image[i] == FA_POISON ? 0 : image[i];
    return clean ? *scratch : image;
}

fa_status fa_elements_put(fa_device *device, const fa_layout *layout, fa_ptr to, const uint16_t *from, size_t count,
                          fa_reason *why)
{
    if (!layout->fp8)
        return device->copy_in(device, to, from, 2 * count, why);
    uint8_t *narrow = fa_alloc(count);
#pragma omp parallel for schedule(static) if (count > 1 << 16)
    for (size_t i = 0; i < count; i++)
        narrow[i] = from[i] == FA_POISON ? FA_POISON_E4M3 : (uint8_t)from[i];
    const fa_status status = device->copy_in(device, to, narrow, count, why);
    free(narrow);
    return status;
}

fa_status fa_elements_get(fa_device *device, const fa_layout *layout, uint16_t *to, fa_ptr from, size_t count,
                          fa_reason *why)
{
    if (!layout->fp8)
        return device->copy_out(device, to, from, 2 * count, why);
    uint8_t *narrow = fa_alloc(count);
    const fa_status status = device->copy_out(device, narrow, from, count, why);
#pragma omp parallel for schedule(static) if (count > 1 << 16)
    for (size_t i = 0; i < count; i++)
        to[i] = narrow[i] == FA_POISON_E4M3 ? FA_POISON : narrow[i];
    free(narrow);
    return status;
}

fa_status fa_elements_fill(fa_device *device, const fa_layout *layout, fa_ptr to, uint16_t value, size_t count,
                           fa_reason *why)
{
    if (!layout->fp8)
        return device->fill16(device, to, value, count, why);
    void *narrow = fa_alloc(count);
    memset(narrow, value == FA_POISON ? FA_POISON_E4M3 : value, count);
    const fa_status status = device->copy_in(device, to, narrow, count, why);
    free(narrow);
    return status;
}
