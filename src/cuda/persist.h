/* --l2-persist kv: an access-policy window that asks the L2 to keep K and V. */
#pragma once

#include "cuda/context.h"

/* Puts the window on the stream; lines may persist from now on. FA_NOT_RUN where the GPU or its driver has none,
 * FA_INFEASIBLE when K and V do not fit one window. */
fa_status fa_cuda_persist_begin(fa_cuda *cuda, const fa_params *params, fa_reason *why);
/* Puts the window on every kernel of a graph: a graph ignores its stream's attributes. */
fa_status fa_cuda_persist_graph(fa_cuda *cuda, const fa_params *params, CUgraph graph, fa_reason *why);
/* Takes the window off the stream. Lines that persist stay until fa_cuda_reset_l2. */
void fa_cuda_persist_end(fa_cuda *cuda);
/* Resets persistent L2 lines: the next kernel would have that much less L2. */
void fa_cuda_reset_l2(fa_cuda *cuda);
