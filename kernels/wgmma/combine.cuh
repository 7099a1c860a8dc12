/* How wgmma combines the splits of a query tile, in the same launch. Every warp writes its part, the outputs of its 16
 * rows as they lie in registers, to the workspace. The last split to arrive reads them all, in the order of the splits,
 * so that repeats are equal to the last bit. Warps do not wait for each other.
 * Workspace: 16 bytes of the scheduler, a counter per warp and unit of work, a part per warp and unit of work. */
#ifndef FA_WGMMA_COMBINE_CUH
#define FA_WGMMA_COMBINE_CUH

#include "shared/common.cuh"
#include "wgmma/parts.cuh"

constexpr int PART_REGS = FA_DIM_V / 2; /* of a thread; the columns of O past dim_v and the sums are left out */
constexpr int PART_FLOATS = 32 * (PART_REGS + 4);
constexpr int UNIT_BYTES = (4 + PART_FLOATS * 4) * FA_WARPS; /* of the workspace, per unit of work */

/* A thread's two rows: the references of the exponents, and the sums of the exponentials. */
struct row_sums {
    float ref[2], sum[2];
};

#if FA_SPLITS > 1
/* Addresses of a warp's parts; a lane's 16 bytes are neighbours of the next lane's. */
struct warp_parts {
    int *counter_g;
    float4 *lane_g; /* this lane's, of split 0 */
    fa_i64 stride;  /* to the next split's, in float4 */
};

/* unit: of the query tile, of [0, tiles). */
__device__ __forceinline__ warp_parts parts_of_warp(const fa_params &p, int unit, int warp, int lane)
{
    char *workspace_g = static_cast<char *>(p.workspace) + 16;
    warp_parts parts;
    parts.counter_g = reinterpret_cast<int *>(workspace_g) + unit * FA_WARPS + warp;
    workspace_g += static_cast<fa_i64>(p.tiles) * FA_SPLITS * FA_WARPS * 4;
    parts.lane_g = reinterpret_cast<float4 *>(workspace_g) +
                   (static_cast<fa_i64>(unit) * FA_WARPS + warp) * (PART_FLOATS / 4) + lane;
    parts.stride = static_cast<fa_i64>(p.tiles) * FA_WARPS * (PART_FLOATS / 4);
    return parts;
}

/* The same where the parts of a tile are those of neighbouring blocks. block: the first. */
__device__ __forceinline__ warp_parts parts_of_blocks(const fa_params &p, int block, int warp, int lane)
{
    warp_parts parts = parts_of_warp(p, block, warp, lane);
    parts.stride = FA_WARPS * (PART_FLOATS / 4);
    return parts;
}

/* The reference and the sum of this lane's row, of a part with one row of a thread: after the columns, by row. */
__device__ __forceinline__ float2 *sums_of_row(const warp_parts &parts, int split, int lane)
{
    return reinterpret_cast<float2 *>(parts.lane_g - lane + split * parts.stride + 4 * PART_REGS) + lane / 4;
}

/* The writes of the lanes that met before it come before it, what they read after it after the others' additions. */
__device__ __forceinline__ int add_in_order(int *to_g, int value)
{
    int before;
    asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], %2;" : "=r"(before) : "l"(to_g), "r"(value) : "memory");
    return before;
}

/* Writes this split's part, o_r and rows, and counts it. True for the last split of the query tile to arrive. ROWS: how
 * many of a thread's two rows. */
template <int ROWS = 2, class COUNT = known<FA_SPLITS>>
__device__ __forceinline__ bool write_part(const warp_parts &parts, const float (&o_r)[O_REGS], const row_sums &rows,
                                           int split, int lane, COUNT splits = COUNT())
{
    float4 *to_g = parts.lane_g + split * parts.stride;
#pragma unroll
    for (int i = 0; i < PART_REGS * ROWS / 8; ++i) {
        const int x = 8 / ROWS * i, z = x + 4 / ROWS;
        to_g[32 * i] = make_float4(o_r[x], o_r[x + 1], o_r[z], o_r[z + 1]);
    }
    if (ROWS == 2)
        to_g[8 * PART_REGS] = make_float4(rows.ref[0], rows.ref[1], rows.sum[0], rows.sum[1]);
    else if (lane % 4 == 0)
        *sums_of_row(parts, split, lane) = make_float2(rows.ref[0], rows.sum[0]);
    __syncwarp(); /* the part before its arrival ... */
    int arrived = 0;
    if (lane == 0)
        arrived = add_in_order(parts.counter_g, 1);
    __syncwarp(); /* ... and the arrivals before the parts: a shuffle orders no memory */
    if (uniform_by_shuffle(arrived) != splits - 1)
        return false;
    if (lane == 0)
        *parts.counter_g = 0;
    return true;
}

/* Combines all parts into o_r and rows. AT_ONCE: parts that are read together, for latency; they take registers. */
template <int AT_ONCE = 1, class COUNT = known<FA_SPLITS>>
__device__ __forceinline__ void read_parts(const warp_parts &parts, float (&o_r)[O_REGS], row_sums &rows,
                                           COUNT splits = COUNT())
{
    row_sums all = {{NO_MAX, NO_MAX}, {0.0f, 0.0f}};
#pragma unroll 4
    for (int split = 0; split < splits; ++split) {
        const float4 part = parts.lane_g[split * parts.stride + 8 * PART_REGS];
        all.ref[0] = fmaxf(all.ref[0], part.x);
        all.ref[1] = fmaxf(all.ref[1], part.y);
    }
#pragma unroll
    for (int i = 0; i < PART_REGS; ++i)
        o_r[i] = 0.0f;
#pragma unroll AT_ONCE
    for (int split = 0; split < splits; ++split) {
        const float4 *from_g = parts.lane_g + split * parts.stride;
        const float4 sums = from_g[8 * PART_REGS];
        const float weight[2] = {exp2_approx(sums.x - all.ref[0]), exp2_approx(sums.y - all.ref[1])};
        all.sum[0] = fmaf(weight[0], sums.z, all.sum[0]);
        all.sum[1] = fmaf(weight[1], sums.w, all.sum[1]);
#pragma unroll
        for (int i = 0; i < PART_REGS / 4; ++i) {
            const float4 part = from_g[32 * i];
            o_r[4 * i] = fmaf(weight[0], part.x, o_r[4 * i]);
            o_r[4 * i + 1] = fmaf(weight[0], part.y, o_r[4 * i + 1]);
            o_r[4 * i + 2] = fmaf(weight[1], part.z, o_r[4 * i + 2]);
            o_r[4 * i + 3] = fmaf(weight[1], part.w, o_r[4 * i + 3]);
        }
    }
    rows = all;
}
#endif

#endif
