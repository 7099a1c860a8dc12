/* What the lines FA_LAUNCH and FA_BUFFER of a user's file become (docs/ordinary.md): a plan, which is read back from
 * the compiled module, and the kernels that copy tensors into another type or order of axes. Read by gcc for the plan
 * and by NVRTC, nvcc and the emulator's g++ for all of it. */
#ifndef FA_LAUNCH_LINES_H
#define FA_LAUNCH_LINES_H

#include "fa_params.h"

#define FA_STEPS_MAX 48
#define FA_BUFFERS_MAX 25                                              /* by lines, and bare names */
enum { FA_STEP_BEFORE = FA_STEPS_MAX + 1, FA_STEP_AFTER, FA_ENTRIES }; /* entries: fa_before, fa_after */

/* Tensors of a copy: those of fa_params, then several in one. Their names in the lines. */
enum { FA_OF_NONE, FA_OF_Q, FA_OF_K, FA_OF_V, FA_OF_O, FA_OF_LSE, FA_OF_DOUT, FA_OF_DQ, FA_OF_DK, FA_OF_DV };
enum { FA_OF_KV = FA_OF_DV + 1, FA_OF_QKV, FA_OF_DKV, FA_OF_DQKV, FA_OF_COUNT };
#define FA_OF_NAMES                                                                         \
    {                                                                                       \
        "", "q", "k", "v", "o", "lse", "dout", "dq", "dk", "dv", "kv", "qkv", "dkv", "dqkv" \
    }

/* One launch of a plan. */
typedef struct fa_step {
    fa_i32 grid[3], block[3], shared_bytes;
    fa_i32 entry;  /* 0: fa_kernel; n: fa_step_n; FA_STEP_BEFORE, FA_STEP_AFTER */
    fa_i32 line;   /* of the file; 0: a copy or fill of ours */
    fa_i32 tensor; /* FA_OF_*, of a copy */
    fa_i32 as_is;  /* 1: left out where the tensor lies in this order already (fa_lies_so) */
    char order[8];
} fa_step;

typedef struct fa_plan {
    fa_i32 count, reserved;
    fa_i64 workspace_bytes;
    fa_step steps[FA_STEPS_MAX];
} fa_plan;

#ifdef __cplusplus
#define FA_LAUNCH_DEVICE static __host__ __device__ inline constexpr
#define FA_LAUNCH_EVERYWHERE static __host__ __device__ inline
#else
#define FA_LAUNCH_DEVICE static inline
#define FA_LAUNCH_EVERYWHERE static inline
#endif

/* Elements along an axis of a tensor. */
FA_LAUNCH_DEVICE fa_i64 fa_axis(const fa_params *p, fa_i32 tensor, char axis)
{
    const bool query =
        tensor == FA_OF_Q || (tensor >= FA_OF_O && tensor <= FA_OF_DQ) || tensor == FA_OF_QKV || tensor == FA_OF_DQKV;
    return axis == 'b'   ? p->batch
           : axis == 's' ? (query ? p->seq_q : p->seq_kv)
           : axis == 'h' ? (query ? p->heads : p->kv_heads)
           : axis == 'H' ? p->heads
           : axis == 'd' ? p->dim
                         : axis - '0';
}

/* The stride of b, h or s of a tensor of fa_params. */
FA_LAUNCH_DEVICE fa_i64 fa_stride(const fa_params *p, fa_i32 tensor, char axis)
{
    const int at = axis == 'b' ? 0 : axis == 's' ? 2 : 1;
    const fa_i64 strides[5][3] = {{p->q_stride_b, p->q_stride_h, p->q_stride_s},
                                  {p->k_stride_b, p->k_stride_h, p->k_stride_s},
                                  {p->v_stride_b, p->v_stride_h, p->v_stride_s},
                                  {p->o_stride_b, p->o_stride_h, p->o_stride_s},
                                  {p->lse_stride_b, p->lse_stride_h, p->lse_stride_s}};
    return tensor >= FA_OF_DOUT ? p->grad_stride[tensor - FA_OF_DOUT][at] : strides[tensor - FA_OF_Q][at];
}

FA_LAUNCH_EVERYWHERE void *fa_address(const fa_params *p, fa_i32 tensor)
{
    const void *const tensors[9] = {p->q, p->k, p->v, p->o, p->lse, p->dout, p->dq, p->dk, p->dv};
    return (void *)tensors[tensor - FA_OF_Q];
}

/* Whether a tensor of fa_params is packed in this order and starts on 16 bytes. */
FA_LAUNCH_EVERYWHERE bool fa_lies_so(const fa_params *p, fa_i32 tensor, const char *order)
{
    int last = 0;
    while (order[last] != '\0')
        last++;
    fa_i64 stride = 1;
    for (int i = last - 1; i >= 0; i--) {
        const fa_i64 size = fa_axis(p, tensor, order[i]);
        if (order[i] == 'd' ? stride != 1 : size != 1 && fa_stride(p, tensor, order[i]) != stride)
            return false;
        stride *= size;
    }
    return (unsigned long long)fa_address(p, tensor) % 16 == 0;
}

#ifdef __cplusplus
#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* Where each buffer begins in the workspace, in bytes, and its elements. */
struct fa_memory {
    fa_i64 at[FA_BUFFERS_MAX + 1], count[FA_BUFFERS_MAX];
};

/* How the emulator calls a step, and finds the plan. */
#ifdef FA_EMU
#define FA_EMU_SHOWN extern "C" __attribute__((visibility("default")))
#define FA_EMU_CALL(step, name) \
    FA_EMU_SHOWN void fa_emu_call_##step(const fa_params *p) { name(*p); }
FA_EMU_SHOWN const fa_plan fa_launch_plan;
#else
#define FA_EMU_CALL(step, name)
#endif

#ifndef FA_NONDETERMINISTIC
#define FA_NONDETERMINISTIC 0 /* 1: of a file whose repeats may differ in the last bits */
#endif

/* The names of the lines; after them, a file's own macros of these names mean nothing. */
#define FA_LAUNCH_SIZES                                                                                        \
    [[maybe_unused]] constexpr int batch = FA_BATCH, heads = FA_HEADS, kv_heads = FA_KV_HEADS, seq = FA_SEQ_Q, \
                                   seq_q = FA_SEQ_Q, seq_kv = FA_SEQ_KV, dim = FA_DIM;                         \
    [[maybe_unused]] constexpr bool causal = FA_CAUSAL

/* The same, to count the elements of buffers, which can be more than 2^31. */
#define FA_LAUNCH_COUNTS                                                                                          \
    [[maybe_unused]] constexpr fa_i64 batch = FA_BATCH, heads = FA_HEADS, kv_heads = FA_KV_HEADS, seq = FA_SEQ_Q, \
                                      seq_q = FA_SEQ_Q, seq_kv = FA_SEQ_KV, dim = FA_DIM;                         \
    [[maybe_unused]] constexpr bool causal = FA_CAUSAL

__host__ __device__ constexpr int fa_ceil(long long value, long long to) { return (int)((value + to - 1) / to); }

enum { FA_COPY_THREADS = 256, FA_COPY_EACH = 8, FA_COPY_BLOCKS = 4096 };

__host__ __device__ constexpr fa_step fa_step_of(int entry, int line, dim3 grid, dim3 block, long long shared_bytes)
{
    return {.grid = {(int)grid.x, (int)grid.y, (int)grid.z},
            .block = {(int)block.x, (int)block.y, (int)block.z},
            .shared_bytes = shared_bytes < 0 || shared_bytes > 0x7fffffff ? -1 : (int)shared_bytes,
            .entry = entry,
            .line = line};
}

__host__ __device__ constexpr int fa_shared_of(const fa_step &step)
{
    return step.shared_bytes < 0 ? 0 : step.shared_bytes;
}

/* For __launch_bounds__: what a block can have, whatever the line says. */
__host__ __device__ constexpr int fa_threads_of(const fa_step &step)
{
    const fa_i64 threads = (fa_i64)step.block[0] * step.block[1] * step.block[2];
    return threads < 1 ? 1 : threads > 1024 ? 1024 : (int)threads;
}

__host__ __device__ constexpr fa_step fa_copy_step(int entry, fa_i64 count, int tensor, bool as_is, const char *order)
{
    const fa_i64 blocks = (count + FA_COPY_THREADS * FA_COPY_EACH - 1) / (FA_COPY_THREADS * FA_COPY_EACH);
    fa_step step =
        fa_step_of(entry, 0, (unsigned)(blocks < FA_COPY_BLOCKS ? blocks : FA_COPY_BLOCKS), FA_COPY_THREADS, 0);
    step.tensor = tensor;
    step.as_is = as_is;
    for (int i = 0; order[i] != '\0'; i++)
        step.order[i] = order[i];
    return step;
}

/* Elements of a tensor in this order: the product of its axes. */
__host__ __device__ constexpr fa_i64 fa_count_of(int tensor, const char *order)
{
    fa_params p{};
    p.batch = FA_BATCH;
    p.heads = FA_HEADS;
    p.kv_heads = FA_KV_HEADS;
    p.seq_q = FA_SEQ_Q;
    p.seq_kv = FA_SEQ_KV;
    p.dim = FA_DIM;
    fa_i64 count = 1;
    for (int i = 0; order[i] != '\0'; i++)
        count *= fa_axis(&p, tensor, order[i]);
    return count;
}

__host__ __device__ constexpr bool fa_has_axis(const char *order, char axis)
{
    for (; *order != '\0'; order++)
        if (*order == axis)
            return true;
    return false;
}

/* Of one kind are elements that need no conversion. */
template <class T, class U>
inline constexpr bool fa_same = false;
template <class T>
inline constexpr bool fa_same<T, T> = true;

template <class T>
__device__ inline float fa_to_float(T value)
{
    return (float)value;
}
template <class T>
__device__ inline T fa_from_float(float value)
{
    return (T)value;
}

/* Where element i of a copy in this order comes from, or goes to: the tensor and the offset in it. */
__device__ inline fa_i64 fa_place(const fa_params &p, int tensor, const char *order, fa_i64 i, int *part)
{
    fa_i64 b = 0, h = 0, s = 0, d = 0;
    int last = 0;
    while (order[last] != '\0')
        last++;
    *part = tensor;
    for (int at = last - 1; at >= 0; at--) {
        const char axis = order[at];
        const fa_i64 size = fa_axis(&p, tensor, axis), index = i % size;
        i /= size;
        if (axis == 'b')
            b = index;
        else if (axis == 'h')
            h = index;
        else if (axis == 'H')
            h = index;
        else if (axis == 's')
            s = index;
        else if (axis == 'd')
            d = index;
        else
            *part = (tensor >= FA_OF_DKV ? FA_OF_DQ : FA_OF_Q) + (axis == '2') + (int)index;
    }
    if (*part != FA_OF_Q && *part != FA_OF_DQ && fa_has_axis(order, 'H'))
        h /= p.heads / p.kv_heads;
    return b * fa_stride(&p, *part, 'b') + h * fa_stride(&p, *part, 'h') + s * fa_stride(&p, *part, 's') + d;
}

__device__ inline fa_i64 fa_first_element() { return (fa_i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline fa_i64 fa_element_step() { return (fa_i64)gridDim.x * blockDim.x; }

/* Tensors into a buffer; factor: of q. */
template <class T>
__device__ inline void fa_copy_in(const fa_params &p, int tensor, const char *order, T *to, fa_i64 count,
                                  float factor = 1.0f)
{
    for (fa_i64 i = fa_first_element(); i < count; i += fa_element_step()) {
        int part;
        const fa_i64 at = fa_place(p, tensor, order, i, &part);
        const float value = part == FA_OF_LSE ? p.lse[at] : fa_to_float(((const fa_element *)fa_address(&p, part))[at]);
        to[i] = fa_from_float<T>(part == FA_OF_Q ? value * factor : value);
    }
}

/* Tensors out of a buffer; factor: of dq. With H, dk and dv are the sums over the query heads of a K/V head. */
template <class T>
__device__ inline void fa_copy_out(const fa_params &p, int tensor, const char *order, const T *from, fa_i64 count,
                                   float factor = 1.0f)
{
    fa_i64 step = 1; /* between heads */
    for (int at = 0; order[at] != '\0'; at++)
        step = order[at] == 'H' ? 1 : step * fa_axis(&p, tensor, order[at]);
    for (fa_i64 i = fa_first_element(); i < count; i += fa_element_step()) {
        int part;
        const fa_i64 at = fa_place(p, tensor, order, i, &part);
        const int group = fa_has_axis(order, 'H') && part != FA_OF_DQ ? p.heads / p.kv_heads : 1;
        if (i / step % group != 0)
            continue; /* its sum is made with the first head of the group */
        float value = 0.0f;
        for (int g = 0; g < group; g++)
            value += fa_to_float(from[i + g * step]);
        if (tensor == FA_OF_LSE)
            p.lse[at] = value;
        else
            ((fa_element *)fa_address(&p, part))[at] =
                fa_from_float<fa_element>(part == FA_OF_DQ ? value * factor : value);
    }
}

/* The parameters as the lines see them: as memory of which the compiler knows nothing. Otherwise nvcc and NVRTC 13.0
 * take a structure of arguments for a copy of them when its first member is theirs, whatever the other members are. */
__device__ inline const fa_params &fa_own(const fa_params &params)
{
    const fa_params *own = &params;
#ifndef FA_EMU
    asm("" : "+l"(own));
#endif
    return *own;
}

/* The tensor itself where it lies so, else its copy. */
template <class T>
__device__ inline T *fa_tensor(const fa_params &p, int tensor, const char *order, bool as_is, T *copy)
{
    void *own = as_is ? fa_address(&p, tensor) : nullptr;
    return own != nullptr && fa_lies_so(&p, tensor, order) ? (T *)own : copy;
}
#endif

#endif
