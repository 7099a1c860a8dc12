/* wgmma_short: wgmma for many short causal sequences, whose time is that of memory.
 *
 * Idea: blocks that run together work on so many heads that their K and V fill L2; what leaves it early is read twice.
 *   Q and O are used once, so their lines leave L2 first. The last section of heads (wgmma/schedule.cuh) is shorter.
 * Builds on: wgmma (which says what Knobs and Shared memory are).
 * Limits: as wgmma; no features; splits 1. */
#define SHORT 1
#include "wgmma.cu"
