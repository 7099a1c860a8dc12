/* Problems of published models, by name: presets.def. */
#pragma once

#include "base/status.h"

/* The options of a preset; NULL, with the names in the reason, where there is none. */
char *const *fa_preset_words(const char *name, int *count, fa_reason *why);
