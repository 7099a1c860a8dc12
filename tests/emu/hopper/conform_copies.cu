/* Conformance of barrier objects and bulk copies: swizzle, zero fill, what counts as bytes, stores. The words are
 * those of a GPU. k_map: 32 rows of 64 halves, q's numbers; v_map: of o from byte 4096 on. */
#include "hopper.cuh"

/* A box whose corner is at (column, row), outside of the tensor in part: its full bytes are counted. */
__device__ __forceinline__ void check_box(const fa_params &p, unsigned char *s_b, unsigned s, unsigned b, int t,
                                          int column, int row, int parity)
{
    const unsigned short *q_g = static_cast<const unsigned short *>(p.q);
    if (t == 0) {
        EXPECT_BYTES(b, BOX_BYTES);
        LOAD_AT(s, &p.k_map, b, column, row);
    }
    WAIT(b, parity);
    for (int i = t; i < BOX_ROWS * 64; i += THREADS) {
        const int r = row + i / 64, c = column + i % 64;
        const int want = r >= 0 && r < 32 && c >= 0 && c < 64 ? q_g[r * 64 + c] : 0;
        EXPECT(box_half(s_b, i / 64, i % 64) == want);
    }
    __syncthreads();
}

__device__ __forceinline__ void check_states(const fa_params &p, unsigned b, int t)
{
    unsigned done;
    if (t == 0)
        INIT(b + 8, 3);
    __syncthreads();
    TRY(done, b + 8, 1); /* of a new barrier the phase before counts as complete */
    EXPECT(done == 1);
    u64 state = 0;
    unsigned pending = 0;
    if (t < 2)
        asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(b + 8) : "memory");
    __syncthreads();
    if (t == 2) {
        asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(b + 8) : "memory");
        asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
        EXPECT(pending == 1);
        do
            asm volatile("{.reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
                         : "=r"(done)
                         : "r"(b + 8), "l"(state)
                         : "memory");
        while (!done);
    }
    WAIT(b + 8, 0);
    put(p, t, pending);
}

extern "C" __global__ void fa_kernel(const __grid_constant__ fa_params p)
{
    THEIR_PLACES;
    if (t == 0) {
        INIT(b, 1);
        FENCE_INIT();
    }
    __syncthreads();
    check_box(p, s_b, s, b, t, 0, 0, 0);
    check_box(p, s_b, s, b, t, 0, 24, 1);
    check_box(p, s_b, s, b, t, 0, 28, 0);  /* rows beyond the end */
    check_box(p, s_b, s, b, t, -8, -3, 1); /* before the beginning */
    check_box(p, s_b, s, b, t, 40, 30, 0);
    check_box(p, s_b, s, b, t, 0, 40, 1); /* nothing of it inside */
    put(p, 256 + t, box_half(s_b, t / 64, t % 64));
    check_box(p, s_b + 2048, s + 2048, b, t, 104, 0, 0);
    check_states(p, b, t);

    /* bytes: copied in two parts, one of them before it is expected; and out again */
    const unsigned short *q_g = static_cast<const unsigned short *>(p.q);
    if (t == 0) {
        COPY(s + 4096, q_g + 8, 752, b);
        EXPECT_BYTES(b, 768);
        COPY(s + 4096 + 752, q_g + 512, 16, b);
    }
    WAIT(b, 1);
    EXPECT(reinterpret_cast<unsigned short *>(s_b + 4096)[t] == q_g[8 + t]);
    EXPECT(reinterpret_cast<unsigned short *>(s_b + 4096 + 752)[t % 8] == q_g[512 + t % 8]);
    put(p, 512 + t, reinterpret_cast<unsigned short *>(s_b + 4096)[t]);
    __syncthreads();
    reinterpret_cast<unsigned *>(s_b)[t] = t * 0x10001u;
    FENCE_ASYNC();
    __syncthreads();
    if (t == 0 && blockIdx.x == 0) {
        STORE(&p.v_map, s, 28); /* of 8 rows 4 exist */
        COPY_OUT_AND_WAIT(static_cast<unsigned char *>(p.o) + 4096 + 8192, s, 64);
        REDUCE_OUT("add.noftz.f16", static_cast<unsigned char *>(p.o) + 4096 + 8192, s, 64);
        REDUCE_OUT("min.s32", static_cast<unsigned char *>(p.o) + 4096 + 8192 + 64, s, 64);
        COMMIT_AND_WAIT();
    }
}
