/* One timing sample on the GPU (docs/timing.md). A blocking kernel holds the stream until all of a sample is
 * queued, so that the host's launch cost is not in it:
 *
 *     blocking kernel, warm-up launches, [L2 flush], clocks, event, launches, event, clocks
 *
 * In graph mode the two events are nodes of the graph, so that its start is not in the sample either. */
#include "cuda/sample.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "cuda/graph.h"
#include "cuda/module.h"
#include "cuda/persist.h"

enum { CLOCK_SLOTS = 1024, ATTEMPTS = 3, MAX_LAUNCHES = 4096 };

static const uint64_t BLOCKING_TIMEOUT_NS = 200000000, PROBE_TIMEOUT_NS = 20000000;
static const double OTHERS_PERIOD_S = 0.5;
static const double NVML_PERIOD_S = 0.025; /* between NVML queries: one takes longer than a short sample */

typedef struct clock_pair {
    uint64_t clock, ns;
} clock_pair;

/* Mapped host memory that the kernels of sample.cu read and write. */
typedef struct shared_page {
    atomic_int released, late;                      /* tickets */
    _Alignas(16) clock_pair clocks[2][CLOCK_SLOTS]; /* before and after, by SM; a pair is written in one piece */
} shared_page;

typedef struct fa_sampler {
    CUmodule module;
    CUfunction empty, blocking_kernel, clock, flush_write, flush_read;
    CUevent start, stop;
    shared_page *page;
    CUdeviceptr page_d, flush_d;
    size_t l2_bytes; /* flush_d holds twice that to write, once to read, and a sink */
    int ticket;
    bool synchronous; /* launches wait for their end (profiler, sanitizer, CUDA_LAUNCH_BLOCKING): block nothing */
    fa_kernel empty_kernel;
    fa_graphs graphs;
    double reasons_asked_s, others_asked_s;
    uint64_t reasons;
    int32_t other_processes;
} fa_sampler;

static fa_status enqueue_empty(fa_kernel *kernel, const fa_launch *launch, const fa_params *params, CUstream stream,
                               fa_reason *why)
{
    (void)launch;
    const fa_sampler *self = kernel->self;
    fa_cuda *cuda = kernel->cuda;
    fa_params copy = *params;
    void *arguments[] = {&copy};
    FA_CUDA_TRY(cuda, cuLaunchKernel, (self->empty, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
    return FA_PASS;
}

static fa_status put_blocking_kernel(fa_cuda *cuda, fa_sampler *self, uint64_t timeout_ns, fa_reason *why)
{
    CUdeviceptr released_d = self->page_d + offsetof(shared_page, released),
                late_d = self->page_d + offsetof(shared_page, late);
    void *arguments[] = {&released_d, &late_d, &self->ticket, &timeout_ns};
    FA_CUDA_TRY(cuda, cuLaunchKernel, (self->blocking_kernel, 1, 1, 1, 1, 1, 1, 0, cuda->stream, arguments, NULL));
    return FA_PASS;
}

static fa_status put_clocks(fa_cuda *cuda, fa_sampler *self, int which, fa_reason *why)
{
    CUdeviceptr clocks_d = self->page_d + offsetof(shared_page, clocks) + (size_t)which * sizeof self->page->clocks[0];
    unsigned int slots = CLOCK_SLOTS;
    void *arguments[] = {&clocks_d, &slots};
    const unsigned int blocks = 2 * (unsigned int)cuda->info.sm_count;
    FA_CUDA_TRY(cuda, cuLaunchKernel, (self->clock, blocks, 1, 1, 32, 1, 1, 0, cuda->stream, arguments, NULL));
    return FA_PASS;
}

/* Writes twice the L2, then reads once its size elsewhere. */
static fa_status put_flush(fa_cuda *cuda, fa_sampler *self, fa_reason *why)
{
    CUdeviceptr write_d = self->flush_d, read_d = write_d + 2 * self->l2_bytes, sink_d = read_d + self->l2_bytes;
    uint64_t write_count = 2 * self->l2_bytes / 16, read_count = self->l2_bytes / 16;
    unsigned int value = (unsigned int)self->ticket;
    void *write_arguments[] = {&write_d, &write_count, &value}, *read_arguments[] = {&read_d, &read_count, &sink_d};
    const unsigned int blocks = 4 * (unsigned int)cuda->info.sm_count;
    FA_CUDA_TRY(cuda, cuLaunchKernel,
                (self->flush_write, blocks, 1, 1, 512, 1, 1, 0, cuda->stream, write_arguments, NULL));
    FA_CUDA_TRY(cuda, cuLaunchKernel,
                (self->flush_read, blocks, 1, 1, 512, 1, 1, 0, cuda->stream, read_arguments, NULL));
    return FA_PASS;
}

static fa_status load_module(fa_cuda *cuda, fa_sampler *self, fa_reason *why)
{
    FA_TRY(fa_cuda_load_own(cuda, "sample", &self->module, why));
    FA_CUDA_TRY(cuda, cuModuleGetFunction, (&self->empty, self->module, "fa_util_empty"));
    FA_CUDA_TRY(cuda, cuModuleGetFunction, (&self->blocking_kernel, self->module, "fa_util_block"));
    FA_CUDA_TRY(cuda, cuModuleGetFunction, (&self->clock, self->module, "fa_util_clock"));
    FA_CUDA_TRY(cuda, cuModuleGetFunction, (&self->flush_write, self->module, "fa_util_flush_write"));
    FA_CUDA_TRY(cuda, cuModuleGetFunction, (&self->flush_read, self->module, "fa_util_flush_read"));
    return FA_PASS;
}

static fa_status probe_synchronous(fa_cuda *cuda, fa_sampler *self, fa_reason *why)
{
    self->ticket++;
    FA_TRY(put_blocking_kernel(cuda, self, PROBE_TIMEOUT_NS, why));
    atomic_store(&self->page->released, self->ticket);
    FA_CUDA_TRY(cuda, cuStreamSynchronize, (cuda->stream));
    self->synchronous = atomic_load(&self->page->late) == self->ticket;
    return FA_PASS;
}

static fa_status prepare(fa_cuda *cuda, fa_sampler *self, fa_reason *why)
{
    FA_TRY(load_module(cuda, self, why));
    FA_CUDA_TRY(cuda, cuEventCreate, (&self->start, CU_EVENT_DEFAULT));
    FA_CUDA_TRY(cuda, cuEventCreate, (&self->stop, CU_EVENT_DEFAULT));
    void *page = NULL;
    FA_CUDA_TRY(cuda, cuMemHostAlloc, (&page, sizeof *self->page, CU_MEMHOSTALLOC_DEVICEMAP));
    self->page = page;
    memset(page, 0, sizeof *self->page);
    FA_CUDA_TRY(cuda, cuMemHostGetDevicePointer, (&self->page_d, page, 0));
    self->empty_kernel = (fa_kernel){.enqueue = enqueue_empty, .cuda = cuda, .self = self};
    /* First launches (lazy loading) happen here; ticket 0 is served from the start. */
    FA_TRY(put_blocking_kernel(cuda, self, PROBE_TIMEOUT_NS, why));
    FA_TRY(put_clocks(cuda, self, 0, why));
    FA_CUDA_TRY(cuda, cuStreamSynchronize, (cuda->stream));
    return probe_synchronous(cuda, self, why);
}

static fa_status prepare_flush(fa_cuda *cuda, fa_sampler *self, fa_reason *why)
{
    if (self->flush_d)
        return FA_PASS;
    self->l2_bytes = (size_t)(cuda->info.l2_bytes > 0 ? cuda->info.l2_bytes : 64 << 20);
    const size_t bytes = 3 * self->l2_bytes + 256;
    FA_TRY(fa_cuda_reserve(cuda, "--l2 cold", &self->flush_d, bytes, why));
    FA_CUDA_TRY(cuda, cuMemsetD8Async, (self->flush_d, 0, bytes, cuda->stream));
    FA_TRY(put_flush(cuda, self, why));
    FA_CUDA_TRY(cuda, cuStreamSynchronize, (cuda->stream));
    return FA_PASS;
}

void fa_cuda_sampler_forget(fa_cuda *cuda, const fa_kernel *kernel)
{
    fa_sampler *self = cuda->sampler;
    if (self)
        fa_graphs_forget(cuda, &self->graphs, kernel);
}

void fa_cuda_sampler_close(fa_cuda *cuda)
{
    fa_sampler *self = cuda->sampler;
    if (!self)
        return;
    fa_graphs_close(cuda, &self->graphs);
    if (self->flush_d)
        cuda->api.cuMemFree(self->flush_d);
    if (self->page)
        cuda->api.cuMemFreeHost(self->page);
    if (self->start)
        cuda->api.cuEventDestroy(self->start);
    if (self->stop)
        cuda->api.cuEventDestroy(self->stop);
    if (self->module)
        cuda->api.cuModuleUnload(self->module);
    free(self);
    cuda->sampler = NULL;
}

static fa_status sampler_of(fa_cuda *cuda, fa_sampler **out, fa_reason *why)
{
    if (!cuda->sampler) {
        cuda->sampler = fa_alloc(sizeof(fa_sampler));
        const fa_status status = prepare(cuda, cuda->sampler, why);
        if (status != FA_PASS) {
            fa_cuda_sampler_close(cuda);
            return status;
        }
    }
    *out = cuda->sampler;
    return FA_PASS;
}

/* Queues a whole sample. exec: NULL in event mode. */
static fa_status put_sample(fa_cuda *cuda, fa_sampler *self, fa_kernel *kernel, const fa_sample_request *request,
                            CUgraphExec exec, fa_reason *why)
{
    FA_TRY(put_blocking_kernel(cuda, self, BLOCKING_TIMEOUT_NS, why));
    FA_TRY(fa_cuda_enqueue(kernel, request, request->warmup_launches, why));
    if (request->l2 == FA_L2_COLD)
        FA_TRY(put_flush(cuda, self, why));
    FA_TRY(put_clocks(cuda, self, 0, why));
    if (exec) {
        FA_CUDA_TRY(cuda, cuGraphLaunch, (exec, cuda->stream));
    } else {
        FA_CUDA_TRY(cuda, cuEventRecord, (self->start, cuda->stream));
        FA_TRY(fa_cuda_enqueue(kernel, request, request->launches, why));
        FA_CUDA_TRY(cuda, cuEventRecord, (self->stop, cuda->stream));
    }
    return put_clocks(cuda, self, 1, why);
}

/* One try. *invalid: NULL when the host released the stream in time and nothing was left running when the stream was
 * done. gated: false releases it beforehand, for a launch of more pieces than the driver queues (about a thousand). */
static fa_status try_sample(fa_cuda *cuda, fa_sampler *self, fa_kernel *kernel, const fa_sample_request *request,
                            CUgraphExec exec, bool gated, fa_sample *sample, const char **invalid, fa_reason *why)
{
    self->ticket++;
    if (!gated)
        atomic_store(&self->page->released, self->ticket);
    memset(self->page->clocks, 0, sizeof self->page->clocks);
    const fa_status put = put_sample(cuda, self, kernel, request, exec, why);
    atomic_store(&self->page->released, self->ticket); /* in any case: nothing stays blocked */
    const double released_s = fa_now_s();
    FA_TRY(put);
    FA_CUDA_TRY(cuda, cuStreamSynchronize, (cuda->stream));
    const double stream_done_s = fa_now_s();
    FA_CUDA_TRY(cuda, cuCtxSynchronize, ());
    const double left_us = (fa_now_s() - stream_done_s) * 1e6;
    float ms = 0;
    FA_CUDA_TRY(cuda, cuEventElapsedTime, (&ms, self->start, self->stop));
    const double us = (double)ms * 1e3;
    sample->us = us / request->launches;
    sample->waited_us =
        (stream_done_s - released_s) * 1e6 - sample->us * (request->launches + request->warmup_launches);
    *invalid = NULL;
    if (atomic_load(&self->page->late) == self->ticket)
        *invalid = "the host did not queue a sample within 200 ms";
    else if (left_us > 50 + 0.5 * us)
        *invalid = "the launch left work running after its stream was done";
    return FA_PASS;
}

/* Mean clock of the SMs that are in both snapshots; 0 when none is. */
static double mean_sm_mhz(const shared_page *page)
{
    double sum = 0;
    int seen = 0;
    for (int sm = 0; sm < CLOCK_SLOTS; sm++) {
        const clock_pair before = page->clocks[0][sm], after = page->clocks[1][sm];
        if (before.ns == 0 || after.ns <= before.ns)
            continue;
        sum += (double)(after.clock - before.clock) / (double)(after.ns - before.ns) * 1e3;
        seen++;
    }
    return seen ? sum / seen : 0;
}

static void ask_reasons(const fa_cuda *cuda, fa_sampler *self)
{
    const double now_s = fa_now_s();
    if (now_s - self->reasons_asked_s < NVML_PERIOD_S)
        return;
    self->reasons_asked_s = now_s;
    if (!fa_nvml_clock_reasons(&cuda->nvml, &self->reasons))
        self->reasons = 0;
}

static int32_t ask_others(const fa_cuda *cuda, fa_sampler *self)
{
    const double now_s = fa_now_s();
    if (self->others_asked_s == 0 || now_s - self->others_asked_s >= OTHERS_PERIOD_S) {
        self->others_asked_s = now_s;
        self->other_processes = fa_nvml_other_processes(&cuda->nvml);
    }
    return self->other_processes;
}

static fa_status try_until_valid(fa_cuda *cuda, fa_sampler *self, fa_kernel *kernel, const fa_sample_request *request,
                                 CUgraphExec exec, fa_sample *taken, bool *gated, fa_reason *why)
{
    const char *invalid = NULL;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        fa_rest(request->rest_ms * 1e-3);
        *gated = !self->synchronous && attempt + 1 < ATTEMPTS;
        FA_TRY(try_sample(cuda, self, kernel, request, exec, *gated, taken, &invalid, why));
        if (!invalid)
            return FA_PASS;
    }
    return fa_refuse(why, FA_ERROR, "timing: %s, %d times in a row", invalid, ATTEMPTS);
}

fa_status fa_cuda_sample(fa_device *device, const fa_sample_request *request, fa_sample *sample, fa_reason *why)
{
    fa_cuda *cuda = device->self;
    fa_sampler *self = NULL;
    FA_ASSERT(request->launches >= 1 && request->launches <= MAX_LAUNCHES, "%d launches", request->launches);
    FA_TRY(sampler_of(cuda, &self, why));
    fa_kernel *kernel = request->kernel ? request->kernel : &self->empty_kernel;
    if (request->reset_l2)
        fa_cuda_reset_l2(cuda);
    if (request->l2 == FA_L2_COLD)
        FA_TRY(prepare_flush(cuda, self, why));
    if (!kernel->launched)
        FA_TRY(fa_cuda_launch(device, kernel, &request->launch, &request->params, why));
    CUgraphExec exec = NULL;
    if (request->method == FA_TIMING_GRAPH)
        FA_TRY(fa_graphs_find(cuda, &self->graphs, self->start, self->stop, kernel, request, &exec, why));
    fa_sample taken = {0};
    bool gated = false;
    if (request->persist_kv)
        FA_TRY(fa_cuda_persist_begin(cuda, &request->params, why));
    const fa_status status = try_until_valid(cuda, self, kernel, request, exec, &taken, &gated, why);
    if (request->persist_kv)
        fa_cuda_persist_end(cuda);
    FA_TRY(status);
    ask_reasons(cuda, self);
    *sample = (fa_sample){
        .us = taken.us,
        .waited_us = taken.waited_us,
        .sm_mhz = mean_sm_mhz(self->page),
        .gated = gated,
        .other_processes = ask_others(cuda, self),
        .throttled =
            self->reasons & (FA_NVML_HW_SLOWDOWN | FA_NVML_SW_THERMAL | FA_NVML_HW_THERMAL | FA_NVML_HW_POWER_BRAKE),
        .power_capped = self->reasons & FA_NVML_SW_POWER_CAP,
    };
    return FA_PASS;
}
