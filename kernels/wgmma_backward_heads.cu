/* wgmma_backward_heads: wgmma_backward for many short causal heads, whose time is that of memory.
 *
 * Idea: a block goes through all keys of a K/V head. Only it adds to the head's dQ, so the sums wait in shared memory,
 *   in one order, and do not go through DRAM. The first tile of rows is whole at once. Three others have places, as dS
 *   has one buffer. Sums of further rows, of grouped heads and of other keys than queries wait in the workspace.
 * Builds on: wgmma_backward (which says what Knobs and Shared memory are).
 * Limits: as wgmma_backward, with m 128, n 128, the causal mask, dim up to 64; sinks, ALiBi. */
#define WHOLE_HEADS true
static_assert(FA_CAUSAL && FA_DIM <= 64, "wgmma_backward_heads serves --dim 64 --causal only"); /* and less than 64 */
static_assert(FA_M == 128 && FA_N == 128 && FA_SPLITS == 1, "wgmma_backward_heads: m must be 128, n 128, splits 1");
#include "wgmma_backward.cu"
