#include "device/gpu_lock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/process.h"

static double waited_s;

double fa_gpu_lock_waited_s(void) { return waited_s; }

void fa_gpu_lock(const char *bus_id, fa_gpu_lock_mode mode)
{
    static int lock = -1;
    static const int operations[] = {
        [FA_GPU_LOCK_NONE] = LOCK_UN, [FA_GPU_LOCK_SHARED] = LOCK_SH, [FA_GPU_LOCK_EXCLUSIVE] = LOCK_EX};
    if (bus_id[0] == '\0')
        return;
    if (lock < 0) {
        char *path = fa_format("/tmp/fa_bench-%s.lock", bus_id);
        lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (lock >= 0)
            fchmod(lock, 0666); /* whatever the umask: other users share the lock */
        free(path);
    }
    const double asked_s = fa_now_s();
    if (lock >= 0)
        flock(lock, operations[mode]);
    waited_s += fa_now_s() - asked_s;
}
