/* __shared__ declarations of a kernel that g++ compiles for the emulator, in all the orders that nvcc takes. Pure text.
 */
#ifndef FA_COMPILE_SHARED_MEMORY_H
#define FA_COMPILE_SHARED_MEMORY_H

#include "compile/cxx.h"

/* extern __shared__ T name[]: the block's dynamic memory. */
typedef struct fa_shared_array {
    char name[64];
    char *declaration; /* malloc'd: of a pointer to that memory, which stands for it in a function */
} fa_shared_array;

/* The statement of tokens first to last, a ';'. False: another one. */
bool fa_shared_array_read(const fa_cxx_tokens *tokens, size_t first, size_t last, fa_shared_array *array);

/* Preprocessed C++ with the declarations rewritten: a pointer for extern ones, of namespace scope in each function that
 * uses them; for others a static variable in a section of its own. Lines keep their numbers. malloc'd. */
char *fa_shared_rewrite(const char *preprocessed);

#endif
