/* The parameters of a launch. */
#pragma once

#include "run/buffers.h"

/* The parameters of a launch over these tensors; zeroed buffers give NULL pointers. */
fa_params fa_buffers_params(const fa_buffers *buffers, const fa_problem *problem, const fa_launch *launch);
