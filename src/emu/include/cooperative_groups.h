/* Cooperative groups on the emulator's barriers and warp operations: blocks, tiles of up to 32 threads, coalesced
 * groups, clusters. A grid cannot be synchronised: the bench makes no cooperative launch. */
#pragma once

#include "fa_emu.h"

namespace cooperative_groups
{

static inline unsigned fa_emu_block_rank()
{
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
static inline unsigned fa_emu_block_size() { return blockDim.x * blockDim.y * blockDim.z; }

/* A value of any size moves in words of 4 bytes; the call that moves one word is `move`. */
template <typename fa_T, typename fa_F>
static inline fa_T fa_emu_by_words(const fa_T &value, fa_F move)
{
    unsigned words[(sizeof(fa_T) + 3) / 4] = {};
    memcpy(words, &value, sizeof value);
    for (unsigned &word : words)
        word = move(word);
    fa_T moved;
    memcpy((void *)&moved, words, sizeof moved);
    return moved;
}

/* Lanes of one warp, or the block (lanes 0). Every group is one of these. */
class thread_group
{
  protected:
    unsigned lanes_; /* 0: the block */
    unsigned below() const { return lanes_ & ((1u << fa_emu_now()->lane) - 1); }
    explicit thread_group(unsigned lanes) : lanes_(lanes) {}

  public:
    void sync(FA_EMU_HERE) const
    {
        if (lanes_ == 0)
            __syncthreads(FA_EMU_THERE);
        else
            __syncwarp(lanes_, FA_EMU_THERE);
    }
    unsigned long long size() const { return lanes_ == 0 ? fa_emu_block_size() : (unsigned)__popc(lanes_); }
    unsigned long long num_threads() const { return size(); }
    unsigned long long thread_rank() const { return lanes_ == 0 ? fa_emu_block_rank() : (unsigned)__popc(below()); }
    bool is_valid() const { return true; }
    unsigned fa_emu_mask() const { return lanes_; }
};

enum { FA_EMU_GROUP_BARRIER = 15 }; /* the named barrier behind barrier_arrive and barrier_wait */
class thread_block : public thread_group
{
  public:
    thread_block() : thread_group(0u) {}
    static void sync(FA_EMU_HERE) { __syncthreads(FA_EMU_THERE); }
    static unsigned size() { return fa_emu_block_size(); }
    static unsigned num_threads() { return fa_emu_block_size(); }
    static unsigned thread_rank() { return fa_emu_block_rank(); }
    typedef unsigned arrival_token;
    static arrival_token barrier_arrive(FA_EMU_HERE)
    {
        fa_emu_op op = fa_emu_op_make(FA_EMU_BARRIER, FA_EMU_BAR_NONE, "barrier_arrive", ~0u, FA_EMU_THERE);
        op.arg = FA_EMU_GROUP_BARRIER;
        op.width = (int)(2 * fa_emu_block_size()); /* each thread arrives, and comes to wait */
        fa_emu_now()->api->arrive(&op);
        return 0;
    }
    static void barrier_wait(arrival_token &&, FA_EMU_HERE)
    {
        fa_emu_barrier("barrier_wait", FA_EMU_BAR_NONE, FA_EMU_GROUP_BARRIER, (int)(2 * fa_emu_block_size()), 0,
                       FA_EMU_THERE);
    }
    static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
    static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
    static dim3 group_dim() { return {blockDim.x, blockDim.y, blockDim.z}; }
    static dim3 dim_threads() { return group_dim(); }
};
static inline thread_block this_thread_block() { return {}; }
/* What tiles of more than a warp would need. */
template <unsigned fa_Threads = 1024>
struct block_tile_memory {
    char unused[4];
};
template <unsigned fa_Threads>
static inline thread_block this_thread_block(block_tile_memory<fa_Threads> &)
{
    return {};
}

class grid_group
{
  public:
    unsigned long long size() const { return 1ull * gridDim.x * gridDim.y * gridDim.z * fa_emu_block_size(); }
    unsigned long long num_threads() const { return size(); }
    unsigned long long num_blocks() const { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
    unsigned long long block_rank() const
    {
        return blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
    }
    unsigned long long thread_rank() const { return block_rank() * fa_emu_block_size() + fa_emu_block_rank(); }
    dim3 group_dim() const { return {gridDim.x, gridDim.y, gridDim.z}; }
    dim3 dim_blocks() const { return group_dim(); }
    dim3 dim_threads() const { return {gridDim.x * blockDim.x, gridDim.y * blockDim.y, gridDim.z * blockDim.z}; }
    dim3 block_index() const { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
    dim3 thread_index() const
    {
        return {blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
                blockIdx.z * blockDim.z + threadIdx.z};
    }
    bool is_valid() const { return false; }
    void sync(FA_EMU_HERE) const
    {
        fa_emu_now()->api->fail("cooperative launch",
                                "a grid cannot wait for itself: no launch here is cooperative. Make two launches of it",
                                FA_EMU_THERE);
    }
};
static inline grid_group this_grid() { return {}; }

class cluster_group
{
  public:
    typedef unsigned arrival_token;
    static arrival_token barrier_arrive(FA_EMU_HERE)
    {
        __cluster_barrier_arrive(FA_EMU_THERE);
        return 0;
    }
    static void barrier_wait(FA_EMU_HERE) { __cluster_barrier_wait(FA_EMU_THERE); }
    static void barrier_wait(arrival_token &&, FA_EMU_HERE) { __cluster_barrier_wait(FA_EMU_THERE); }
    static void sync(FA_EMU_HERE)
    {
        __cluster_barrier_arrive(FA_EMU_THERE);
        __cluster_barrier_wait(FA_EMU_THERE);
    }
    static unsigned block_rank() { return __clusterRelativeBlockRank(); }
    static unsigned num_blocks() { return __clusterSizeInBlocks(); }
    static unsigned thread_rank() { return block_rank() * fa_emu_block_size() + fa_emu_block_rank(); }
    static unsigned num_threads() { return num_blocks() * fa_emu_block_size(); }
    static unsigned size() { return num_threads(); }
    static dim3 block_index() { return __clusterRelativeBlockIdx(); }
    static dim3 thread_index() { return {block_rank() * blockDim.x + threadIdx.x, threadIdx.y, threadIdx.z}; }
    static dim3 dim_blocks() { return __clusterDim(); }
    static dim3 dim_threads() { return {num_blocks() * blockDim.x, blockDim.y, blockDim.z}; }
    template <typename fa_T>
    static fa_T *map_shared_rank(fa_T *place, int rank, FA_EMU_HERE)
    {
        return (fa_T *)__cluster_map_shared_rank((const void *)place, (unsigned)rank, FA_EMU_THERE);
    }
    static unsigned query_shared_rank(const void *p) { return __cluster_query_shared_rank(p); }
};
static inline cluster_group this_cluster() { return {}; }

/* What tiles and coalesced groups have in common: ranks stand for lanes, in their order. */
class fa_emu_lanes : public thread_group
{
  protected:
    unsigned meta_rank_ = 0, meta_size_ = 1; /* which part of the parent this is, of how many */
    explicit fa_emu_lanes(unsigned lanes, unsigned meta_rank = 0, unsigned meta_size = 1)
        : thread_group(lanes), meta_rank_(meta_rank), meta_size_(meta_size)
    {
    }
    unsigned lane_of(unsigned rank) const
    {
        unsigned rest = lanes_;
        for (; rank > 0 && (rest & (rest - 1)); rank--)
            rest &= rest - 1;
        return (unsigned)__ffs((int)rest) - 1;
    }
    unsigned ranks_of(unsigned lanes) const
    {
        unsigned ranks = 0, rank = 0;
        for (unsigned rest = lanes_; rest; rest &= rest - 1, rank++)
            ranks |= (lanes & rest & -rest ? 1u : 0u) << rank;
        return ranks;
    }

  public:
    unsigned meta_group_rank() const { return meta_rank_; }
    unsigned meta_group_size() const { return meta_size_; }
    template <typename fa_T>
    fa_T shfl(const fa_T &value, int rank, FA_EMU_HERE) const
    {
        const int lane = (int)lane_of((unsigned)rank % (unsigned)size());
        return fa_emu_by_words(value, [&](unsigned w) { return __shfl_sync(lanes_, w, lane, 32, FA_EMU_THERE); });
    }
    template <typename fa_T>
    fa_T shfl_down(const fa_T &value, unsigned delta, FA_EMU_HERE) const
    {
        const unsigned rank = (unsigned)thread_rank(), from = rank + delta < size() ? rank + delta : rank;
        return shfl(value, (int)from, FA_EMU_THERE);
    }
    template <typename fa_T>
    fa_T shfl_up(const fa_T &value, unsigned delta, FA_EMU_HERE) const
    {
        const unsigned rank = (unsigned)thread_rank();
        return shfl(value, (int)(rank >= delta ? rank - delta : rank), FA_EMU_THERE);
    }
    int any(int p, FA_EMU_HERE) const { return __any_sync(lanes_, p, FA_EMU_THERE); }
    int all(int p, FA_EMU_HERE) const { return __all_sync(lanes_, p, FA_EMU_THERE); }
    unsigned ballot(int p, FA_EMU_HERE) const { return ranks_of(__ballot_sync(lanes_, p, FA_EMU_THERE)); }
    template <typename fa_T>
    unsigned match_any(fa_T value, FA_EMU_HERE) const
    {
        return ranks_of(__match_any_sync(lanes_, value, FA_EMU_THERE));
    }
    template <typename fa_T>
    unsigned match_all(fa_T value, int &same, FA_EMU_HERE) const
    {
        return ranks_of(__match_all_sync(lanes_, value, &same, FA_EMU_THERE));
    }
};

template <unsigned fa_N, typename fa_Parent = void>
class thread_block_tile : public fa_emu_lanes
{
    static_assert(fa_N >= 1 && fa_N <= 32 && (fa_N & (fa_N - 1)) == 0,
                  "the emulator has tiles of 1, 2, 4, 8, 16 and 32 threads");
    static unsigned own_lanes()
    {
        return (fa_N == 32 ? ~0u : (1u << fa_N % 32) - 1) << fa_emu_now()->lane / fa_N * fa_N;
    }

  public:
    thread_block_tile(unsigned meta_rank = fa_emu_block_rank() / fa_N,
                      unsigned meta_size = (fa_emu_block_size() + fa_N - 1) / fa_N)
        : fa_emu_lanes(own_lanes(), meta_rank, meta_size)
    {
    }
    template <typename fa_Other>
    thread_block_tile(const thread_block_tile<fa_N, fa_Other> &tile)
        : fa_emu_lanes(own_lanes(), tile.meta_group_rank(), tile.meta_group_size())
    {
    }
    static constexpr unsigned size() { return fa_N; }
    static constexpr unsigned num_threads() { return fa_N; }
    unsigned thread_rank() const { return fa_emu_now()->lane % fa_N; }
    template <typename fa_T>
    fa_T shfl_xor(const fa_T &value, unsigned mask, FA_EMU_HERE) const
    {
        return fa_emu_by_words(value,
                               [&](unsigned w) { return __shfl_xor_sync(lanes_, w, (int)mask, fa_N, FA_EMU_THERE); });
    }
};

class coalesced_group : public fa_emu_lanes
{
  public:
    explicit coalesced_group(unsigned lanes, unsigned meta_rank = 0, unsigned meta_size = 1)
        : fa_emu_lanes(lanes, meta_rank, meta_size)
    {
    }
    unsigned size() const { return (unsigned)__popc(lanes_); }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const { return (unsigned)__popc(below()); }
};
static inline coalesced_group coalesced_threads(FA_EMU_HERE) { return coalesced_group(__activemask(FA_EMU_THERE)); }

template <unsigned fa_N>
static inline thread_block_tile<fa_N, thread_block> tiled_partition(const thread_block &)
{
    return {};
}
template <unsigned fa_N, unsigned fa_M, typename fa_Parent>
static inline thread_block_tile<fa_N, thread_block_tile<fa_M, fa_Parent>> tiled_partition(
    const thread_block_tile<fa_M, fa_Parent> &)
{
    static_assert(fa_N <= fa_M, "a tile is no larger than what it is part of");
    return {fa_emu_now()->lane % fa_M / fa_N, fa_M / fa_N};
}
template <unsigned fa_N, typename fa_Parent>
static inline thread_block_tile<fa_N, fa_Parent> tiled_partition(const fa_Parent &)
{
    return {};
}
/* n members at a time, in the order of their ranks. */
static inline coalesced_group tiled_partition(const thread_group &group, unsigned n)
{
    const unsigned rank = (unsigned)group.thread_rank() / n, size = ((unsigned)group.size() + n - 1) / n;
    unsigned lanes = 0, at = 0;
    if (group.fa_emu_mask() == 0)
        return coalesced_group((n >= 32 ? ~0u : (1u << n) - 1) << fa_emu_now()->lane / n * n, rank, size);
    for (unsigned rest = group.fa_emu_mask(); rest; rest &= rest - 1, at++)
        lanes |= at / n == rank ? rest & -rest : 0;
    return coalesced_group(lanes, rank, size);
}
template <typename fa_G>
static inline coalesced_group binary_partition(const fa_G &group, bool side, FA_EMU_HERE)
{
    const unsigned all = group.fa_emu_mask(), yes = __ballot_sync(all, side, FA_EMU_THERE);
    return yes == all || yes == 0 ? coalesced_group(all) : coalesced_group(side ? yes : all & ~yes, side, 2);
}
template <typename fa_G, typename fa_T>
static inline coalesced_group labeled_partition(const fa_G &group, fa_T label, FA_EMU_HERE)
{
    const unsigned all = group.fa_emu_mask(), lanes = __match_any_sync(all, label, FA_EMU_THERE);
    const unsigned first = lanes & -lanes, own = 1u << fa_emu_now()->lane;
    const unsigned firsts = __ballot_sync(all, first == own, FA_EMU_THERE);
    return coalesced_group(lanes, (unsigned)__popc(firsts & (first - 1)), (unsigned)__popc(firsts));
}

template <typename fa_G>
static inline void sync(const fa_G &group, FA_EMU_HERE)
{
    group.sync(FA_EMU_THERE);
}
template <typename fa_G>
static inline unsigned thread_rank(const fa_G &group)
{
    return (unsigned)group.thread_rank();
}
template <typename fa_G>
static inline unsigned group_size(const fa_G &group)
{
    return (unsigned)group.size();
}
template <typename fa_G, typename fa_F>
static inline void invoke_one(const fa_G &group, fa_F f)
{
    if (group.thread_rank() == 0)
        f();
}
template <typename fa_G, typename fa_F>
static inline auto invoke_one_broadcast(const fa_G &group, fa_F f, FA_EMU_HERE)
{
    decltype(f()) value = {};
    if (group.thread_rank() == 0)
        value = f();
    return group.shfl(value, 0, FA_EMU_THERE);
}

} // namespace cooperative_groups
