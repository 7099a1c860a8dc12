/* Starts the kernel that was included before it, once, on a stream: for the launchers of exported kernels. Kernels that
 * ask for tensor maps or clusters are refused. */
#include <cuda_runtime.h>

/* A tensor [batch, heads, seq, dim] of FP16; strides in elements, the last one is 1. */
struct fa_launch_tensor {
    void *data;
    fa_i64 sizes[4], strides[3];
};

/* Zeroed when it is allocated; a kernel leaves its counters zero again. */
static cudaError_t fa_launch_workspace(fa_i64 bytes, void **workspace)
{
    static void *kept;
    static fa_i64 held;
    cudaError_t status = cudaSuccess;
    if (bytes > held) {
        status = cudaFree(kept);
        kept = nullptr, held = 0;
        if (status == cudaSuccess)
            status = cudaMalloc(&kept, bytes);
        if (status == cudaSuccess)
            status = cudaMemset(kept, 0, bytes);
        held = status == cudaSuccess ? bytes : 0;
    }
    *workspace = kept;
    return status;
}

/* Null, or what is wrong. */
static const char *fa_launch(const fa_launch_tensor &q, const fa_launch_tensor &k, const fa_launch_tensor &v,
                             const fa_launch_tensor &o, int device, cudaStream_t stream)
{
    fa_kernel_info info;
    int sm_count = 0;
    cudaError_t status = cudaMemcpyFromSymbol(&info, fa_info, sizeof info);
    if (status == cudaSuccess)
        status = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
    if (status != cudaSuccess)
        return cudaGetErrorString(status);
    if (info.tma_cols != 0 || info.cluster > 1)
        return "this kernel needs tensor maps or clusters";
    if (q.sizes[3] != FA_DIM)
        return "compiled for another head dimension";
    fa_params p = {q.data,       k.data,       v.data,       o.data,       q.strides[0], q.strides[1],
                   q.strides[2], k.strides[0], k.strides[1], k.strides[2], v.strides[0], v.strides[1],
                   v.strides[2], o.strides[0], o.strides[1], o.strides[2]};
    p.batch = q.sizes[0], p.heads = q.sizes[1], p.kv_heads = k.sizes[1], p.seq_q = q.sizes[2], p.seq_kv = k.sizes[2];
    p.dim = FA_DIM, p.causal = FA_CAUSAL, p.scale = FA_EXPORT_SCALE, p.sm_count = sm_count;
    const fa_i32 heads = info.pack_heads ? p.kv_heads : p.heads;
    p.tiles_m = (p.seq_q * (p.heads / heads) + info.m - 1) / info.m;
    p.tiles = p.tiles_m * heads * p.batch;
    const fa_i64 blocks = (fa_i64)p.tiles * (info.splits > 1 ? info.splits : 1);
    const fa_i64 resident = (fa_i64)sm_count * (info.blocks_per_sm > 0 ? info.blocks_per_sm : 1);
    const fa_i64 grid = info.grid == FA_GRID_PERSISTENT && resident < blocks ? resident : blocks;
    p.workspace_bytes = info.workspace_bytes_per_block * blocks + info.workspace_bytes_fixed;
    status = fa_launch_workspace(p.workspace_bytes, &p.workspace);
    if (status == cudaSuccess)
        status = cudaFuncSetAttribute(fa_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, info.smem_dynamic_bytes);
    if (status != cudaSuccess)
        return cudaGetErrorString(status);
    fa_kernel<<<(unsigned)grid, info.threads, info.smem_dynamic_bytes, stream>>>(p);
    status = cudaGetLastError();
    return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
