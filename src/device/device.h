/* Where kernels run: one table of functions, two implementations (the CUDA driver, the CPU emulator). */
#ifndef FA_DEVICE_H
#define FA_DEVICE_H

#include "compile/launch.h"

typedef struct fa_device_info {
    char backend[8]; /* "cuda", "emu" */
    char name[96];
    char arch[16];   /* "sm_90"; for emu the arch that figures are given for */
    char bus_id[32]; /* PCI address, empty for emu: names the lock of fa_device_turn */
    char driver[32]; /* "580.159 (CUDA 13.0)", empty for emu */
    int32_t sm_count, clock_mhz_max, memory_clock_mhz, smem_block_bytes;
    int64_t memory_bytes, l2_bytes;
    double memory_gbytes_per_s; /* theoretical DRAM bandwidth */
} fa_device_info;

typedef struct fa_device fa_device;
typedef struct fa_kernel fa_kernel; /* something that can be launched: a loaded module or a library plan */

/* Device memory; on the emulator a host pointer. */
typedef uint64_t fa_ptr;

/* One timing sample: `launches` back-to-back launches. */
typedef struct fa_sample_request {
    fa_kernel *kernel; /* NULL: an empty kernel, for the floor */
    fa_launch launch;
    fa_params params;
    fa_timing_method method; /* GRAPH: one CUDA graph of `launches` launches; EVENT: an event pair around one launch */
    fa_l2 l2;
    int32_t launches;
    int32_t primes; /* untimed launches of the same kernel just before: the L2 it left behind is its own */
    bool fresh;     /* first sample of a measurement: undo what earlier ones may have set (persisting L2) */
} fa_sample_request;

typedef struct fa_sample {
    double us;               /* per launch */
    double sm_mhz;           /* mean SM clock over the sample, 0 when unknown */
    bool throttled;          /* by the hardware: slowdown, temperature, power brake */
    bool gated;              /* all of it was queued before it began; else the host's launch cost is in it */
    double waited_us;        /* host time from opening the gate to the end, beyond what the launches took */
    int32_t other_processes; /* with a context on this GPU; -1: unknown */
    bool power_capped;       /* the power limit is at work: normal under load, counts only with a clock that fell */
} fa_sample;

struct fa_device {
    fa_device_info info;
    char choice[256]; /* what --device auto took and why, empty when it was told */
    void *self;
    fa_status (*load)(fa_device *device, const fa_spec *spec, const fa_module *module, const fa_problem *problem,
                      fa_kernel **kernel, fa_reason *why);
    void (*unload)(fa_device *device, fa_kernel *kernel);
    fa_status (*alloc)(fa_device *device, size_t bytes, fa_ptr *pointer, fa_reason *why); /* 256-byte aligned */
    void (*free)(fa_device *device, fa_ptr pointer);
    fa_status (*copy_in)(fa_device *device, fa_ptr to, const void *from, size_t bytes, fa_reason *why);
    fa_status (*copy_out)(fa_device *device, void *to, fa_ptr from, size_t bytes, fa_reason *why);
    fa_status (*copy)(fa_device *device, fa_ptr to, fa_ptr from, size_t bytes, fa_reason *why); /* within its memory */
    fa_status (*fill16)(fa_device *device, fa_ptr to, uint16_t value, size_t count, fa_reason *why);
    /* Launches once and waits for the whole context; a fault is FA_ERROR with the driver's words. */
    fa_status (*launch)(fa_device *device, fa_kernel *kernel, const fa_launch *launch, const fa_params *params,
                        fa_reason *why);
    /* NULL where there is no clock worth reading (the emulator). */
    fa_status (*sample)(fa_device *device, const fa_sample_request *request, fa_sample *sample, fa_reason *why);
    /* Fills in the tensor maps a kernel asked for; NULL when the device has none (FA_NOT_RUN for such a kernel). */
    fa_status (*encode_maps)(fa_device *device, const fa_kernel_info *info, fa_params *params, fa_reason *why);
    /* Between the runs of --runs, after all has been unloaded and freed: as it was opened. NULL: opening again costs nothing. */
    void (*reset)(fa_device *device);
    void (*close)(fa_device *device);
};

/* Processes on one GPU take turns: any number check at once, one times alone. A no-op without a bus_id. */
typedef enum { FA_TURN_NONE, FA_TURN_SHARED, FA_TURN_ALONE } fa_turn;
void fa_device_turn(const fa_device_info *info, fa_turn turn);

/* Seconds this process has waited for its turns. */
double fa_device_waited_s(void);

/* What `auto` or `cuda` would open, without keeping it open; leaves info alone when there is no GPU. */
void fa_device_probe(const fa_options *options, fa_device_info *info);
/* --device: `auto` takes the GPU when there is one, else the emulator. A device that an earlier run has opened is put back
 * as it was then; zeroed: none is open. */
fa_status fa_device_open(const fa_options *options, fa_device *device, fa_reason *why);
/* FA_NOT_RUN with the reason when there is no driver or no such GPU. The context, which takes long, is made by the first
 * allocation or load: what is refused before needs none. */
fa_status fa_device_open_cuda(int32_t gpu, fa_device *device, fa_reason *why);
/* "cuBLAS 13.1.0", "cuDNN 9.19.0": the library that a baseline of this kind would use here. FA_NOT_RUN when there is none. */
fa_status fa_library_version(fa_kind kind, char text[64], fa_reason *why);
fa_status fa_device_open_emu(fa_schedule schedule, uint64_t seed, const char *arch, fa_device *device, fa_reason *why);

#endif
