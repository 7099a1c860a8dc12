/* __shared__ declarations of a kernel that g++ compiles for the emulator, in all the orders that nvcc takes. Pure text.
 */
#pragma once

/* Preprocessed C++ with the declarations rewritten: a pointer for extern ones, of namespace scope in each function that
 * uses them; for others a static variable in a section of its own. Lines keep their numbers. malloc'd. */
char *fa_shared_rewrite(const char *preprocessed);
