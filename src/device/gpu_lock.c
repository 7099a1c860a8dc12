#include "device/gpu_lock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/process.h"

static double waited_s;
static int lock = -1, turn = -1, gate = -1;

double fa_gpu_lock_waited_s(void) { return waited_s; }

static int open_lock(const char *bus_id, const char *what)
{
    char *path = fa_format("/tmp/fa_bench-%s.%s", bus_id, what);
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file >= 0)
        fchmod(file, 0666); /* whatever the umask: other users share the lock */
    free(path);
    return file;
}

static bool open_locks(const char *bus_id)
{
    if (bus_id[0] == '\0')
        return false;
    lock = lock < 0 ? open_lock(bus_id, "lock") : lock;
    turn = turn < 0 ? open_lock(bus_id, "turn") : turn;
    gate = gate < 0 && getenv("FA_GPU_GATE") ? open(getenv("FA_GPU_GATE"), O_RDONLY | O_CLOEXEC) : gate;
    return lock >= 0;
}

/* Whoever waits for the lock holds the turn: those that share the GPU do not pass one that wants it alone. What is held
 * is given back before, since the one who has the turn may wait for it. */
void fa_gpu_lock(const char *bus_id, fa_gpu_lock_mode mode)
{
    static fa_gpu_lock_mode held = FA_GPU_LOCK_NONE;
    if (mode == held || !open_locks(bus_id))
        return;
    held = mode;
    const double asked_s = fa_now_s();
    const int operation = mode == FA_GPU_LOCK_EXCLUSIVE ? LOCK_EX : LOCK_SH;
    flock(lock, LOCK_UN);
    if (mode == FA_GPU_LOCK_NONE)
        return;
    flock(gate, LOCK_SH);
    flock(gate, LOCK_UN);
    flock(turn, operation);
    flock(lock, operation);
    flock(turn, LOCK_UN);
    waited_s += fa_now_s() - asked_s;
}

bool fa_gpu_gate_is_closed(const char *bus_id)
{
    if (!open_locks(bus_id) || gate < 0)
        return false;
    const bool closed = flock(gate, LOCK_SH | LOCK_NB) != 0;
    flock(gate, LOCK_UN);
    return closed;
}

bool fa_gpu_lock_is_taken(const char *bus_id)
{
    fa_gpu_lock(bus_id, FA_GPU_LOCK_NONE);
    if (!open_locks(bus_id) || turn < 0)
        return false;
    const bool taken =
        fa_gpu_gate_is_closed(bus_id) || flock(turn, LOCK_SH | LOCK_NB) != 0 || flock(lock, LOCK_SH | LOCK_NB) != 0;
    flock(lock, LOCK_UN);
    flock(turn, LOCK_UN);
    return taken;
}
