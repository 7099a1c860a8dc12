#include "run/elements.h"

#include <stdlib.h>

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
