#include "fake_gpu.h"
#include "unit.h"

static char kernels[2]; /* their addresses are the kernels */

const fa_problem fake_problem = {
    .batch = 1, .heads = 1, .kv_heads = 1, .seq_q = 1, .seq_kv = 1, .dim = 64, .scale = 0.125f};
const fa_problem fake_decode = {
    .batch = 1, .heads = 8, .kv_heads = 8, .seq_q = 1, .seq_kv = 4096, .dim = 64, .scale = 0.125f};

static int kernel_number(const fa_kernel *kernel)
{
    if (kernel == NULL)
        return -1;
    return (const char *)kernel == &kernels[1];
}

double fake_noise(fake_gpu *gpu)
{
    gpu->random = gpu->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(gpu->random >> 11) / 4503599627370496.0 - 1.0;
}

static void write_output(fake_gpu *gpu, int kernel)
{
    for (int i = 0; i < 64; i++)
        gpu->output[kernel][i] =
            (uint16_t)(0x3c00 + i +
                       (gpu->launches % 2 && (gpu->only_wobble == 0 || i == gpu->only_wobble - 1) ? gpu->wobbles : 0));
    gpu->launches++;
}

static double plain_us(fake_gpu *gpu, int kernel, long n)
{
    const double base_us = kernel < 0 ? 1.0 : gpu->base_us[kernel];
    return base_us * (1 + gpu->noise * fake_noise(gpu)) * (1 + gpu->drift * (double)n);
}

/* The clock of these tests; the linker puts it in the place of fa_now_s. A sample takes its wall_s, everything else a
 * microsecond, however busy the machine is. */
static double now_s = 1000.0;
double __wrap_fa_now_s(void) { return now_s += 1e-6; }

void fake_gpu_end_trace(fake_gpu *gpu)
{
    if (gpu->trace != NULL && gpu->asked_times > 0)
        golden_say(gpu->trace, "; %ld x %s", gpu->asked_times, gpu->asked);
    gpu->asked_times = 0;
}

static void trace(fake_gpu *gpu, const fa_sample_request *request)
{
    char asked[sizeof gpu->asked];
    snprintf(asked, sizeof asked, "kernel %d method %d l2 %d %d launches after %d%s", kernel_number(request->kernel),
             request->method, request->l2, request->launches, request->warmup_launches,
             request->reset_l2 ? " reset" : "");
    if (gpu->trace != NULL && strcmp(asked, gpu->asked) != 0) {
        fake_gpu_end_trace(gpu);
        memcpy(gpu->asked, asked, sizeof asked);
    }
    gpu->asked_times++;
}

static fa_status fake_sample(fa_device *device, const fa_sample_request *request, fa_sample *sample, fa_reason *why)
{
    fake_gpu *gpu = device->self;
    const int kernel = kernel_number(request->kernel);
    /* the floor is an empty kernel's */
    FA_ASSERT(kernel >= 0 || (!request->persist_kv && !request->reset_l2 && request->rest_ms == 0));
    const long n = gpu->samples++;
    if (n < FAKE_LOG)
        gpu->log[n] = kernel;
    if (kernel >= 0) {
        gpu->last[kernel] = *request;
        if (!gpu->idle_in_samples)
            write_output(gpu, kernel);
    }
    gpu->resets += request->reset_l2;
    trace(gpu, request);
    gpu->rests += request->rest_ms > 0;
    *sample = (fa_sample){
        .us = gpu->us(gpu, kernel, n),
        .gated = n != gpu->ungated - 1,
        .sm_mhz = gpu->mhz ? gpu->mhz(gpu, n) : 1980,
        .throttled = gpu->throttled && gpu->throttled(gpu, n),
        .waited_us = gpu->waited && gpu->waited(gpu, n) ? 500.5 : 500.0,
        .power_capped = gpu->capped && gpu->capped(gpu, n),
        .other_processes = (gpu->others_at > 0 ? n == gpu->others_at - 1 : n % 3 == 1) ? gpu->others : 0,
    };
    now_s += gpu->wall_s;
    return FA_PASS;
}

static fa_status fake_launch(fa_device *device, fa_kernel *kernel, const fa_launch *launch, const fa_params *params,
                             fa_reason *why)
{
    write_output(device->self, kernel_number(kernel));
    return FA_PASS;
}

fa_status fake_no_memory(fa_device *device, size_t bytes, fa_ptr *pointer, fa_reason *why)
{
    return fa_refuse(why, FA_ERROR, "no memory for a copy of the inputs");
}

void fake_gpu_make(fake_gpu *gpu, double first_us, double second_us)
{
    memset(gpu, 0, sizeof *gpu);
    gpu->us = plain_us;
    gpu->base_us[0] = first_us;
    gpu->base_us[1] = second_us;
    gpu->random = 12345;
    gpu->device = host_device();
    gpu->device.info = (fa_device_info){.backend = "fake",
                                        .name = "fake H200",
                                        .arch = "sm_90",
                                        .sm_count = 132,
                                        .clock_mhz_max = 1980,
                                        .memory_gbytes_per_s = 4800};
    gpu->device.self = gpu;
    gpu->device.launch = fake_launch;
    gpu->device.sample = fake_sample;
    for (int i = 0; i < 2; i++) {
        gpu->candidate[i] = (fa_candidate){
            .device = &gpu->device,
            .problem = &fake_problem,
            .kernel = (fa_kernel *)&kernels[i],
            .launch = {.grid = 1, .threads = 32},
            .buffers = {.device = &gpu->device,
                        .problem = &fake_problem,
                        .tensors = FA_L,
                        .base[FA_O] = (fa_ptr)(uintptr_t)gpu->output[i],
                        .layout[FA_O] = {.batch = 1, .heads = 1, .seq = 1, .dim = 64, .blocks = 1, .block_count = 64},
                        .count[FA_O] = 64},
        };
    }
}

fa_options fake_options(void)
{
    return (fa_options){
        .timing = FA_TIMING_AUTO, .l2 = FA_L2_WARM, .warmup_ms = 0, .min_samples = 100, .max_time = 10, .seed = 42};
}
