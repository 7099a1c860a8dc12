#include "emu/core/state.h"

_Thread_local fa_emu_worker *fa_emu_self;
