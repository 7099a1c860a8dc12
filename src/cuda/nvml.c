#include "cuda/nvml.h"

#include <dlfcn.h>
#include <string.h>

#include "cuda/lib_open.h"

/* nvml.h: nvmlClockType_t. */
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };

void fa_nvml_open(fa_nvml *nvml, const char *pci_bus_id)
{
    memset(nvml, 0, sizeof *nvml);
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    int (*init)(void);
    int (*by_bus_id)(const char *, void **);
    /* Drivers before 535 have the second name. */
    const bool complete =
        fa_library_find(library, "nvmlInit_v2", &init) &&
        fa_library_find(library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus_id) &&
        fa_library_find(library, "nvmlShutdown", &nvml->shutdown) &&
        (fa_library_find(library, "nvmlDeviceGetCurrentClocksEventReasons", &nvml->clock_reasons) ||
         fa_library_find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml->clock_reasons)) &&
        fa_library_find(library, "nvmlDeviceGetMaxClockInfo", &nvml->max_clock_info) &&
        fa_library_find(library, "nvmlSystemGetDriverVersion", &nvml->driver_version);
    if (!fa_library_find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->compute_processes))
        fa_library_find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->compute_processes);
    if (complete && init() == 0) {
        if (by_bus_id(pci_bus_id, &nvml->device) == 0) {
            nvml->library = library;
            return;
        }
        nvml->shutdown();
    }
    memset(nvml, 0, sizeof *nvml);
    dlclose(library);
}

void fa_nvml_close(fa_nvml *nvml)
{
    if (!nvml->library)
        return;
    nvml->shutdown();
    dlclose(nvml->library);
    memset(nvml, 0, sizeof *nvml);
}

bool fa_nvml_clock_reasons(const fa_nvml *nvml, uint64_t *reasons)
{
    unsigned long long bits = 0;
    if (!nvml->library || nvml->clock_reasons(nvml->device, &bits) != 0)
        return false;
    *reasons = bits;
    return true;
}

static int32_t max_clock(const fa_nvml *nvml, int clock)
{
    unsigned int mhz = 0;
    if (!nvml->library || nvml->max_clock_info(nvml->device, clock, &mhz) != 0)
        return 0;
    return (int32_t)mhz;
}

int32_t fa_nvml_max_sm_mhz(const fa_nvml *nvml) { return max_clock(nvml, NVML_CLOCK_SM); }

int32_t fa_nvml_max_memory_mhz(const fa_nvml *nvml) { return max_clock(nvml, NVML_CLOCK_MEM); }

int32_t fa_nvml_other_processes(const fa_nvml *nvml)
{
    enum { NVML_SUCCESS = 0, NVML_ERROR_INSUFFICIENT_SIZE = 7 };
    unsigned int count = 0; /* no room in the list: NVML then returns the number of processes */
    if (!nvml->library || !nvml->compute_processes)
        return -1;
    const int code = nvml->compute_processes(nvml->device, &count, NULL);
    if (code != NVML_SUCCESS && code != NVML_ERROR_INSUFFICIENT_SIZE)
        return -1;
    return count > 0 ? (int32_t)count - 1 : 0;
}

bool fa_nvml_driver(const fa_nvml *nvml, char *text, size_t size)
{
    return nvml->library && nvml->driver_version(text, (unsigned int)size) == 0;
}
