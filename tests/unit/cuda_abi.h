#pragma once

#include <stddef.h>

typedef struct abi_value {
    const char *what;
    long long value;
} abi_value;

/* From cuda.h; count 0 where there is none. */
extern const abi_value cuda_abi_theirs[];
extern const size_t cuda_abi_theirs_count;
