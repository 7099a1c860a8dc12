#!/usr/bin/env bats
# Kernels of any name and parameters: the lines FA_LAUNCH and FA_BUFFER of a file say how they are launched.
load helper

at=tests/emu/launches
problem=(--device emu --batch 2 --heads 4 --kv-heads 2 --seq 19 --dim 16)

@test "three kernels with a score matrix between, a grid and a block of more dimensions, V transposed" {
    ./fa_bench --source $at/scores.cu "${problem[@]}" --seq-kv 33 --causal --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.status == "pass"' '.config.m == 8' '.launch.grid == 3 * 3 * 8' \
        '.launch.threads == 128' '.launch.workspace_bytes >= 4 * 2 * 4 * 19 * 33' \
        '.launch.steps | map(select(.line)) | map(.grid) == [[3, 3, 8], [19, 4, 2], [1, 19, 8]]' \
        '.launch.steps | map(select(.line)) | map(.block) == [[16, 8, 1], [32, 1, 1], [32, 1, 1]]' \
        '.launch.steps | map(select(.line)) | map(.smem_dynamic_bytes) == [512, 136, 0]' \
        '.launch.steps | map(.copies) == ["v", "q", "k", null, null, null, "o"]'
    ./fa_bench --source $at/scores.cu "${problem[@]}" --m 16 --strides bshd --misalign 1 >"$work/out"
    [[ $(<"$work/out") != *"the very same code"* ]] # m stands in the launches alone
}

@test "split-KV and combine in FP32, heads and K/V heads apart, a buffer's first values, the log-sum-exp" {
    for more in "--lse --splits 3" "--causal --dtype bf16"; do
        ./fa_bench --source $at/splits.cu "${problem[@]}" --seq-kv 33 $more --quiet --json "$work/r.json"
        record_holds "$work/r.json" '.status == "pass"' '.launch.steps | map(.copies) | index("lse") != null'
    done
}

@test "q, k and v in one tensor, strides as arguments, a structure of arguments, an output that adds up" {
    ./fa_bench --source $at/packed_qkv.cu "${problem[@]}" --causal --quiet
    ./fa_bench --source $at/packed_qkv.cu "${problem[@]}" --dtype bf16 --strides padded --quiet
    refused 3 "as many queries as keys" ./fa_bench --source $at/packed_qkv.cu "${problem[@]}" --seq-kv 20 --quiet
}

@test "gradients by lines: sums over a group, one tensor of all three, a factor of dq, wrong ones" {
    local in=examples/gradients.cu gradients=("${problem[@]}" --op backward --seeds 1)
    ./fa_bench --source $in "${gradients[@]}" --seq-kv 33 --causal --dtype bf16 --strides bshd --misalign 1 --quiet
    sed -e '/BUFFER.* d[QKV] = d/d; s/Q = q.bhsd/& * scale * sqrtf(dim)/; s/seq_q, scale,/seq_q, rsqrtf((float)dim),/' \
        -e 's/dQ, dK, dV/all, all + batch * heads * seq * dim, all + 2 * batch * heads * seq * dim/' \
        -e '1i // FA_BUFFER: float all = dqkv.3bHsd * scale * sqrtf(dim) = 0' $in >"$work/k.cu"
    ./fa_bench --source "$work/k.cu" "${gradients[@]}" --scale 0.4 --quiet
    sed -i '1s/Hsd.*=/Hsd =/' "$work/k.cu"
    run -1 ./fa_bench --source "$work/k.cu" "${gradients[@]}" --scale 0.4
    [[ $output == *"against cpu: dq:"*"is the right one times 0.625"* ]]
    refused 3 "gradients: for --op backward" ./fa_bench --source $in "${problem[@]}" --quiet
    sed 's/dV = dv.*/dV[batch * heads * seq_kv * dim]/' $in >"$work/k.cu"
    refused 2 "no argument is dv" ./fa_bench --source "$work/k.cu" "${gradients[@]}" --quiet
}

# A kernel that fills the output with zeros, and a line above it.
zeros() { # LINE...
    printf '// %s\n' "$@" >"$work/k.cu"
    cat >>"$work/k.cu" <<'END'
#include <cuda_fp16.h>
__global__ void zeros(half *o, int count)
{
    const int i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count)
        o[i] = 0.0f;
}
END
}
good='FA_LAUNCH: zeros<<<fa_ceil(batch * heads * seq_q * dim, 128), 128>>>(o, batch * heads * seq_q * dim)'

@test "a wrong kernel is wrong, whatever launches it; a launch that no device takes is refused with its line" {
    zeros "$good"
    run -1 ./fa_bench --source "$work/k.cu" "${problem[@]}"
    for case in "0, 128: a grid of 0 x 1 x 1 blocks" "1, 2048: a block of 2048 x 1 x 1 threads" \
        "dim3(1, 65536), 1: a grid of 1 x 65536 x 1" "1, dim3(1, 1, 65): a block of 1 x 1 x 65" \
        "1, 1, 1 << 20: 1048576 bytes of shared memory" "1, 1, -4: shared memory of less"; do
        zeros '' "FA_LAUNCH: zeros<<<${case%%: *}>>>(o, 4)"
        refused 3 "k.cu:2: ${case#*: }" ./fa_bench --source "$work/k.cu" "${problem[@]}" --quiet
    done
    zeros 'FA_BUFFER: half O = o.bsd' 'FA_LAUNCH: zeros<<<1, 1>>>(O, 4)'
    refused 3 "no axis h: one head" ./fa_bench --source "$work/k.cu" "${problem[@]}" --quiet
    zeros 'FA_LAUNCH: zeros<<<seq, 1>>>(o, 4)'
    refused 3 "FA_LAUNCH says seq" ./fa_bench --source "$work/k.cu" "${problem[@]}" --seq-kv 20 --quiet
    refused 3 "the lines take FP16" ./fa_bench --source "$work/k.cu" "${problem[@]}" --dtype bf16 --quiet
    refused 3 "--cubin: k launches by lines" ./fa_bench --source "$work/k.cu" --compile-only --cubin "$work/c" --quiet
}

@test "q with a factor, values that are computed from the tensors, a header with a byte order mark" {
    printf '\xEF\xBB\xBF__device__ inline float exponential(float x) { return expf(x); }\n' >"$work/mark.cuh"
    local part=(./fa_bench --source "$work/k.cu" "${problem[@]}" --seq-kv 40 --quiet)
    sed -e 's/half Vt/half Q = q.bhsd * scale * 2\n\/\/ FA_BUFFER: &/; s/>>>(q, k,/>>>(Q, K,/' \
        -e '1i // FA_BUFFER: half K[batch * kv_heads][seq_kv * dim] = (float)k[i] / 2' -e '1i #include "mark.cuh"' \
        -e 's/expf(/exponential(/; s/scale, causal)$/1.0f, causal)/' $at/scores.cu >"$work/k.cu"
    "${part[@]}"
    sed -i -e 's/(scores, Vt, o, seq_kv, /(ALL, /' \
        -e '1i #define REST Vt, o, \\\n    seq_kv\n#define ALL scores, REST' "$work/k.cu" # arguments by macros
    "${part[@]}"
    sed -i 's/scale \* 2/scale/' "$work/k.cu"
    run -1 "${part[@]}"
}

@test "lines in a comment of the other kind; a launcher with spaces in it; attributes of the kernel; operator<<" {
    cat >"$work/theirs.cu" <<'END'
#include <cuda_fp16.h>
struct printer { template <typename T> printer &operator<< (T x); };
template <typename T> printer &printer::operator<< (T) { return *this; }
extern "C" __global__ __cluster_dims__(2, 1, 1) void __launch_bounds__(64, 2) copy(const half *v, half *o, int dim)
{
    for (int d = threadIdx.x; d < dim; d += blockDim.x)
        o[blockIdx.x / 2 * dim + d] = v[blockIdx.x / 2 * dim + d];
}
void launcher(half *x) { copy << <2, 64 >> > (x, x, 16); }
END
    cat >"$work/k.cu" <<'END'
/* FA_LAUNCH: copy<<<2 * batch * heads * \
 *     seq, 64>>>(v, o, dim) */
#include "theirs.cu"
static_assert(FA_SEQ_KV == 1 && FA_HEADS == FA_KV_HEADS, "one key");
END
    local one=("${problem[@]}" --kv-heads 4 --seq 1 --arch sm_90a)
    ./fa_bench --source "$work/k.cu" "${one[@]}" --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.status == "pass"' '.launch.grid == 16'
    sed 's/<<<2/<<<-1 + 3/' "$work/k.cu" >"$work/odd.cu"
    run -3 ./fa_bench --source "$work/odd.cu" "${one[@]}"
    [[ $output == *"a grid of 23 blocks along x in clusters of 2"* ]]
    type nvcc || skip "no nvcc"
    ./fa_bench --source "$work/k.cu" --seq 1 --compile-only --compiler nvcc --arch sm_90a --quiet
}

@test "a packed tensor is itself in the arguments, one that lies otherwise is a copy" {
    cat >"$work/k.cu" <<'END'
// FA_LAUNCH: copy<part<16, 2>><<<batch * heads, part<part<4, 8>::size, 2>::size>>>(v, (const half *)p.v, o, dim)
// FA_NEEDS: mha
#include <cuda_fp16.h>
static_assert(FA_SEQ_KV == 1, "one key");
template <int A, int B> struct part { static constexpr int size = A * B; };
template <class T> __global__ void copy(const half *v, const half *own, half *o, int dim)
{
    for (int d = threadIdx.x; d < dim && v == own; d += blockDim.x)
        o[blockIdx.x * dim + d] = v[blockIdx.x * dim + d];
}
END
    local one=(./fa_bench --source "$work/k.cu" "${problem[@]}" --kv-heads 4 --seq 1 --seeds 1)
    "${one[@]}" --quiet
    refused 3 "k needs" ./fa_bench --source "$work/k.cu" "${problem[@]}" --seq 1 --quiet
    run -1 "${one[@]}" --strides padded
    sed -i 's/ && v == own//' "$work/k.cu"
    "${one[@]}" --strides padded --quiet
}

@test "a line that cannot be read is named with its number and what it takes" {
    local case
    for case in "zeros<<<1>>>(o)" "zeros<<1, 1>>(o)" "<<<1, 1>>>(o)" "zeros<<<1, 1>>>" "zeros<<<1, 1>>>(o" \
        "zeros<<<1, 1>>>(o) more" "zeros<<<1, , 4>>>(o)" "zeros<<<1, 1, 0, 0, 0>>>(o)"; do
        zeros '' '' "FA_LAUNCH: $case"
        refused 2 "k.cu:3: FA_LAUNCH takes KERNEL<<<GRID, BLOCK" ./fa_bench --source "$work/k.cu" "${problem[@]}"
    done
    for case in "float x" "float [4]" "x[4]" "float x[]" "float x[4" "float x[4] =" "float x[4] more" "float x = q" \
        "float x = q.bhsd *"; do
        zeros "$good" "FA_BUFFER: $case"
        refused 2 "k.cu:2: FA_BUFFER takes TYPE NAME[COUNT]" ./fa_bench --source "$work/k.cu" "${problem[@]}"
    done
    for case in "x = w.bhsd: TENSOR is one of" "x = q.bhs: q has the axes" "x = q.bhHsd: q has the axes" \
        "x = qkv.bshd: qkv has the axes" "x = q.bbsd: q has the axes" "q[4]: q is a name" \
        "x = q.bhsd = 0: x is a copy" "x = k.bhsd * 2: a factor is for q"; do
        zeros "$good" "FA_BUFFER: float ${case%%: *}"
        refused 2 "k.cu:2: FA_BUFFER: ${case#*: }" ./fa_bench --source "$work/k.cu" "${problem[@]}"
    done
    for case in o.bhsd lse.bhs dout.bhsd; do # inputs of gradients
        sed "2i // FA_BUFFER: float X = $case = 0" examples/gradients.cu >"$work/k.cu"
        refused 2 "k.cu:2: FA_BUFFER: X is a copy of ${case%.*}" ./fa_bench --op backward --source "$work/k.cu" --seq 8
    done
    zeros 'FA_LAUNCH: zeros<<<1, 1>>>(q, 4)'
    refused 2 "nothing writes the output" ./fa_bench --source "$work/k.cu" "${problem[@]}"
    zeros 'FA_BUFFER: float x[4]'
    refused 2 "no line launches a kernel" ./fa_bench --source "$work/k.cu" "${problem[@]}"
    { zeros "$good" && echo 'FA_KERNEL_INFO(.threads = 1);' >>"$work/k.cu"; }
    refused 2 "take one of the two" ./fa_bench --source "$work/k.cu" "${problem[@]}"
    zeros $(printf "%s\n" 1 2 3 4 5 6 7 8 9 | sed 's/.*/FA_LAUNCH:zeros<<<1,1>>>(o,&)/')
    refused 2 "more than 8 lines" ./fa_bench --source "$work/k.cu" "${problem[@]}"
}

@test "a mistake within a line is the compiler's, with the file and its line" {
    zeros '' 'FA_LAUNCH: zeros<<<1, seq_p>>>(o, 4)'
    run -6 ./fa_bench --source "$work/k.cu" "${problem[@]}"
    [[ $output == *"k.cu"*2*seq_p* ]]
    zeros '' '' 'FA_LAUNCH: none<<<1, 1>>>(o, 4)'
    run -6 ./fa_bench --source "$work/k.cu" "${problem[@]}"
    [[ $output == *"k.cu"*3*none* ]]
}

# bats file_tags=slow
@test "the same without a race, with every access within bounds, and through nvcc" {
    ./fa_bench --source $at/scores.cu "${problem[@]}" --seeds 1 --race --quiet
    ./fa_bench --source $at/scores.cu "${problem[@]}" --seeds 1 --sanitize address --quiet
    sed 's/__syncthreads();//' $at/scores.cu >"$work/k.cu"
    run -1 ./fa_bench --source "$work/k.cu" "${problem[@]}" --seeds 1 --race
    [[ $output == *"data race in dynamic shared memory"*"at k.cu:18"*"at k.cu:24"* ]]
    type nvcc || skip "no nvcc"
    ./fa_bench --source $at/scores.cu --compile-only --compiler nvcc --quiet
}

@test "a structure of arguments that begins as the parameters do is not taken for them" {
    cat >"$work/k.cu" <<'END'
// FA_LAUNCH: rows<<<dim3(2, batch * heads), 64>>>({(void *)p.q, (void *)p.k, (void *)p.v, p.o, {p.q_stride_b, \
//     p.q_stride_h, p.q_stride_s, p.k_stride_b, p.k_stride_h, p.k_stride_s, p.v_stride_b, p.v_stride_h, \
//     p.v_stride_s, p.o_stride_b, p.o_stride_h, p.o_stride_s}, {1, 2, 3, 4, 5, 6, 7}, 4242})
#include <cuda_fp16.h>
struct arguments { void *q, *k, *v, *o; long long strides[12]; int more[7]; int rows, last; };
__global__ void rows(const arguments a)
{
    if (blockIdx.x * 64 + threadIdx.x < a.rows)
        ((half *)a.o)[threadIdx.x] = ((half *)a.v)[threadIdx.x];
}
END
    tool=$(type -P nvdisasm || find build/tools -name nvdisasm -type f 2>/dev/null | head -n 1)
    [ -n "$tool" ] || skip "no nvdisasm"
    export XDG_CACHE_HOME=$work/cache
    ./fa_bench --source "$work/k.cu" --compile-only --arch sm_90a --quiet
    "$tool" "$work"/cache/fa_bench/*/module.cubin >"$work/sass"
    grep -qE 'ISETP.*0x109[12]' "$work/sass" # the constant of the line
}
