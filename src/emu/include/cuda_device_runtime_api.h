/* What of the device runtime a kernel of one launch may call: declared in fa_emu_warp.h. */
#pragma once
