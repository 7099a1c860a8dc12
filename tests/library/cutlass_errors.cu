/* What launches of a CUTLASS GEMM for Sm80 answer, a line a case: name, CUTLASS's status, what cudaGetLastError says
 * after it. Built and judged by tests/cutlass_gpu.sh; docs/cutlass.md explains. */
#include <cstdio>

#include <cutlass/gemm/device/gemm.h>

using half_type = cutlass::half_t;
using rows = cutlass::layout::RowMajor;
using columns = cutlass::layout::ColumnMajor;

template <int M, int N, int K, int STAGES>
using gemm_of =
    cutlass::gemm::device::Gemm<half_type, rows, half_type, columns, half_type, rows, float,
                                cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, cutlass::gemm::GemmShape<M, N, K>,
                                cutlass::gemm::GemmShape<64, 64, K>, cutlass::gemm::GemmShape<16, 8, 16>,
                                cutlass::epilogue::thread::LinearCombination<half_type, 8, float, float>,
                                cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, STAGES>;

enum { SIZE = 512 };

template <class GEMM>
static void try_gemm(const char *name, half_type *tensor)
{
    GEMM gemm;
    const cutlass::Status status = gemm({{SIZE, SIZE, SIZE},
                                         {tensor, SIZE},
                                         {tensor + SIZE * SIZE, SIZE},
                                         {tensor + 2 * SIZE * SIZE, SIZE},
                                         {tensor + 2 * SIZE * SIZE, SIZE},
                                         {1.0f, 0.0f}});
    const cudaError_t after = cudaGetLastError();
    printf("%s: %s: %s\n", name, cutlassGetStatusString(status), cudaGetErrorName(after));
    fflush(stdout);
    cudaDeviceSynchronize();
    cudaGetLastError();
}

__global__ void by_hand(int *out)
{
    extern __shared__ int room_s[];
    room_s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = room_s[threadIdx.x];
}

int main()
{
    half_type *tensor = nullptr;
    if (cudaMalloc(&tensor, 3 * SIZE * SIZE * sizeof *tensor) != cudaSuccess) {
        printf("no GPU\n");
        return 4;
    }
    cudaMemset(tensor, 0, 3 * SIZE * SIZE * sizeof *tensor);
    try_gemm<gemm_of<128, 128, 32, 3>>("48 KiB", tensor);
    try_gemm<gemm_of<128, 256, 64, 3>>("144 KiB", tensor);
    try_gemm<gemm_of<128, 256, 64, 5>>("240 KiB", tensor);
    by_hand<<<1, 32, 64 << 10>>>((int *)tensor);
    printf("64 KiB by hand: -: %s\n", cudaGetErrorName(cudaGetLastError()));
    by_hand<<<1, 4096>>>((int *)tensor); /* fails, and nobody asks */
    try_gemm<gemm_of<128, 128, 32, 3>>("48 KiB after an error that nobody asked for", tensor);
    return 0;
}
