/* The lock on a GPU: any number of processes check at once, one alone measures time. */
#include "device/gpu_lock.h"
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Another process that takes the lock on the GPU `bus`, says so on one pipe, and keeps it until a byte comes on the
 * other. */
typedef struct other {
    pid_t pid;
    int said, until;
} other;

static other start(const char *bus, fa_gpu_lock_mode mode)
{
    int said[2], until[2];
    assert_int_equal(pipe(said), 0);
    assert_int_equal(pipe(until), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(said[0]);
        close(until[1]);
        fa_gpu_lock(bus, mode);
        char byte = 'x';
        const bool told = write(said[1], &byte, 1) == 1;
        const ssize_t ended = read(until[0], &byte, 1);
        fa_gpu_lock(bus, FA_GPU_LOCK_NONE);
        _exit(told && ended == 1 ? 0 : 1);
    }
    close(said[1]);
    close(until[0]);
    return (other){pid, said[0], until[1]};
}

static bool has_the_lock(const other *o, int within_ms)
{
    struct pollfd fd = {.fd = o->said, .events = POLLIN};
    return poll(&fd, 1, within_ms) == 1;
}

static void let_go(const other *o) { assert_int_equal(write(o->until, "x", 1), 1); }

static void wait_for_end(other *o)
{
    int how = 0;
    waitpid(o->pid, &how, 0);
    close(o->said);
    close(o->until);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

static void end(other *o)
{
    let_go(o);
    wait_for_end(o);
}

/* For a process that has nothing of it. */
static bool is_taken(const char *bus)
{
    int how = 0;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(fa_gpu_lock_is_taken(bus));
    waitpid(pid, &how, 0);
    return WEXITSTATUS(how) == 1;
}

enum { AT_LAST_MS = 120000, A_WHILE_MS = 200 };

static const char *bus_of_this_test(const char *more)
{
    static char bus[32];
    snprintf(bus, sizeof bus, "test-%d%s", (int)getpid(), more);
    return bus;
}

static void forget(const char *bus)
{
    char path[64];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/tmp/fa_bench-%s.%s", bus, i == 0 ? "lock" : "turn");
        unlink(path);
    }
}

TEST(one_times_alone)
{
    const char *bus = bus_of_this_test("");
    other timing = start(bus, FA_GPU_LOCK_EXCLUSIVE);
    assert_true(has_the_lock(&timing, AT_LAST_MS));
    assert_true(is_taken(bus) && !is_taken(""));
    other second = start(bus, FA_GPU_LOCK_EXCLUSIVE), check = start(bus, FA_GPU_LOCK_SHARED);
    assert_false(has_the_lock(&second, A_WHILE_MS));
    assert_false(has_the_lock(&check, A_WHILE_MS));
    let_go(&check); /* whichever of the two is first, it does not keep the other waiting */
    let_go(&second);
    end(&timing);
    assert_true(has_the_lock(&second, AT_LAST_MS));
    assert_true(has_the_lock(&check, AT_LAST_MS));
    wait_for_end(&second);
    wait_for_end(&check);
    forget(bus);
}

TEST(any_number_check_at_once)
{
    const char *bus = bus_of_this_test("");
    other a = start(bus, FA_GPU_LOCK_SHARED), b = start(bus, FA_GPU_LOCK_SHARED);
    assert_true(has_the_lock(&a, AT_LAST_MS));
    assert_true(has_the_lock(&b, AT_LAST_MS));
    assert_false(is_taken(bus));
    other timing = start(bus, FA_GPU_LOCK_EXCLUSIVE);
    assert_false(has_the_lock(&timing, 5 * A_WHILE_MS));
    assert_true(is_taken(bus)); /* it would be passed */
    other late = start(bus, FA_GPU_LOCK_SHARED);
    assert_false(has_the_lock(&late, A_WHILE_MS)); /* it does not pass the one that waits */
    end(&a);
    end(&b);
    assert_true(has_the_lock(&timing, AT_LAST_MS));
    end(&timing);
    assert_true(has_the_lock(&late, AT_LAST_MS));
    end(&late);
    forget(bus);
}

/* As a gate, the lock of the one keeps whoever wants the other waiting. */
TEST(another_gpu_is_another_lock)
{
    char first[32], gate[64];
    snprintf(first, sizeof first, "%s", bus_of_this_test("a"));
    const char *second = bus_of_this_test("b");
    other a = start(first, FA_GPU_LOCK_EXCLUSIVE), b = start(second, FA_GPU_LOCK_EXCLUSIVE);
    assert_true(has_the_lock(&a, AT_LAST_MS));
    assert_true(has_the_lock(&b, AT_LAST_MS));
    end(&b);
    snprintf(gate, sizeof gate, "/tmp/fa_bench-%s.lock", first);
    setenv("FA_GPU_GATE", gate, 1);
    other gated = start(second, FA_GPU_LOCK_SHARED);
    assert_false(has_the_lock(&gated, A_WHILE_MS));
    assert_true(is_taken(second));
    end(&a);
    assert_true(has_the_lock(&gated, AT_LAST_MS));
    assert_false(is_taken(second));
    end(&gated);
    unsetenv("FA_GPU_GATE");
    forget(first);
    forget(second);
}

TEST(a_killed_process_keeps_nothing)
{
    const char *bus = bus_of_this_test("");
    other killed = start(bus, FA_GPU_LOCK_EXCLUSIVE);
    assert_true(has_the_lock(&killed, AT_LAST_MS));
    other next = start(bus, FA_GPU_LOCK_EXCLUSIVE);
    kill(killed.pid, SIGKILL);
    waitpid(killed.pid, NULL, 0);
    close(killed.said);
    close(killed.until);
    assert_true(has_the_lock(&next, AT_LAST_MS));
    end(&next);
    forget(bus);
}
