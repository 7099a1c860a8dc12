/* Starts the kernel beside it for FlashInfer-Bench (tvm-ffi): tensors to fa_params, one launch on the current stream.
 * Kernels that ask for tensor maps or clusters are refused. */
#include "kernel.cuh"

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

static void check(cudaError_t status)
{
    if (status != cudaSuccess)
        TVM_FFI_THROW(RuntimeError) << cudaGetErrorString(status);
}

/* Zeroed when it is allocated; a kernel leaves its counters zero again. */
static void *workspace_of(fa_i64 bytes)
{
    static void *workspace;
    static fa_i64 held;
    if (bytes > held) {
        check(cudaFree(workspace));
        check(cudaMalloc(&workspace, bytes));
        check(cudaMemset(workspace, 0, bytes));
        held = bytes;
    }
    return workspace;
}

static void run(tvm::ffi::TensorView q, tvm::ffi::TensorView k, tvm::ffi::TensorView v, tvm::ffi::TensorView o)
{
    fa_kernel_info info;
    int sm_count;
    check(cudaMemcpyFromSymbol(&info, fa_info, sizeof info));
    check(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, q.device().device_id));
    if (info.tma_cols != 0 || info.cluster > 1)
        TVM_FFI_THROW(ValueError) << "this kernel needs tensor maps or clusters";
    fa_params p = {q.data_ptr(), k.data_ptr(), v.data_ptr(), o.data_ptr(), q.stride(0), q.stride(1),
                   q.stride(2),  k.stride(0),  k.stride(1),  k.stride(2),  v.stride(0), v.stride(1),
                   v.stride(2),  o.stride(0),  o.stride(1),  o.stride(2)};
    p.batch = q.size(0), p.heads = q.size(1), p.kv_heads = k.size(1), p.seq_q = q.size(2), p.seq_kv = k.size(2);
    p.dim = FA_DIM, p.causal = FA_CAUSAL, p.scale = FA_EXPORT_SCALE, p.sm_count = sm_count;
    const fa_i32 heads = info.pack_heads ? p.kv_heads : p.heads;
    p.tiles_m = (p.seq_q * (p.heads / heads) + info.m - 1) / info.m;
    p.tiles = p.tiles_m * heads * p.batch;
    const fa_i64 blocks = (fa_i64)p.tiles * (info.splits > 1 ? info.splits : 1);
    const fa_i64 resident = (fa_i64)sm_count * (info.blocks_per_sm > 0 ? info.blocks_per_sm : 1);
    const fa_i64 grid = info.grid == FA_GRID_PERSISTENT && resident < blocks ? resident : blocks;
    p.workspace_bytes = info.workspace_bytes_per_block * blocks + info.workspace_bytes_fixed;
    p.workspace = workspace_of(p.workspace_bytes);
    check(cudaFuncSetAttribute(fa_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, info.smem_dynamic_bytes));
    const auto stream = (cudaStream_t)TVMFFIEnvGetStream(q.device().device_type, q.device().device_id);
    fa_kernel<<<(unsigned)grid, info.threads, info.smem_dynamic_bytes, stream>>>(p);
    check(cudaGetLastError());
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
