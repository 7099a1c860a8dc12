/* References that the device computes, on the candidate's inputs and into memory of their own: the library of the
 * registry (cuBLAS), and the plain kernel of src/cuda/plain.cu, in FP64. A missing reference is not an error of a run:
 * `missing` has the reason. */
#pragma once

#include "check/kept.h"
#include "run/candidate.h"

enum { FA_LIBRARY_TILE = 64, FA_MISSING_SIZE = 512 };

typedef struct fa_device_reference {
    bool plain;     /* else the library */
    bool gradients; /* of the plain kernel: those of --op backward, from kept->forward */
    bool opened, on;
    int64_t work_most; /* multiply-adds beyond which it is not asked; 0: none */
    fa_kernel *kernel; /* NULL: not loaded */
    fa_ptr out;
    size_t rows, count, bytes; /* of the output: rows and elements; bytes with a log-sum-exp where there is one */
    size_t skipped;            /* doubles before the gradients */
} fa_device_reference;

/* The plain reference where nobody asked for it: a few seconds on an H100. */
#define FA_PLAIN_WORK_MOST (1ll << 44)

/* Once, however often it is called; `on` says whether it can be asked. */
void fa_device_reference_open(const fa_candidate *candidate, fa_device_reference *other, char missing[FA_MISSING_SIZE]);
void fa_device_reference_close(fa_device *device, fa_device_reference *other);
/* Computes kept->library or kept->plain; with --op backward and without `gradients` kept->forward. The result must
 * itself pass against kept->reference, the library's by the rules, the plain kernel's to FA_PLAIN_AGREES; otherwise the
 * reference is dropped. Without a plan for a drawn layout a library gives no answer; without one for the requested
 * layout it is dropped. */
fa_status fa_device_reference_run(const fa_candidate *candidate, bool as_asked, fa_device_reference *other,
                                  fa_kept *kept, char missing[FA_MISSING_SIZE], fa_reason *why);

/* The plain kernel and the CPU differ by rounding in FP64 alone: less than this times the largest |V| plus |R|, and in
 * the log-sum-exp than this times 1 + |R|. */
#define FA_PLAIN_AGREES 1e-9
/* False, with the first place that differs, unless all rows of kept->gradients agree. */
bool fa_plain_gradients_agree(const fa_problem *problem, const fa_kept *kept, const double *plain, fa_reason *why);
/* The same of the forward and kept->reference. */
bool fa_plain_agrees(const fa_problem *problem, const fa_kept *kept, const double *plain, const double *lse,
                     fa_reason *why);
