/* The library as a reference: a kernel of its own, writing into an output of its own. A missing reference is not an
 * error of a run: `missing` has the reason. */
#ifndef FA_LIBRARY_REFERENCE_H
#define FA_LIBRARY_REFERENCE_H

#include "check/draw.h"
#include "check/reference.h"
#include "run/candidate.h"

enum { FA_LIBRARY_TILE = 64, FA_MISSING_SIZE = 256 };

typedef struct fa_library_reference {
    bool on, answered; /* answered: on the last inputs */
    fa_kernel *kernel;
    fa_ptr out;
    size_t count; /* elements of the output */
    uint16_t *half;
    float *full;
} fa_library_reference;

void fa_library_reference_open(const fa_candidate *candidate, fa_library_reference *library,
                               char missing[FA_MISSING_SIZE]);
void fa_library_reference_close(fa_device *device, fa_library_reference *library);
/* Runs the library on the candidate's inputs, into `full`. Its output must itself pass against R, or it is closed.
 * Without a plan for a drawn layout it gives no answer; without one for the requested layout it is closed. */
fa_status fa_library_reference_run(const fa_candidate *candidate, const fa_draw *draw, const fa_reference *reference,
                                   fa_library_reference *library, char missing[FA_MISSING_SIZE], fa_reason *why);

#endif
