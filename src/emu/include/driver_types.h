#include "fa_emu.h" /* built in here */
