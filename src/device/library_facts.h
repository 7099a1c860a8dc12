/* Facts that a library candidate reports: cuBLAS, cuDNN, or a file of --library. */
#pragma once

#include "base/file.h"

typedef struct fa_library_facts {
    char name[64], version[64]; /* "cuBLAS", "13.1.0"; an empty name: not queried yet */
    bool nondeterministic;      /* repeats may differ in the last bits */
    bool writes_lse;            /* on request */
    bool serves_bf16;
    int32_t serves, needs;   /* FA_FEATURE_*, FA_NEEDS_* */
    int64_t workspace_bytes; /* that the bench allocates and passes in fa_params */
    fa_digest sha256;        /* of the file; empty for cuBLAS and cuDNN */
} fa_library_facts;
