/* Library candidates: host code that launches on our stream. Each fills one struct of functions; --library, too. */
#pragma once

#include "cuda/context.h"
#include "device/library_facts.h"
#include "fa_library.h"

typedef struct fa_library {
    /* Name, version and needs; touches no GPU. FA_NOT_RUN when the library is not installed, FA_INFEASIBLE with its own
     * reason when it cannot run the problem in question, FA_ERROR when it is not such a library. */
    fa_status (*describe)(const fa_spec *spec, const fa_library_question *question, fa_library_facts *facts,
                          fa_reason *why);
    /* Something that launches on a stream. FA_NOT_RUN without the library, a plan or its workspace. */
    fa_status (*create)(fa_cuda *cuda, const fa_spec *spec, const fa_problem *problem, fa_kernel **kernel,
                        fa_reason *why);
} fa_library;
