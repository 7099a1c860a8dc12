/* Inline PTX wrong in one way: the emulator must report the line marked HERE. One alone: --define CONTROL_NAME=name. */
#include "ptx/ptx.cuh"

/* Half of a warp at one inline barrier, half at another. */
CONTROL(divergent, 64, 0)
{
    if (t % 32 < 16)
        asm volatile("bar.sync 0;" ::: "memory"); /* HERE */
    else
        asm volatile("bar.sync 0;" ::: "memory");
    put(p, t, 1);
}

/* A 16-byte inline load from an address that is a multiple of 8. */
CONTROL(misaligned, 32, 1024)
{
    FA_SHARED(unsigned, s);
    unsigned a, b, c, d;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4+8];" /* HERE */
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                 : "r"(shared_of(s + 4 * t)));
    put(p, t, a + b + c + d);
}

/* A reduction of four floats at a multiple of 8 bytes. */
CONTROL(misaligned_vector, 32, 0)
{
    asm volatile("red.global.add.v4.f32 [%0 + 8], {%1, %1, %1, %1};" ::"l"(p.o), "f"(1.0f) : "memory"); /* HERE */
}

/* Vectors are reduced in global memory alone. */
CONTROL(vector_in_shared, 32, 1024)
{
    FA_SHARED(unsigned, s);
    asm volatile("red.shared.add.v2.f32 [%0], {%1, %1};" ::"r"(shared_of(s)), "f"(1.0f) : "memory"); /* HERE */
    put(p, t, s[0]);
}

/* A plain store into what other threads reduce. */
CONTROL(race_vector, 64, 0)
{
    float *o_g = static_cast<float *>(p.o) + 64;
    if (t == 33)
        o_g[2] = 0.0f;
    else
        asm volatile("red.global.add.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(o_g), "f"(1.0f) : "memory"); /* HERE */
}

/* The low half of a generic pointer taken for a shared address. */
CONTROL(not_shared, 32, 1024)
{
    unsigned v;
    const unsigned at = static_cast<unsigned>(reinterpret_cast<unsigned long long>(p.q) | 0x40000000u);
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at & ~3u)); /* HERE */
    put(p, t, v);
}

/* Inline ld.global behind the end of q. */
CONTROL(overflow_global, 32, 0)
{
    unsigned v;
    const unsigned *q_g = static_cast<const unsigned *>(p.q) + FA_TEST_HALVES / 2 - 31;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(q_g + t)); /* HERE */
    put(p, t, v);
}

/* Inline st.shared four bytes behind the block's shared memory. */
CONTROL(overflow_shared, 32, 124)
{
    FA_SHARED(unsigned, s);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared_of(s + t)), "r"(t) : "memory"); /* HERE */
    put(p, t, s[0]);
}

/* Inline st.shared and ld.shared with no barrier between them. */
CONTROL(race, 64, 256)
{
    FA_SHARED(unsigned, s);
    unsigned v;
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared_of(s + t)), "r"(t) : "memory");
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(shared_of(s + (t + 33) % 64)) : "memory"); /* HERE */
    put(p, blockIdx.x * 64 + t, v);
}

/* A plain inline load of what other threads change by red. */
CONTROL(race_atomic, 64, 256)
{
    FA_SHARED(unsigned, s);
    unsigned v;
    s[t] = 0;
    asm volatile("bar.sync 0;" ::: "memory");
    asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(shared_of(s)) : "memory");
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(shared_of(s)) : "memory"); /* HERE */
    put(p, blockIdx.x * 64 + t, v);
}

/* An instruction the emulator does not have, in the second line of its statement. */
__device__ void nobody_calls_this() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

CONTROL(unknown, 32, 0)
{
    unsigned v = t;
    asm volatile("add.u32 %0, %0, 1;\n\t"
                 "pmevent 7;" /* HERE */
                 : "+r"(v));
    put(p, t, v);
}

CONTROL_KERNEL
