/* Tensor maps of the emulator, as cuTensorMapEncodeTiled makes them for the hardware but in our own encoding, and how a
 * box lies in memory. Pure. */
#pragma once

#include "fa_params.h"

#include <stdbool.h>
#include <stdint.h>

enum { FA_EMU_MAP_RANK = 5, FA_EMU_CHUNK = 16 };

/* Types of elements: the numbers of tensormap.replace, which are not those of the driver. */
typedef enum {
    FA_EMU_MAP_U8,
    FA_EMU_MAP_U16,
    FA_EMU_MAP_U32,
    FA_EMU_MAP_S32,
    FA_EMU_MAP_U64,
    FA_EMU_MAP_S64,
    FA_EMU_MAP_F16,
    FA_EMU_MAP_F32,
    FA_EMU_MAP_F32_FTZ,
    FA_EMU_MAP_F64,
    FA_EMU_MAP_BF16,
    FA_EMU_MAP_TF32,
    FA_EMU_MAP_TF32_FTZ,
    FA_EMU_MAP_TYPES
} fa_emu_map_type;

typedef struct fa_emu_map {
    uint64_t magic, address;
    uint64_t strides[FA_EMU_MAP_RANK]; /* bytes between elements of each dimension; the first: an element's size */
    uint32_t dims[FA_EMU_MAP_RANK];
    uint16_t box[FA_EMU_MAP_RANK];
    uint8_t rank, swizzle;                    /* bytes; 0: none */
    uint8_t type, interleaved, nans;          /* nans: out of bounds is filled with NaN, not 0 */
    uint8_t element_strides[FA_EMU_MAP_RANK]; /* in elements; the first is ignored */
} fa_emu_map;

/* dims, box: `rank` of them, innermost first; strides: rank - 1, in bytes. Returns NULL, or what is wrong with them. */
const char *fa_emu_map_encode(fa_tensor_map *to, const void *address, int rank, fa_emu_map_type type,
                              const uint64_t *dims, const uint64_t *strides, const uint32_t *box, int swizzle);
/* False: these bytes are not a tensor map. */
bool fa_emu_map_decode(const void *bytes, fa_emu_map *map);
/* NULL when a copy may use the map, or what is wrong with its fields together. */
const char *fa_emu_map_check(const fa_emu_map *map);

/* PTX ISA, "tensormap.replace": one field of the map in these 128 bytes; `which` dimension, from 0. All zeros are a map
 * with no field set. Returns NULL, or what is wrong with the value. */
typedef enum {
    FA_EMU_MAP_ADDRESS,
    FA_EMU_MAP_RANK_LESS_1,
    FA_EMU_MAP_BOX,
    FA_EMU_MAP_DIM,
    FA_EMU_MAP_STRIDE,
    FA_EMU_MAP_ELEMENT_STRIDE,
    FA_EMU_MAP_TYPE,
    FA_EMU_MAP_INTERLEAVE,
    FA_EMU_MAP_SWIZZLE,
    FA_EMU_MAP_FILL,
    FA_EMU_MAP_FIELDS
} fa_emu_map_field;
const char *fa_emu_map_replace(void *bytes, fa_emu_map_field field, uint64_t which, uint64_t value);

uint32_t fa_emu_map_row_bytes(const fa_emu_map *map);
/* Bytes from row to row in shared memory: a row shorter than the swizzle takes as much room as a whole one. Not in the
 * PTX ISA; measured on an H200. */
uint32_t fa_emu_map_pitch(const fa_emu_map *map);
uint32_t fa_emu_map_rows(const fa_emu_map *map);
/* The fill value out of bounds: a NaN of the type where the map asks for it, else 0. */
uint64_t fa_emu_map_fill(const fa_emu_map *map);

/* The rows of sequences one behind the other (src/device/tensor_boxes.c): two dimensions have one stride, and the map
 * begins before the tensor. A box that lies out of bounds as a whole then faults on an H100, though nothing moves. */
bool fa_emu_map_is_ragged(const fa_emu_map *map);

/* Row `row` of the box at `at` in global memory: its bytes [from, to) exist; `global` is where byte 0 would be. */
typedef struct fa_emu_row {
    unsigned char *global;
    uint32_t from, to;
} fa_emu_row;
fa_emu_row fa_emu_map_row(const fa_emu_map *map, const int32_t at[FA_EMU_MAP_RANK], uint32_t row);

/* PTX ISA, "Swizzling modes": bits 4 and up of an address in shared memory, XORed with bits 7 and up. */
static inline uintptr_t fa_emu_swizzled(uintptr_t address, uint32_t swizzle)
{
    const uintptr_t mask = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;
    return address ^ (address >> 7 & mask) << 4;
}
