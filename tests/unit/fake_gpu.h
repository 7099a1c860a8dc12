/* A device whose samples are made up: what the timing protocol does with a stream of times is tested without a GPU. */
#pragma once

#include "run/candidate.h"

#define FAKE_LOG 4096

typedef struct fake_gpu fake_gpu;

/* Kernel number 0 or 1; -1: the empty kernel. n counts the samples of the whole test from 0. */
struct fake_gpu {
    double (*us)(fake_gpu *gpu, int kernel, long n);
    double (*mhz)(fake_gpu *gpu, long n);     /* NULL: 1980 */
    bool (*throttled)(fake_gpu *gpu, long n); /* NULL: never */
    bool (*capped)(fake_gpu *gpu, long n);    /* NULL: never */
    bool (*waited)(fake_gpu *gpu, long n);    /* longer for the GPU than is allowed; NULL: never */
    double base_us[2];
    double noise, drift;  /* relative: noise is uniform in +-noise */
    double wall_s;        /* what a sample takes by the clock of the tests */
    bool idle_in_samples; /* a timed launch writes nothing */
    int wobbles;          /* by so many units in the last place the output differs from launch to launch */
    int only_wobble;      /* 1 + the element that does; 0: all of them */
    long ungated;         /* 1 + the sample that was not queued in time */
    int others;           /* processes on the GPU beside this one */
    long others_at;       /* 1 + the sample that sees them; 0: every third */
    uint64_t random;
    long samples, launches, resets, rests;
    int log[FAKE_LOG]; /* kernel of each sample */
    fa_sample_request last[2];
    struct golden *trace; /* each run of samples that are asked for alike; NULL: none */
    char asked[120];
    long asked_times;
    fa_device device;
    fa_candidate candidate[2];
    uint16_t output[2][64];
};

extern const fa_problem fake_problem; /* small: its roofline is far below every time used */
extern const fa_problem fake_decode;  /* reads 8.4 MB: 1.75 us at 4.8 TB/s */
void fake_gpu_make(fake_gpu *gpu, double first_us, double second_us);
fa_options fake_options(void);
/* An `alloc` that fails. */
fa_status fake_no_memory(fa_device *device, size_t bytes, fa_ptr *pointer, fa_reason *why);
void fake_gpu_end_trace(fake_gpu *gpu);
double fake_noise(fake_gpu *gpu); /* uniform in [-1, 1) */
