/* The emulator's <cuComplex.h>: the types, and what CUTLASS's headers need of the functions. */
#pragma once

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

static inline cuFloatComplex make_cuFloatComplex(float r, float i) { return make_float2(r, i); }
static inline cuDoubleComplex make_cuDoubleComplex(double r, double i) { return make_double2(r, i); }
static inline cuComplex make_cuComplex(float r, float i) { return make_float2(r, i); }
static inline float cuCrealf(cuFloatComplex z) { return z.x; }
static inline float cuCimagf(cuFloatComplex z) { return z.y; }
static inline double cuCreal(cuDoubleComplex z) { return z.x; }
static inline double cuCimag(cuDoubleComplex z) { return z.y; }
