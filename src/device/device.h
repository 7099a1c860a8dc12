/* Where kernels run: one table of functions with two implementations, the CUDA driver (cuda/) and the CPU emulator
 * (emu/). Each opens a device in its own device.h; run/devices.h picks one. */
#pragma once

#include <string.h>

#include "compile/launch.h"
#include "device/findings.h"

typedef struct fa_device_info {
    char backend[8]; /* "cuda", "emu" */
    char name[96];
    char arch[16];   /* "sm_90"; for emu the arch of the reported figures */
    char bus_id[32]; /* PCI address, names the lock of the GPU; empty for emu */
    char driver[32]; /* "580.159 (CUDA 13.0)", empty for emu */
    int32_t sm_count, clock_mhz_max, smem_block_bytes;
    int64_t memory_bytes, l2_bytes;
    double memory_gbytes_per_s; /* theoretical DRAM bandwidth */
} fa_device_info;

typedef struct fa_device fa_device;
typedef struct fa_kernel fa_kernel; /* something that can be launched: a loaded module or a library plan */

/* Device memory; on the emulator a host pointer. */
typedef uint64_t fa_ptr;

/* One timing sample: `launches` back-to-back launches. */
typedef struct fa_sample_request {
    fa_kernel *kernel; /* NULL: an empty kernel, for the launch overhead */
    fa_launch launch;
    fa_params params;
    fa_timing_method method; /* GRAPH: one CUDA graph of `launches` launches; EVENT: an event pair around one launch */
    fa_l2 l2;
    int32_t launches;
    int32_t warmup_launches; /* untimed launches of the same kernel just before, so that the L2 holds its own data */
    double about_us;         /* of one launch, as calibration saw it */
    bool persist_kv;         /* the L2 keeps K and V */
    double rest_ms;          /* the GPU idles this long before */
    bool reset_l2;           /* first sample of a measurement: reset L2 lines that earlier kernels made persistent */
} fa_sample_request;

typedef struct fa_sample {
    double us;        /* per launch */
    double sm_mhz;    /* mean SM clock over the sample, 0 when unknown */
    bool throttled;   /* by the hardware: slowdown, temperature, power brake */
    bool gated;       /* all work was queued before the GPU began it; else `us` includes the host's launch cost */
    double waited_us; /* host time from releasing the queued work to its end, beyond what the launches took */
    int32_t other_processes; /* with a context on this GPU; -1: unknown */
    bool power_capped;       /* at the power limit: normal under load, matters only with a clock that fell */
} fa_sample;

struct fa_device {
    fa_device_info info;
    char choice[256]; /* what --device auto took and why; empty without auto */
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
    /* Launches once and waits for the whole context. On a GPU a fault is FA_ERROR with the driver's message; on the
     * emulator FA_WRONG, and in `found`; what it does not model is FA_NOT_RUN. */
    fa_status (*launch)(fa_device *device, fa_kernel *kernel, const fa_launch *launch, const fa_params *params,
                        fa_reason *why);
    /* NULL on the emulator, which has no meaningful times. */
    fa_status (*sample)(fa_device *device, const fa_sample_request *request, fa_sample *sample, fa_reason *why);
    /* What the emulator's launches have found so far. NULL: a GPU. */
    const fa_findings *found;
    /* Chooses the emulator's schedule of the next launches; 0: the run's own, 1: greedy, if that is not the run's own.
     * Returns the schedule (fa_schedule). NULL: a GPU. */
    int32_t (*vary)(fa_device *device, int32_t variation);
    /* Between the runs of --runs, when all is unloaded and freed: back to the state after opening. NULL: reopen. */
    void (*reset)(fa_device *device);
    void (*close)(fa_device *device);
};

/* False for NULL: no device. */
static inline bool fa_device_is_emu(const fa_device *device)
{
    return device != NULL && strcmp(device->info.backend, "emu") == 0;
}
