/* From a spec to a shared object for the emulator: the kernel's file through g++ and the headers of
 * src/emu/include/. */
#pragma once

#include "compile/module.h"
#include "input/options.h"
#include "input/spec.h"

/* An option of a module under the race detector that sees structs by value in every call, not in inlined ones alone. */
#define FA_EMU_ALL_CALLS "-DFA_RACE_CALLS=0x"

/* Spec, cache and refusals as of fa_compile_cuda. FA_NOT_RUN also when the kernel has PTX that the emulator does
 * not run, or when the sanitizer's runtime is not in this process. */
fa_status fa_compile_emu(const fa_spec *spec, fa_sanitize sanitize, fa_module *module, fa_reason *why);
