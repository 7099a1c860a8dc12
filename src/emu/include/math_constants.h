/* CUDA's names of constants. */
#ifndef FA_EMU_MATH_CONSTANTS_H
#define FA_EMU_MATH_CONSTANTS_H

#include <math.h>

#define CUDART_INF_F INFINITY
#define CUDART_NAN_F NAN
#define CUDART_INF ((double)INFINITY)
#define CUDART_NAN ((double)NAN)
#define CUDART_MAX_NORMAL_F 3.402823466e38f
#define CUDART_MIN_DENORM_F 1.401298464e-45f
#define CUDART_LN2_F 0.693147181f
#define CUDART_L2E_F 1.442695041f
#define CUDART_PI_F 3.141592654f
#define CUDART_SQRT_TWO_F 1.414213562f
#define CUDART_ZERO_F 0.0f
#define CUDART_ONE_F 1.0f

#endif
