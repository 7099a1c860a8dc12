/* wgmma_backward_heads: wgmma_backward for many short causal heads, whose time is that of memory.
 *
 * Idea: a block takes all keys of a K/V head, so no other adds to the head's dQ. The sums stay in shared memory, are
 *   added in one order, and do not go through DRAM. The first tile of rows is whole at once; three others have places,
 *   as dS has one buffer. Further rows, grouped heads, and other keys than queries keep their sums in the workspace.
 * Builds on: wgmma_backward (which says what Knobs and Shared memory are).
 * Limits: as wgmma_backward, with m 128, n 128, the causal mask, dim up to 64; sinks, ALiBi. */
#define WHOLE_HEADS true
static_assert(FA_CAUSAL && FA_DIM <= 64, "wgmma_backward_heads serves --dim 64 --causal only"); /* and less than 64 */
static_assert(FA_M == 128 && FA_N == 128 && FA_SPLITS == 1, "wgmma_backward_heads: m must be 128, n 128, splits 1");
#include "wgmma_backward.cu"
