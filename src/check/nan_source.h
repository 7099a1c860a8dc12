/* Whether a wrong output comes from NaN that lies outside of the rows of its tensors. */
#pragma once

#include "check/session.h"

/* After a wrong result: launches again with zeros in place of the NaN that lies around and between the rows of the
 * tensors. Where the result is another, appends to `why` which tensor is read there, and what the output is without
 * that NaN; where it is the same NaN, that the kernel makes it. The contents of the buffers are lost. */
void fa_nan_source_find(fa_session *s, fa_reason *why);
