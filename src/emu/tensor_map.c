#include "emu/tensor_map.h"

#include <string.h>

static const uint64_t MAGIC = 0x70616d2d756d6531u;

const char *fa_emu_map_encode(fa_tensor_map *to, const void *address, int rank, int element_bytes, const uint64_t *dims,
                              const uint64_t *strides, const uint32_t *box, int swizzle)
{
    fa_emu_map map = {.magic = MAGIC,
                      .address = (uintptr_t)address,
                      .strides = {(uint64_t)element_bytes},
                      .rank = (uint8_t)rank,
                      .swizzle = (uint8_t)swizzle};
    _Static_assert(sizeof map <= sizeof *to, "a tensor map is 128 bytes");
    if (rank < 1 || rank > FA_EMU_MAP_RANK)
        return "the rank is 1 to 5";
    if (map.address % 16)
        return "the address is no multiple of 16 bytes";
    for (int i = 0; i < FA_EMU_MAP_RANK; i++) {
        map.dims[i] = i < rank ? (uint32_t)dims[i] : 1;
        map.box[i] = i < rank ? (uint16_t)box[i] : 1;
        if (i < rank && (dims[i] == 0 || dims[i] > UINT32_MAX))
            return "a dimension is 1 to 2^32 - 1";
        if (i < rank && (box[i] == 0 || box[i] > 256))
            return "a box has 1 to 256 elements in a dimension";
        if (i > 0 && i < rank && (strides[i - 1] % 16 || strides[i - 1] >= (uint64_t)1 << 40))
            return "a stride is a multiple of 16 bytes below 2^40";
        if (i > 0)
            map.strides[i] = i < rank ? strides[i - 1] : 0;
    }
    if (fa_emu_map_row_bytes(&map) % FA_EMU_CHUNK)
        return "a row of the box is no multiple of 16 bytes";
    if (swizzle > 0 && fa_emu_map_row_bytes(&map) > (uint32_t)swizzle)
        return "a row of the box is longer than the swizzle";
    memset(to, 0, sizeof *to);
    memcpy(to, &map, sizeof map);
    return NULL;
}

bool fa_emu_map_decode(const void *bytes, fa_emu_map *map)
{
    memcpy(map, bytes, sizeof *map);
    return map->magic == MAGIC;
}

uint32_t fa_emu_map_row_bytes(const fa_emu_map *map) { return map->box[0] * (uint32_t)map->strides[0]; }

uint32_t fa_emu_map_rows(const fa_emu_map *map)
{
    uint32_t rows = 1;
    for (int i = 1; i < map->rank; i++)
        rows *= map->box[i];
    return rows;
}

fa_emu_row fa_emu_map_row(const fa_emu_map *map, const int32_t at[FA_EMU_MAP_RANK], uint32_t row)
{
    const int64_t size = (int64_t)map->strides[0], first = -(int64_t)at[0], end = (int64_t)map->dims[0] - at[0];
    uint64_t address = map->address + (uint64_t)((int64_t)at[0] * size);
    bool inside = true;
    for (int i = 1; i < map->rank; i++) {
        const int64_t index = (int64_t)at[i] + row % map->box[i];
        row /= map->box[i];
        inside &= index >= 0 && index < (int64_t)map->dims[i];
        address += (uint64_t)index * map->strides[i];
    }
    const int64_t from = first > 0 ? first : 0, to = end < map->box[0] ? end : map->box[0];
    if (!inside || from >= to)
        return (fa_emu_row){.global = NULL};
    return (fa_emu_row){(unsigned char *)(uintptr_t)address, (uint32_t)(from * size), (uint32_t)(to * size)};
}
