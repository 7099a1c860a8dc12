#include "emu/core/tensor_map.h"

#include <string.h>

static const uint64_t MAGIC = 0x70616d2d756d6531u;
static const uint8_t BYTES[FA_EMU_MAP_TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4};

static bool is_float(uint8_t type) { return type >= FA_EMU_MAP_F16; }

static const char *set_dimension(fa_emu_map *map, fa_emu_map_field field, uint64_t which, uint64_t value)
{
    if (which >= FA_EMU_MAP_RANK - (field == FA_EMU_MAP_STRIDE))
        return field == FA_EMU_MAP_STRIDE ? "a stride has a number from 0 to 3"
                                          : "a dimension has a number from 0 to 4";
    switch (field) {
    case FA_EMU_MAP_BOX:
        map->box[which] = (uint16_t)value;
        return value >= 1 && value <= 256 ? NULL : "a box has 1 to 256 elements in a dimension";
    case FA_EMU_MAP_DIM:
        map->dims[which] = (uint32_t)value;
        return value >= 1 && value <= UINT32_MAX ? NULL : "a dimension is 1 to 2^32 - 1";
    case FA_EMU_MAP_STRIDE:
        map->strides[which + 1] = value;
        return value % 16 == 0 && value < (uint64_t)1 << 40 ? NULL : "a stride is a multiple of 16 bytes below 2^40";
    default:
        map->element_strides[which] = (uint8_t)value;
        return value >= 1 && value <= 8 ? NULL : "an element stride is 1 to 8";
    }
}

static const char *set(fa_emu_map *map, fa_emu_map_field field, uint64_t which, uint64_t value)
{
    switch (field) {
    case FA_EMU_MAP_ADDRESS:
        map->address = value;
        return value % 16 == 0 ? NULL : "the address is not a multiple of 16 bytes";
    case FA_EMU_MAP_RANK_LESS_1:
        map->rank = (uint8_t)(value + 1);
        return value < FA_EMU_MAP_RANK ? NULL : "the rank is 1 to 5: as a field 0 to 4";
    case FA_EMU_MAP_TYPE:
        map->type = (uint8_t)value;
        map->strides[0] = value < FA_EMU_MAP_TYPES ? BYTES[value] : 0;
        return value < FA_EMU_MAP_TYPES ? NULL : "the type of elements is a number from 0 to 12";
    case FA_EMU_MAP_INTERLEAVE:
        map->interleaved = value != 0;
        return value <= 2 ? NULL : "the interleave layout is a number from 0 to 2";
    case FA_EMU_MAP_SWIZZLE:
        map->swizzle = value == 0 ? 0 : (uint8_t)(16u << (value & 3));
        return value <= 3 ? NULL : "the swizzle mode is a number from 0 to 3";
    case FA_EMU_MAP_FILL:
        map->nans = value != 0;
        return value <= 1 ? NULL : "the fill mode is 0 or 1";
    default:
        return set_dimension(map, field, which, value);
    }
}

static fa_emu_map empty_map(void)
{
    return (fa_emu_map){.magic = MAGIC, .strides = {1}, .rank = 1, .element_strides = {1, 1, 1, 1, 1}};
}

static bool is_zero(const unsigned char *bytes)
{
    for (size_t i = 0; i < sizeof(fa_tensor_map); i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

const char *fa_emu_map_replace(void *bytes, fa_emu_map_field field, uint64_t which, uint64_t value)
{
    fa_emu_map map;
    if (is_zero(bytes))
        map = empty_map();
    else if (!fa_emu_map_decode(bytes, &map))
        return "there is no tensor map at this address, nor zeros";
    const char *wrong = set(&map, field, which, value);
    if (wrong == NULL)
        memcpy(bytes, &map, sizeof map);
    return wrong;
}

const char *fa_emu_map_check(const fa_emu_map *map)
{
    if (map->address == 0)
        return "it has no address";
    for (int i = 0; i < map->rank; i++)
        if (map->dims[i] == 0 || map->box[i] == 0)
            return "a dimension below its rank has no size, or no box";
    if (map->interleaved)
        return "interleaved layouts are not modelled";
    if (map->nans && !is_float(map->type))
        return "NaN fills floating-point elements alone";
    if (fa_emu_map_row_bytes(map) % FA_EMU_CHUNK)
        return "a row of the box is not a multiple of 16 bytes";
    if (map->swizzle > 0 && fa_emu_map_row_bytes(map) > map->swizzle)
        return "a row of the box is longer than the swizzle";
    return NULL;
}

const char *fa_emu_map_encode(fa_tensor_map *to, const void *address, int rank, fa_emu_map_type type,
                              const uint64_t *dims, const uint64_t *strides, const uint32_t *box, int swizzle)
{
    fa_emu_map map = empty_map();
    _Static_assert(sizeof map <= sizeof *to, "a tensor map is 128 bytes");
    if (rank < 1 || rank > FA_EMU_MAP_RANK)
        return "the rank is 1 to 5";
    map.rank = (uint8_t)rank;
    map.swizzle = (uint8_t)swizzle;
    const char *wrong = set(&map, FA_EMU_MAP_ADDRESS, 0, (uintptr_t)address);
    if (wrong == NULL)
        wrong = set(&map, FA_EMU_MAP_TYPE, 0, type);
    for (int i = 0; i < rank && wrong == NULL; i++) {
        wrong = set_dimension(&map, FA_EMU_MAP_DIM, (uint64_t)i, dims[i]);
        if (wrong == NULL)
            wrong = set_dimension(&map, FA_EMU_MAP_BOX, (uint64_t)i, box[i]);
        if (wrong == NULL && i + 1 < rank)
            wrong = set_dimension(&map, FA_EMU_MAP_STRIDE, (uint64_t)i, strides[i]);
    }
    if (wrong == NULL)
        wrong = fa_emu_map_check(&map);
    if (wrong != NULL)
        return wrong;
    memset(to, 0, sizeof *to);
    memcpy(to, &map, sizeof map);
    return NULL;
}

bool fa_emu_map_decode(const void *bytes, fa_emu_map *map)
{
    memcpy(map, bytes, sizeof *map);
    return map->magic == MAGIC;
}

uint64_t fa_emu_map_fill(const fa_emu_map *map)
{
    if (!map->nans)
        return 0;
    if (map->type == FA_EMU_MAP_F16)
        return 0x7ff7; /* as on an H200; other types were not measured */
    return map->strides[0] == 2 ? 0x7fff : map->strides[0] == 4 ? 0x7fffffff : 0x7fffffffffffffffu;
}

uint32_t fa_emu_map_row_bytes(const fa_emu_map *map) { return map->box[0] * (uint32_t)map->strides[0]; }

uint32_t fa_emu_map_pitch(const fa_emu_map *map)
{
    const uint32_t bytes = fa_emu_map_row_bytes(map);
    return bytes > map->swizzle ? bytes : map->swizzle;
}

/* Rows of the box in dimension `i`, by the element stride. */
static uint32_t steps(const fa_emu_map *map, int i)
{
    return (map->box[i] + map->element_strides[i] - 1u) / map->element_strides[i];
}

uint32_t fa_emu_map_rows(const fa_emu_map *map)
{
    uint32_t rows = 1;
    for (int i = 1; i < map->rank; i++)
        rows *= steps(map, i);
    return rows;
}

fa_emu_row fa_emu_map_row(const fa_emu_map *map, const int32_t at[FA_EMU_MAP_RANK], uint32_t row)
{
    const int64_t size = (int64_t)map->strides[0], first = -(int64_t)at[0], end = (int64_t)map->dims[0] - at[0];
    uint64_t address = map->address + (uint64_t)((int64_t)at[0] * size);
    bool inside = true;
    for (int i = 1; i < map->rank; i++) {
        const int64_t index = (int64_t)at[i] + row % steps(map, i) * map->element_strides[i];
        row /= steps(map, i);
        inside &= index >= 0 && index < (int64_t)map->dims[i];
        address += (uint64_t)index * map->strides[i];
    }
    const int64_t from = first > 0 ? first : 0, to = end < map->box[0] ? end : map->box[0];
    if (!inside || from >= to)
        return (fa_emu_row){.global = NULL};
    return (fa_emu_row){(unsigned char *)(uintptr_t)address, (uint32_t)(from * size), (uint32_t)(to * size)};
}

bool fa_emu_map_is_ragged(const fa_emu_map *map)
{
    for (int i = 1; i < map->rank; i++)
        for (int j = i + 1; j < map->rank; j++)
            if (map->dims[i] > 1 && map->dims[j] > 1 && map->strides[i] == map->strides[j])
                return true;
    return false;
}
