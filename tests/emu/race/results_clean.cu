/* results.cuh with a barrier between write and read: --race must find nothing. */
#define MEET() __syncthreads()
#include "results.cuh"
