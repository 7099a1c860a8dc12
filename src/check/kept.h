/* Inputs and references of the problems that a process has checked: the runs of --runs that ask for the same ones share
 * them. */
#pragma once

#include "base/file.h"
#include "check/draw.h"
#include "check/gradients.h"
#include "check/reference.h"

/* Inputs of one draw and what is known of them; NULL and zero where nothing is known yet. */
typedef struct fa_kept {
    fa_tensors tensors;
    bool has_tensors, has_reference;
    fa_reference reference; /* of the CPU */
    float *library;         /* [rows, dim_v]: the library's output, which has passed */
    bool library_cannot;    /* it gives no answer to this input: */
    char missing[256];      /* why it gives none at all; empty: in this layout */
    double *forward;        /* of --op backward: fa_gradients_forward; tensors.o and lse are made from it */
    bool has_gradients;
    fa_gradients gradients;
    /* Of --op backward what fa_gradients_of_plain takes. */
    double *plain;      /* [rows, dim_v], then [rows] log-sum-exp: the plain kernel's, which agrees with the CPU's */
    fa_gradients every; /* fa_gradients_of_plain */
} fa_kept;

/* All that decides inputs and references: the draw's problem before its scale is changed, the draw, and of the
 * candidate its class, and its tile where the CPU takes a sample of the rows. */
fa_digest fa_kept_key(const fa_problem *problem, const fa_draw *draw, int32_t tile_m, bool acc_fp16);

/* The entry of this key, empty if there was none, until fa_kept_close. One at a time. `suspicious`: kernels run in this
 * process and may have written into it: an entry that has changed since it was closed comes empty. Otherwise the rows
 * of a sample are each entry's own, and what entries share besides is in the one that was opened last. */
fa_kept *fa_kept_open(const fa_digest *key, const fa_problem *problem, bool suspicious);
/* Frees the entries that were not used for longest, this one last, until `most` bytes are left. */
void fa_kept_close(fa_kept *kept, size_t most);
/* Bytes that a process may keep: of a GPU's checks one 32th of the memory and 4 GiB at most; on the emulator, where
 * many processes run and a kernel takes far longer than its reference, 4 MiB. */
size_t fa_kept_most(bool emulated);
void fa_kept_clear(void);
/* Frees what an entry of the caller's own holds. */
void fa_kept_free(fa_kept *kept);
