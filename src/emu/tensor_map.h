/* Tensor maps of the emulator: what cuTensorMapEncodeTiled makes for the hardware, in an encoding of our own, and how a
 * box lies in memory. Pure. */
#ifndef FA_EMU_TENSOR_MAP_H
#define FA_EMU_TENSOR_MAP_H

#include "fa_params.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FA_EMU_MAP_RANK = 5, FA_EMU_CHUNK = 16 };

typedef struct fa_emu_map {
    uint64_t magic, address;
    uint64_t strides
        [FA_EMU_MAP_RANK]; /* bytes from one element to the next of each dimension; the first is the element's size */
    uint32_t dims[FA_EMU_MAP_RANK];
    uint16_t box[FA_EMU_MAP_RANK];
    uint8_t rank, swizzle; /* bytes; 0: none */
} fa_emu_map;

/* dims, box: `rank` of them, innermost first; strides: rank - 1, in bytes. NULL: done; or what is wrong with them. */
const char *fa_emu_map_encode(fa_tensor_map *to, const void *address, int rank, int element_bytes, const uint64_t *dims,
                              const uint64_t *strides, const uint32_t *box, int swizzle);
/* False: these bytes are no tensor map. */
bool fa_emu_map_decode(const void *bytes, fa_emu_map *map);

uint32_t fa_emu_map_row_bytes(const fa_emu_map *map);
uint32_t fa_emu_map_rows(const fa_emu_map *map);

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

#endif
