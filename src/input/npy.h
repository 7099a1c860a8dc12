/* Tensors as NumPy's .npy files, format versions 1.0 to 3.0 (numpy.lib.format), C order. FP16 is '<f2'. NumPy has no
 * BF16: ml_dtypes saves its bfloat16 as '<V2', two opaque bytes, and so do these functions. They also read '|V2', which
 * NumPy makes of '<V2', and '<u2', the bit pattern: torch gives it by .view(torch.uint16).
 * E4M3 is '|u1', the bit pattern: torch's .view(torch.uint8). Its descales are q_descale.npy, k_descale.npy and
 * v_descale.npy, FP32 [batch, heads]. */
#pragma once

#include "input/tensors.h"

/* Reads q.npy, k.npy and v.npy of `folder`, with --op backward dout.npy, and descales; without a file of them they are
 * 1. FA_USAGE when a file is missing, has another type or shape than the problem's, holds a value that is not finite,
 * or when two of them hold the same values. */
fa_status fa_npy_load(const fa_problem *problem, const char *folder, fa_tensors *tensors, fa_reason *why);
/* The size of the problem becomes what the headers of q.npy and k.npy state. FA_USAGE where they state none within the
 * options' limits. */
fa_status fa_npy_size(const char *folder, fa_options *options, fa_reason *why);
/* Writes `name`.npy; shape: [batch, heads, seq, dim]. */
fa_status fa_npy_write(const char *folder, const char *name, fa_dtype dtype, const uint16_t *data,
                       const int32_t shape[4], fa_reason *why);
/* Writes what there is of descales, sinks.npy ([heads]), slopes.npy ([batch, heads]), all FP32, and bias.npy. */
fa_status fa_npy_write_scores(const fa_problem *problem, const char *folder, const fa_score_tensors *tensors,
                              fa_reason *why);
/* Writes the page table: page_table.npy, the pages of all sequences, one sequence after the other, and page_start.npy,
 * [batch + 1]: where a sequence's begin. INT32. */
fa_status fa_npy_write_pages(const fa_pages *pages, const char *folder, fa_reason *why);
/* Writes `name`.npy in FP32; shape: [batch, heads, seq]. */
fa_status fa_npy_write_fp32(const char *folder, const char *name, const float *data, const int32_t shape[3],
                            fa_reason *why);
