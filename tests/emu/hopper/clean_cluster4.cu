/* Kernels in clusters of four that are right: several copies are under way, one lane polls for its warp. */
#define CLUSTER 4
#include "cluster.cuh"

enum { PIECES = 4, PIECE_BYTES = 64, SENT = 1024 };

/* From the block's first bytes to those from SENT on in block `to`. */
__device__ __forceinline__ void send_pieces(unsigned s, unsigned b, unsigned to, unsigned at)
{
    for (int i = 0; i < PIECES; i++)
        COPY_THERE(peer(s + SENT + at + i * PIECE_BYTES, to), s + i * PIECE_BYTES, PIECE_BYTES, peer(b, to));
}

__device__ __forceinline__ void begin(unsigned char *s_b, unsigned b, int t, unsigned bytes)
{
    make_cluster_barriers(b, t, 1, 1);
    reinterpret_cast<int *>(s_b)[t] = 100 * mine + t;
    FENCE_ASYNC();
    if (t == 0)
        EXPECT_BYTES(b, bytes);
    CLUSTER_SYNC();
}

MEETING_CASE(around_the_ring)
{
    begin(s_b, b, t, PIECES * PIECE_BYTES);
    if (t == 33)
        send_pieces(s, b, (mine + 1) % CLUSTER, 0);
    WAIT_ALL(b, 0);
    EXPECT(AT(SENT / 4 + t) == 100 * (int)((mine + 3) % CLUSTER) + t);
}

MEETING_CASE(one_block_collects)
{
    begin(s_b, b, t, mine == 2 ? CLUSTER * PIECES * PIECE_BYTES : 0);
    if (t == 0)
        send_pieces(s, b, 2, mine * PIECES * PIECE_BYTES);
    if (mine == 2) {
        WAIT_ALL(b, 0);
        for (int rank = 0; rank < CLUSTER; rank++)
            EXPECT(AT(SENT / 4 + rank * 64 + t) == 100 * rank + t);
    }
}

MEETING_CASE(one_lane_polls_for_its_warp)
{
    begin(s_b, b, t, PIECES * PIECE_BYTES);
    if (t == 32)
        send_pieces(s, b, mine ^ 3, 0);
    if (t % 32 == 0)
        for (unsigned done = 0; !done;)
            TEST(done, b, 0);
    __syncwarp();
    WAIT_ALL(b, 0); /* the other lanes acquire the bytes */
    EXPECT(AT(SENT / 4 + t) == 100 * (int)(mine ^ 3) + t);
}

MEETING_CASE(one_lane_polls_another_block)
{
    unsigned seen = 0;
    reinterpret_cast<int *>(s_b)[t] = 0;
    CLUSTER_SYNC();
    if (t == 0 && mine > 0)
        while (!seen)
            asm volatile("ld.acquire.cluster.shared::cluster.u32 %0, [%1];"
                         : "=r"(seen)
                         : "r"(peer(s, mine - 1))
                         : "memory");
    __syncwarp();
    if (t == 0)
        asm volatile("st.release.cluster.shared::cluster.u32 [%0], %1;" ::"r"(peer(s, mine)), "r"(1) : "memory");
}

HOPPER_KERNEL
