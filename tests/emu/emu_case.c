/* Runs one conformance or control kernel in a child process, on the emulator or on a GPU, and prints one line:
 *     emu_case FILE.cu [--device emu|cuda] [--schedule N] [--sanitize N] [--seed N] [--case N] [--define NAME]
 *              [--out FILE]
 * "pass", "wrong N LINE" (the kernel counted N failures, one at LINE), or "<status> <reason>". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "compile/cuda.h"
#include "compile/emu.h"
#include "cuda/device.h"
#include "device/device.h"
#include "emu/core/preload.h"
#include "emu/device.h"

/* Tensor maps, where a kernel asks for them: k_map of q, v_map of o from byte MAP_OFFSET on, rows of MAP_COLS. */
enum { HALVES = 2048, WORDS = 8192, BLOCKS = 3, CLUSTERS = 2, MAP_OFFSET = 4096, MAP_COLS = 64 };

typedef struct result {
    fa_status status;
    fa_reason why;
    uint32_t o[WORDS];
} result;

typedef struct arguments {
    const char *file, *out, *define;
    bool cuda;
    int schedule, sanitize, seed, number;
} arguments;

static fa_status run(const arguments *a, result *r)
{
    fa_spec spec = {.knobs = {.m = 1, .n = 1, .warps = 1, .vec = 1, .stages = 1, .splits = 1}, .dim = 16};
    fa_device device;
    fa_module *module = fa_alloc(sizeof *module);
    fa_kernel *kernel = NULL;
    fa_ptr q, o;
    uint16_t halves[HALVES];
    snprintf(spec.name, sizeof spec.name, "case");
    snprintf(spec.source, sizeof spec.source, "%s", a->file);
    if (a->define != NULL)
        spec.define = (fa_list){.count = 1, .at = {a->define}};
    if (a->cuda)
        FA_TRY(fa_device_open_cuda(0, &device, &r->why));
    else
        FA_TRY(fa_device_open_emu((fa_schedule)a->schedule, (uint64_t)a->seed, "sm_90", &device, &r->why));
    snprintf(spec.arch, sizeof spec.arch, "%.14s%s", device.info.arch,
             a->cuda && atoi(device.info.arch + 3) >= 90 ? "a" : "");
    if (a->cuda)
        FA_TRY(fa_compile_cuda(&spec, module, &r->why));
    else
        FA_TRY(fa_compile_emu(&spec, (fa_sanitize)a->sanitize, module, &r->why));
    FA_TRY(device.load(&device, &spec, module, NULL, &kernel, &r->why));
    for (int i = 0; i < HALVES; i++)
        halves[i] = fa_float_to_half((float)(i * 37 % 101 - 50) / 8);
    FA_TRY(device.alloc(&device, sizeof halves, &q, &r->why));
    FA_TRY(device.alloc(&device, sizeof r->o, &o, &r->why));
    FA_TRY(device.copy_in(&device, q, halves, sizeof halves, &r->why));
    FA_TRY(device.fill16(&device, o, 0, sizeof r->o / 2, &r->why));
    const uint32_t cluster = module->info.cluster > 1 ? (uint32_t)module->info.cluster : 1;
    const fa_launch launch = {.grid = cluster > 1 ? CLUSTERS * cluster : BLOCKS,
                              .threads = (uint32_t)module->info.threads,
                              .smem_dynamic_bytes = (uint32_t)module->info.smem_dynamic_bytes,
                              .cluster = cluster};
    fa_params params = {.batch = 1, .kv_heads = 1, .seq_q = a->number, .window_left = -1, .window_right = -1};
    params.q = params.k = (void *)(uintptr_t)q;
    params.v = (void *)(uintptr_t)(o + MAP_OFFSET);
    params.o = (void *)(uintptr_t)o;
    params.dim = params.dim_v = MAP_COLS;
    params.seq_kv = params.total_q = params.total_kv = HALVES / MAP_COLS;
    params.k_stride_s = params.v_stride_s = MAP_COLS;
    params.k_stride_h = params.k_stride_b = params.v_stride_h = params.v_stride_b = HALVES;
    FA_TRY(device.launch(&device, kernel, &launch, &params, &r->why));
    FA_TRY(fa_findings_verdict(device.found, &r->why));
    return device.copy_out(&device, r->o, o, sizeof r->o, &r->why);
}

static int parse(int argc, char **argv, arguments *a)
{
    *a = (arguments){.file = argc > 1 ? argv[1] : NULL, .seed = 42};
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--device") == 0)
            a->cuda = strcmp(argv[i + 1], "cuda") == 0;
        else if (strcmp(argv[i], "--schedule") == 0)
            a->schedule = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--sanitize") == 0)
            a->sanitize = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            a->seed = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--case") == 0)
            a->number = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--out") == 0)
            a->out = argv[i + 1];
        else if (strcmp(argv[i], "--define") == 0)
            a->define = argv[i + 1];
        else
            return 0;
    }
    return a->file != NULL && argc % 2 == 0;
}

static void say(const arguments *a, const result *r)
{
    fa_reason ignored;
    if (r->status != FA_PASS)
        printf("%s %s\n", fa_status_name(r->status), r->why.text);
    else if (r->o[0] != 0)
        printf("wrong %u %u\n", r->o[0], r->o[1]);
    else
        printf("pass\n");
    if (a->out != NULL && r->status == FA_PASS)
        fa_write_file(a->out, r->o, sizeof r->o, &ignored);
}

static bool found(int child, fa_reason *why)
{
    fa_finding one = {.text = ""};
    char *report = fa_emu_sanitizer_report(child, &one);
    fa_refuse(why, FA_WRONG, "%s", one.text);
    free(report);
    return report != NULL;
}

int main(int argc, char **argv)
{
    arguments a;
    if (!parse(argc, argv, &a))
        return 2;
    fa_emu_preload((fa_sanitize)a.sanitize, argv);
    result *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    r->status = FA_ERROR;
    const pid_t child = fork();
    if (child == 0) {
        r->status = run(&a, r);
        _exit(0);
    }
    int how = 0;
    waitpid(child, &how, 0);
    if (WIFSIGNALED(how))
        r->status = fa_refuse(&r->why, FA_ERROR, "died of signal %d", WTERMSIG(how));
    else if (WEXITSTATUS(how) == FA_EMU_SANITIZER_EXIT)
        r->status = found((int)child, &r->why) ? FA_WRONG : FA_ERROR;
    else if (WEXITSTATUS(how) != 0)
        r->status = fa_refuse(&r->why, FA_ERROR, "ended with code %d", WEXITSTATUS(how));
    say(&a, r);
    return r->status == FA_PASS && r->o[0] == 0 ? 0 : 1;
}
