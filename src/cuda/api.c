#include "cuda/api.h"

#include <dlfcn.h>
#include <string.h>

/* POSIX gives dlsym as an object pointer; copying its bytes is the conversion ISO C does not have. */
static bool find(void *library, const char *symbol, void *function_pointer)
{
    void *address = dlsym(library, symbol);
    memcpy(function_pointer, &address, sizeof address);
    return address != NULL;
}

fa_status fa_cuda_api_open(fa_cuda_api *api, fa_reason *why)
{
    memset(api, 0, sizeof *api);
    api->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!api->library)
        return fa_refuse(why, FA_NOT_RUN, "no CUDA driver: %s", dlerror());
    const char *missing = NULL;
#define FA_CU(name, symbol, arguments)                       \
    if (!find(api->library, symbol, &api->name) && !missing) \
        missing = symbol;
#define FA_CU_OPTIONAL(name, symbol, arguments) find(api->library, symbol, &api->name);
#include "cuda/api.def"
#undef FA_CU
#undef FA_CU_OPTIONAL
    if (missing) {
        dlclose(api->library);
        memset(api, 0, sizeof *api);
        return fa_refuse(why, FA_NOT_RUN, "the CUDA driver is too old: libcuda.so.1 has no %s", missing);
    }
    return FA_PASS;
}

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
    /* The second name is the one drivers before 535 have for the same question. */
    const bool complete = find(library, "nvmlInit_v2", &init) &&
                          find(library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus_id) &&
                          find(library, "nvmlShutdown", &nvml->shutdown) &&
                          (find(library, "nvmlDeviceGetCurrentClocksEventReasons", &nvml->clock_reasons) ||
                           find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml->clock_reasons)) &&
                          find(library, "nvmlDeviceGetClockInfo", &nvml->clock_info) &&
                          find(library, "nvmlDeviceGetMaxClockInfo", &nvml->max_clock_info) &&
                          find(library, "nvmlSystemGetDriverVersion", &nvml->driver_version);
    if (!find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->compute_processes))
        find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml->compute_processes);
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
    unsigned int count = 0; /* room for none: it answers how many there are */
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
