/* Numbers from a counter: draw i of a stream depends on the stream and on i alone. */
#ifndef FA_DRAWS_H
#define FA_DRAWS_H

#include <stdint.h>

uint64_t fa_draw_stream(uint64_t seed, int number);
uint64_t fa_draw_bits(uint64_t stream, uint64_t counter);
/* N(0,1) by the low 16 bits, which pick one of 65536 quantiles: from -4.3 to 4.3. */
float fa_draw_normal(uint64_t bits);

#endif
