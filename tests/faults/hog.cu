/* Keeps a GPU busy for some seconds, as another user's process would: nvcc -o hog tests/faults/hog.cu; ./hog 20
 * With a second number it takes all of its memory but so many MiB instead, and sleeps: ./hog 20 64
 * Prints a line once the GPU is busy or its memory taken. */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <unistd.h>

static int take_memory(int seconds, size_t leave)
{
    size_t free_bytes = 0, total = 0;
    void *taken;
    for (size_t step = size_t(1) << 32; step >= size_t(1) << 20; step /= 2)
        while (cudaMemGetInfo(&free_bytes, &total) == cudaSuccess && free_bytes >= leave + step &&
               cudaMalloc(&taken, step) == cudaSuccess) {
        }
    printf("%zu of %zu bytes left\n", free_bytes, total);
    fflush(stdout);
    sleep(seconds);
    return 0;
}

__global__ void spin(long long cycles)
{
    const long long end = clock64() + cycles;
    while (clock64() < end) {
    }
}

int main(int argc, char **argv)
{
    const int seconds = argc > 1 ? atoi(argv[1]) : 10;
    if (argc > 2)
        return take_memory(seconds, size_t(atoi(argv[2])) << 20);
    const time_t end = time(nullptr) + seconds;
    bool said = false;
    while (time(nullptr) < end) {
        for (int i = 0; i < 20; i++)
            spin<<<1024, 256>>>(300000);
        if (cudaDeviceSynchronize() != cudaSuccess)
            return 1;
        if (!said) {
            puts("busy");
            fflush(stdout);
            said = true;
        }
    }
    return 0;
}
