#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

double fa_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void fa_rest(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds};
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static int threads; /* 0: not told */

int fa_threads(void)
{
    cpu_set_t cores;
    if (threads > 0)
        return threads;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

void fa_use_threads(int count)
{
    if (count == fa_threads())
        return;
    threads = count;
#ifdef _OPENMP
    if (getenv("OMP_NUM_THREADS") == NULL)
        omp_set_num_threads(count);
#endif
}

static void need_limits(void)
{
    const struct {
        int resource;
        rlim_t least;
        const char *what;
    } limits[] = {{RLIMIT_STACK, 1 << 20, "bytes of stack (ulimit -s 1024)"},
                  {RLIMIT_NOFILE, 64, "open files (ulimit -n 64)"}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;
        if (getrlimit(limits[i].resource, &limit) != 0 || limit.rlim_cur >= limits[i].least)
            continue;
        fprintf(stderr, "fa_bench: not_run: needs %llu %s, and %llu are allowed\n", (unsigned long long)limits[i].least,
                limits[i].what, (unsigned long long)limit.rlim_cur);
        exit(4);
    }
}

void fa_process_begin(void)
{
    need_limits();
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) < 0 && open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return;
}

/* `make install` puts the binary into PREFIX/bin and the folders into PREFIX/share/fa_bench. */
static void find_installed(char home[PATH_MAX])
{
    char kernels[PATH_MAX + 32];
    snprintf(kernels, sizeof kernels, "%s/kernels", home);
    if (access(kernels, R_OK) == 0)
        return;
    snprintf(kernels, sizeof kernels, "%s/../share/fa_bench/kernels", home);
    char *real = realpath(kernels, NULL);
    if (real != NULL && strlen(real) < PATH_MAX) {
        *strrchr(real, '/') = '\0';
        strcpy(home, real);
    }
    free(real);
}

const char *fa_home(void)
{
    static char home[PATH_MAX];
    if (home[0] == '\0') {
        const char *given = getenv("FA_HOME");
        if (given != NULL && given[0] != '\0') {
            snprintf(home, sizeof home, "%s", given);
        } else {
            const ssize_t length = readlink("/proc/self/exe", home, sizeof home - 1);
            FA_ASSERT(length > 0);
            home[length] = '\0';
            *strrchr(home, '/') = '\0';
            find_installed(home);
        }
    }
    return home;
}

static char *read_pipe(int from)
{
    size_t size = 0, capacity = 4096;
    char *text = fa_alloc(capacity);
    for (;;) {
        const ssize_t got = read(from, text + size, capacity - size - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        size += (size_t)got;
        if (capacity - size < 2048) {
            capacity *= 2;
            text = fa_resize(text, capacity);
        }
    }
    text[size] = '\0';
    return text;
}

static void need_process(int error)
{
    if (error != EAGAIN && error != ENOMEM)
        return;
    fprintf(stderr, "fa_bench: error: no process can be started: %s (ulimit -u)\n", strerror(error));
    exit(6);
}

pid_t fa_fork(void)
{
    const pid_t child = fork();
    need_process(child < 0 ? errno : 0);
    return child;
}

int fa_run(const char *const argv[], char **output)
{
    int ends[2];
    posix_spawn_file_actions_t actions;
    pid_t child;
    FA_ASSERT(pipe2(ends, O_CLOEXEC) == 0, "%s", strerror(errno));
    FA_ASSERT(posix_spawn_file_actions_init(&actions) == 0);
    for (int file = STDOUT_FILENO; file <= STDERR_FILENO; file++)
        FA_ASSERT(posix_spawn_file_actions_adddup2(&actions, ends[1], file) == 0);
    setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 0); /* without one, gcc does not find its parts */
    /* Not fork: it fails where the tensors of this process would not fit in memory twice. */
    const int error = posix_spawnp(&child, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    need_process(error);
    close(ends[1]);
    char *text = read_pipe(ends[0]);
    close(ends[0]);
    int how = 127 << 8;
    while (error == 0 && waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    if (output != NULL)
        *output = text;
    else
        free(text);
    const bool started = WIFEXITED(how) && WEXITSTATUS(how) != 127;
    return started ? WEXITSTATUS(how) : -1;
}
