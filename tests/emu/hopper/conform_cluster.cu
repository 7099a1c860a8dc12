/* Conformance of clusters: registers, distributed shared memory, the cluster's barrier, arrivals and copies at another
 * block, multicast. The words are those of a GPU. */
#include "cluster.cuh"

/* Words of the first cluster, 256 a block. */
__device__ __forceinline__ void put_of_block(const fa_params &p, int i, unsigned word)
{
    if (blockIdx.x < CLUSTER)
        static_cast<unsigned *>(p.o)[16 + 1024 * blockIdx.x + i] = word;
}

#define REGISTER(name)                                          \
    [] {                                                        \
        unsigned value_;                                        \
        asm volatile("mov.u32 %0, %%" name ";" : "=r"(value_)); \
        return value_;                                          \
    }()

__device__ void check_registers(const fa_params &p, unsigned s, int t)
{
    unsigned rank_of_mine, rank_of_other, is_shared, is_cluster;
    const unsigned mine_again = peer(s, mine), there = PEER(s);
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(rank_of_mine) : "r"(mine_again));
    asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(rank_of_other) : "r"(there));
    asm("{.reg .pred a, b; .reg .b64 g; cvta.shared::cluster.u64 g, %2; isspacep.shared::cta a, g; "
        "isspacep.shared::cluster b, g; selp.b32 %0, 1, 0, a; selp.b32 %1, 1, 0, b;}"
        : "=r"(is_shared), "=r"(is_cluster)
        : "l"((u64)there));
    EXPECT(rank_of_mine == mine && rank_of_other == other && is_shared == 0 && is_cluster == 1);
    const unsigned words[] = {REGISTER("cluster_ctaid.x"),  REGISTER("cluster_ctaid.y"), REGISTER("cluster_nctaid.x"),
                              REGISTER("cluster_nctaid.y"), REGISTER("clusterid.x"),     REGISTER("nclusterid.x"),
                              REGISTER("cluster_ctarank"),  REGISTER("cluster_nctarank")};
    for (int i = 0; i < 8 && t == 0; i++)
        put_of_block(p, i, words[i]);
}

__device__ void check_memory(const fa_params &p, unsigned s, unsigned char *s_b, int t)
{
    const cg::cluster_group cluster = cg::this_cluster();
    int *const words = reinterpret_cast<int *>(s_b);
    unsigned got, old;
    u64 place, pair;
    words[t] = 1000 * mine + 3 * t;
    cluster.sync();
    GET(got, PEER(s + 4 * (t ^ 7)));
    EXPECT(got == 1000 * other + 3 * (t ^ 7));
    put_of_block(p, 64 + t, got);
    asm("mapa.u64 %0, %1, %2;" : "=l"(place) : "l"(words + (t & ~1)), "r"(other));
    EXPECT(reinterpret_cast<int *>(place)[1] == (int)(1000 * other + 3 * (t | 1)));
    asm volatile("ld.shared::cluster.b64 %0, [%1];" : "=l"(pair) : "r"(PEER(s + 4 * (t & ~1))) : "memory");
    EXPECT((unsigned)(pair >> 32) == 1000 * other + 3 * (t | 1));
    cluster.sync();
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(PEER(s + 4 * t)), "r"(5) : "memory");
    EXPECT(old == 1000 * other + 3 * t);
    cluster.sync();
    EXPECT(words[t] == (int)(1000 * mine + 3 * t + 5));
    EXPECT(cluster.map_shared_rank(words, other)[t] == (int)(1000 * other + 3 * t + 5));
    cluster.sync();
}

/* A copy to the other block, and what it counts there. */
__device__ void check_copies(const fa_params &p, unsigned s, unsigned b, unsigned char *s_b, int t)
{
    PUT(s + 4 * t, 7 * t + mine);
    FENCE_ASYNC();
    __syncthreads();
    if (t == 0) {
        EXPECT_BYTES(b, 256 + 32);
        COPY_THERE(PEER(s + 1024), s, 256, PEER(b));
        COPY_THERE(PEER(s + 1024 + 256), s + 64, 32, PEER(b));
    }
    WAIT_ALL(b, 0);
    put_of_block(p, 128 + t, AT(256 + t));
    EXPECT(AT(256 + t) == (int)(7 * t + other));
    EXPECT(AT(320 + t % 8) == (int)(7 * (16 + t % 8) + other));
    CLUSTER_SYNC();
}

/* Each block loads a box for both; one of the boxes hangs over the end, and its full bytes are counted. */
__device__ void check_multicast(const fa_params &p, unsigned s, unsigned b, unsigned char *s_b, int t)
{
    const unsigned short *q_g = static_cast<const unsigned short *>(p.q);
    const unsigned short *box = reinterpret_cast<const unsigned short *>(s_b);
    if (t == 0) {
        EXPECT_BYTES(b, 2 * BOX_BYTES + 512);
        LOAD_TO_ALL(s + mine * BOX_BYTES, &p.k_map, b, mine == 0 ? 8 : 28, 3);
        if (mine == 1)
            COPY_TO_ALL(s + 2 * BOX_BYTES, p.q, 512, b, 3);
    }
    WAIT_ALL(b, 1);
    for (int i = t; i < 2 * BOX_ROWS * 64; i += THREADS) {
        const int row = i / 64 % BOX_ROWS, from = (i < BOX_ROWS * 64 ? 8 : 28) + row, column = i % 64;
        const int chunk = column / 8 ^ row;
        EXPECT(box[i / 64 * 64 + chunk * 8 + column % 8] == (from < 32 ? q_g[from * 64 + column] : 0));
    }
    EXPECT(box[2 * BOX_ROWS * 64 + t] == q_g[t]);
    put_of_block(p, 192 + t, AT(t) ^ AT(256 + t) ^ AT(512 + t));
    CLUSTER_SYNC();
}

/* Arrivals at the other block's barrier, one of which carries bytes. */
__device__ void check_arrivals(const fa_params &p, unsigned s, unsigned b, int t)
{
    unsigned value;
    PUT(PEER(s + 8192 + 4 * t), t * t + mine);
    if (t == 0)
        asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], 16;\n\t"
                     "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 16;" ::"r"(PEER(b + 8))
                     : "memory");
    else if (t == 1)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], 2;" ::"r"(PEER(b + 8)) : "memory");
    else if (t > 2)
        ARRIVE_THERE(PEER(b + 8));
    WAIT_ALL(b + 8, 0);
    GET(value, s + 8192 + 4 * (t | 3));
    EXPECT(value == (t | 3) * (t | 3) + other);
    put_of_block(p, 256 + t, value);
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    THEIR_PLACES;
    make_cluster_barriers(b, t, 1, THREADS);
    check_registers(p, s, t);
    check_memory(p, s, s_b, t);
    check_copies(p, s, b, s_b, t);
    check_multicast(p, s, b, s_b, t);
    check_arrivals(p, s, b, t);
    CLUSTER_SYNC();
}
