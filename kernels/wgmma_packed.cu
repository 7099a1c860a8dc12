/* wgmma_packed: wgmma with the query heads of a K/V head in the rows of a tile, for windows and chunks.
 *
 * Idea: 64 rows of one head that see 128 keys each touch 191 keys together. 16 rows of each of four heads touch 143,
 *   and a block of eight heads reads these once. Products, exponentials and reads of keys shrink alike.
 * Builds on: wgmma (which says what Knobs and Shared memory are).
 * Features: as wgmma, without ALiBi.   Limits: as wgmma; splits 1. */
#define PACKED 1
#include "wgmma.cu"
