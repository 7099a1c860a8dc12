/* Keeps a GPU busy for some seconds, as another user's process would: nvcc -o hog tests/faults/hog.cu; ./hog 20 */
#include <cstdio>
#include <cstdlib>
#include <ctime>

__global__ void spin(long long cycles)
{
    const long long end = clock64() + cycles;
    while (clock64() < end) {
    }
}

int main(int argc, char **argv)
{
    const time_t end = time(nullptr) + (argc > 1 ? atoi(argv[1]) : 10);
    while (time(nullptr) < end) {
        for (int i = 0; i < 20; i++)
            spin<<<1024, 256>>>(300000);
        if (cudaDeviceSynchronize() != cudaSuccess)
            return 1;
    }
    return 0;
}
