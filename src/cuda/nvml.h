/* NVML, opened at run time: what the driver reports about clocks and about other processes on the GPU. */
#pragma once

#include "base/status.h"

/* Reasons for a clock below the requested one (NVML API Reference, nvmlClocksEventReasons;
 * https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html). */
enum {
    FA_NVML_SW_POWER_CAP = 0x4,
    FA_NVML_HW_SLOWDOWN = 0x8,
    FA_NVML_SW_THERMAL = 0x20,
    FA_NVML_HW_THERMAL = 0x40,
    FA_NVML_HW_POWER_BRAKE = 0x80,
};

/* The opened NVML. library == NULL when there is none; every question below then answers "unknown". */
typedef struct fa_nvml {
    void *library, *device;
    int (*shutdown)(void);
    int (*clock_reasons)(void *device, unsigned long long *reasons);
    int (*max_clock_info)(void *device, int clock, unsigned int *mhz);
    int (*driver_version)(char *text, unsigned int size);
    int (*compute_processes)(void *device, unsigned int *count, void *infos); /* NULL in old versions */
} fa_nvml;

void fa_nvml_open(fa_nvml *nvml, const char *pci_bus_id);
void fa_nvml_close(fa_nvml *nvml);
bool fa_nvml_clock_reasons(const fa_nvml *nvml, uint64_t *reasons);
int32_t fa_nvml_max_sm_mhz(const fa_nvml *nvml);      /* 0: unknown */
int32_t fa_nvml_max_memory_mhz(const fa_nvml *nvml);  /* 0: unknown */
int32_t fa_nvml_other_processes(const fa_nvml *nvml); /* other processes with a context on this GPU; -1: unknown */
bool fa_nvml_driver(const fa_nvml *nvml, char *text, size_t size);
