/* A negative control does one thing wrong; the emulator must say so. The line it must name is marked HERE. Where
 * nothing is reported but the result is wrong, the kernel compares and counts as a conformance kernel does. */
#include "../conform/conform.cuh"
