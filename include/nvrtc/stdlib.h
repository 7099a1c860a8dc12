#include "fa_std.h"
