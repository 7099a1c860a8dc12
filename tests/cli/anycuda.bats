#!/usr/bin/env bats
# Ordinary CUDA: files as people have them, on the emulator and through NVRTC.
load helper

@test "--include and --define reach the compilers, the cache key and the record" {
    mkdir "$work/inc"
    echo '#define FACTOR 1.0f' >"$work/inc/factor.h"
    sed 's/s \*= p.scale;/s *= p.scale * FACTOR * MORE;/; 1i #include <factor.h>' examples/plain.cu >"$work/k.cu"
    run -6 ./fa_bench --source "$work/k.cu" "${small[@]}"
    with=(--source "$work/k.cu" --include "$work/inc" "${small[@]}" --json "$work/r.json" --quiet)
    ./fa_bench "${with[@]}" --define MORE=1.0f
    record_holds "$work/r.json" '.status == "pass"' '.provenance.options | index("-DMORE=1.0f") != null' \
        ".provenance.options | index(\"-I$work/inc\") != null"
    first=$(jq -r .provenance.source_sha256 "$work/r.json")
    ! type nvcc || ./fa_bench "${with[@]}" --define MORE=1.0f --compile-only --arch sm_89 --compiler nvcc
    run -1 ./fa_bench "${with[@]}" --define MORE=1.5f
    echo '#define FACTOR 1.5f' >"$work/inc/factor.h" # an edit of a header is seen
    run -1 ./fa_bench "${with[@]}" --define MORE=1.0f
    [ "$(jq -r .provenance.source_sha256 "$work/r.json")" != "$first" ]
}

@test "a macro of one letter does not reach the emulator's headers" {
    printf '#include <%s>\n' mma.h cooperative_groups.h cuda/barrier cuda_fp8.h | cat - examples/plain.cu >"$work/k.cu"
    local letters=()
    for letter in A B C D E F G H I K M N O P Q R S U V W X Y Z; do letters+=(--define "$letter=1"); done
    ./fa_bench --source "$work/k.cu" "${small[@]}" "${letters[@]}" --quiet
}

@test "headers of the C and C++ library and of the toolkit compile" {
    for header in cstdint cmath cfloat climits cassert cstdio algorithm limits type_traits stdint.h math.h \
        cuda_runtime.h cuda_bf16.h cuda_fp8.h cuda_pipeline.h cooperative_groups.h cooperative_groups/reduce.h \
        cuda/std/cstdint cuda/std/type_traits math_constants.h array bit concepts initializer_list iterator optional \
        span variant complex bitset numbers; do
        echo "#include <$header>"
    done | cat - examples/plain.cu >"$work/k.cu"
    cat >>"$work/k.cu" <<'END'
#ifdef FA_EMU // names of CUDA 13 and a header in today's CUTLASS
#include <cuda_bf16.hpp>
static_assert(sizeof(long4_16a) == 32 && alignof(double4_16a) == 16 && alignof(ulonglong4_32a) == 32, "");
template <typename T> int version(T &v) { return cudaDriverGetVersion(&v); }
#endif
END
    ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.status == "pass"'
}

@test "NVRTC takes a header of the source before ours of its name" {
    mkdir -p "$work"/{inc,near/sub}
    echo '#define OWN 1' | tee "$work/inc/limits.h" "$work/near/math.h" >"$work/near/sub/span"
    { printf '#include <%s>\n' assert.h limits.h; cat examples/plain.cu; echo 'static_assert(OWN, "");'; } >"$work/k.cu"
    { echo '#include "math.h"' && tail -n +2 "$work/k.cu"; } >"$work/near/beside.cu"
    echo '#include "span"' >"$work/near/sub/includer.h"
    { echo '#include "sub/includer.h"' && tail -n +2 "$work/k.cu"; } >"$work/near/includer.cu"
    printf '%s\n' "--source $work/k.cu --include $work/inc" "--source $work/near/beside.cu" \
        "--source $work/near/includer.cu" >"$work/list"
    ./fa_bench --runs "$work/list" --compile-only --arch sm_89 --quiet
}

@test "a damaged header of the emulator is written again" {
    export XDG_CACHE_HOME=$work/cache
    sed '1i #include <cuda/std/array>' examples/plain.cu >"$work/k.cu"
    ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet
    echo '#error damaged' | tee "$work"/cache/fa_bench/headers/*/cuda/std/{array,limits} >/dev/null
    echo '// another key' >>"$work/k.cu"
    ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet
    XDG_CACHE_HOME=/dev/null/none ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet
}

@test "a header that NVRTC cannot find: the error says what to do" {
    sed '1i #include <forward_list>' examples/plain.cu >"$work/k.cu"
    run -6 ./fa_bench --source "$work/k.cu" --compile-only
    [[ $output == *forward_list*"--include DIR"*"--compiler nvcc"* ]]
    ./fa_bench --source "$work/k.cu" "${small[@]}" --compiler nvcc --quiet
    type nvcc || skip "no nvcc"
    ./fa_bench --source "$work/k.cu" --compile-only --compiler nvcc --quiet
    ./fa_bench --source tests/emu/ordinary/wrapped.cu --compile-only --compiler nvcc --quiet # its launcher is left out
}

@test "<name> is not looked for beside the file; a header inside a struct, <stdbool.h>, an alias, asm without a comma" {
    mkdir "$work/vendors"
    printf '%s\n' '#include <cuda_fp16.h>' 'typedef half their_half;' >"$work/vendors/cuda_fp16.h"
    echo '__device__ static float one() { return 1.0f; }' >"$work/inside.cuh"
    cat - examples/plain.cu >"$work/k.cu" <<'END'
#include "vendors/cuda_fp16.h"
#include <cuda_runtime.h>
#include <stdbool.h>
template <int N> struct group {
#include "inside.cuh"
};
template <typename T> using convert_t = void (*)(const void *x, T *y, cudaStream_t stream);
typedef convert_t<their_half> convert_half_t;
__device__ float six(unsigned a, unsigned b)
{
    unsigned d;
    asm("{ .reg .u32 t; add.u32 t, %1, %2; add.u32 %0, t, %3; }" : "=r"(d) : "r"(a) "r"(b), "r"(3u));
    const bool yes = true;
    return yes ? d * group<2>::one() : 0.0f;
}
int main() { return 0; }
END
    sed -i 's|s \*= p.scale;|s *= p.scale * six(1, 2) / 6;|' "$work/k.cu"
    ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet
}

# The files of tests/emu/ordinary, one construct each: NVRTC takes it and the emulator's result is right.
ordinary_runs() { # NAME...
    local name
    for name in "$@"; do echo "--source tests/emu/ordinary/$name.cu"; done >"$work/list"
    ./fa_bench --runs "$work/list" --device emu --batch 1 --heads 2 --seq 70 --dim 16 --seeds 1 \
        --json "$work/r.jsonl" --quiet
    keep_for_schema "$work/r.jsonl"
    jq -es "length == $# and all(.[]; .status == \"pass\" and .config.m == 64)" "$work/r.jsonl"
}

@test "ordinary CUDA runs on the emulator as it stands, and NVRTC takes it" {
    ordinary_runs extern_shared wrapped
}

@test "what the CUDA compiler takes and the emulator does not is not_run, with its file and line" {
    sed 's/^    for (int j = 0/    s_ = erfinvf(0.5f);\n&/; s/^    float m = /    unsigned s_;\n&/' \
        examples/plain.cu >"$work/k.cu"
    run -4 ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json" --quiet
    [[ $output == *"the emulator does not take"*"k.cu:"*erfinvf* ]]
    record_holds "$work/r.json" '.status == "not_run"'
    sed -i '1i #include <cuda/annotated_ptr>' "$work/k.cu"
    run -4 ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet
    [[ $output == *cuda/annotated_ptr* ]]
}

@test "an error that the CUDA compiler finds is a compile error, at its line, host code or not" {
    cp -r tests/emu tests/cheats "$work"
    sed -i 's/^    attend(p, good);/    attend(p, nonsense);/' "$work/emu/ordinary/launcher.cu"
    line=$(grep -n nonsense "$work/emu/ordinary/launcher.cu" | cut -d: -f1)
    run -6 ./fa_bench --source "$work/emu/ordinary/launcher.cu" "${small[@]}" --quiet
    [[ $output == *"launcher.cu($line)"*nonsense* ]]
}

@test "FA_SPACE states a file's knobs: listed, the first value the default, a bad one named with its line" {
    sed '1i // FA_SPACE: m=32,64 warps=1,2' examples/plain.cu >"$work/k.cu"
    ./fa_bench --list-kernels --source "$work/k.cu" --json "$work/list.json"
    jq -e 'length == 1 and (.[0] | .name == "k" and .values.m == [32, 64] and .values.warps == [1, 2] and
        .values.n == [64] and .defaults.m == 32 and .kind == "hand")' "$work/list.json"
    ./fa_bench --source "$work/k.cu" --m 64 "${small[@]}" --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.config.m == 64'
    sed 's/^#include "fa_params.h"/&\nFA_SPACE(m=16,32)/' examples/plain.cu >"$work/k.cu"
    ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.config.m == 16'
    sed -i 's/m=16,32/m=16,x/' "$work/k.cu"
    refused 2 "k.cu:4: --m takes a whole number" ./fa_bench --source "$work/k.cu"
    sed -i 's/m=16,x/rows=16/' "$work/k.cu"
    refused 2 "FA_SPACE takes knob=value" ./fa_bench --list-kernels --source "$work/k.cu"
}

@test "--vs takes a file, and refuses before any work where there are no times" {
    refused 4 "--vs needs times" ./fa_bench --source examples/plain.cu --vs source:examples/plain.cu:m=32 \
        --device emu --seq 4096 --timeout 20 --quiet
    refused 2 "--source takes a file that can be read" ./fa_bench --vs source:none.cu
    refused 2 "--vs takes NAME" ./fa_bench --vs source:
    refused 2 "'x' is not a tile knob" ./fa_bench --vs source:examples/plain.cu:x=1
}

# Hangs at more than 128 rows; it is compiled, so that the time goes by while it hangs.
slow_kernel() {
    sed "s|^    float m = |    if (p.seq_q > 128) { $hangs }\n&|" examples/plain.cu >"$work/k.cu"
    ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet --define 'WORDS=a b'
}

@test "a time-out names the lines where threads wait, and their callers" {
    printf '%s\n' '__device__ void spin(volatile int *at)' '{' '    while (*at == 0)' '        ;' '}' >"$work/spin.h"
    sed '/^FA_KERNEL_INFO/i #include "spin.h"\n__device__ int flag;
        /^    const int tile = /i if (threadIdx.x % 32 == 0)\n spin(\&flag); // CALL\n__syncwarp(); // WAIT' \
        examples/plain.cu >"$work/k.cu"
    line() { echo "k.cu:$(sed -n "/$1/=" "$work/k.cu")"; }
    for race in '' --race; do
        run -5 ./fa_bench --source "$work/k.cu" "${small[@]}" $race --timeout 5 --quiet
        [[ $output == *"killed after 5 s while checking"*" at spin.h:"[34]" (called at $(line CALL))"* ]]
        [[ $output == *"lanes 1-31 "*"__syncwarp (mask 0xffffffff) at $(line WAIT)"* ]]
    done
}

@test "long work shows its progress on a terminal, and nowhere else" {
    type script || skip "no script"
    slow_kernel
    hang="./fa_bench --source $work/k.cu --device emu --seq 256 --dim 16 --define 'WORDS=a b'"
    script -qc "$hang --timeout 6" /dev/null >"$work/out" || true
    grep -q "checking, seed 1 of 5; .* s of at most 6 s" "$work/out"
    run bash -c "$hang --timeout 4"
    [[ $output != *"at most"* ]]
}

# A variable of the file is in global memory, not so many bytes behind a tensor.
@test "a race in a header of any name, in a folder with spaces: the report names its line, and the caller's" {
    mkdir "$work/a folder (2)"
    printf 'template <typename T>\nstatic __device__ void put(T *at, T x)\n{\n    *at = x;\n}\n' \
        >"$work/a folder (2)/put.h"
    sed -e 's/^extern "C"/#include "put.h"\n__device__ int word;\n&/' \
        -e 's/^    if (row >= p.seq_q)/    put(\&word, row);\n&/' examples/plain.cu >"$work/a folder (2)/k.cu"
    run -1 ./fa_bench --source "$work/a folder (2)/k.cu" "${small[@]}" --race --quiet
    [[ $output == *"data race in global memory (4 bytes)"*"at put.h:4"*"at k.cu:"* ]]
}

@test "host code by other signs: files, directories, MPI, exceptions, C strings; constants of <math.h>" {
    { printf '#include <%s>\n' dirent.h mpi.h opencv2/core.hpp cmath && cat examples/plain.cu; } >"$work/k.cu"
    cat >>"$work/k.cu" <<'END'
typedef struct { FILE *file; int rank; } loader;
struct checkpoint { ssize_t bytes; float *data; };
static int compare(const void *a, const void *b) { return strcmp((const char *)a, (const char *)b); }
static void set_up(loader *l) { MPI_Comm_rank(MPI_COMM_WORLD, &l->rank); qsort(l, 1, 1, compare); }
static void refuse() { throw std::invalid_argument("no"); }
__device__ double constants(checkpoint c) { return M_2_SQRTPI + M_PI_2 + M_SQRT1_2 + M_1_PI + c.bytes; }
END
    ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet
}

# bats file_tags=slow
@test "--include and --define of a line of --runs add to those of the command line" {
    sed 's/s \*= p.scale;/s *= p.scale * A * B;/' examples/plain.cu >"$work/k.cu"
    printf '%s\n' '--define B=1.0f' '--define B=2.0f' >"$work/runs"
    run ./fa_bench --source "$work/k.cu" --define A=1.0f "${small[@]}" --runs "$work/runs" --json "$work/r.jsonl" \
        --quiet
    [ "$(jq -r .status "$work/r.jsonl" | tr '\n' ' ')" = "pass wrong " ]
}

@test "the other kinds of ordinary CUDA run on the emulator as they stand, too" {
    mapfile -t names < <(cd tests/emu/ordinary && printf '%s\n' *.cu | sed 's/[.]cu$//')
    [ "${#names[@]}" -ge 11 ]
    ordinary_runs "${names[@]}"
}

@test "bulk copies by libcu++ on a cuda::barrier: right, no race; a buffer freed too early is one" {
    cp -r tests/emu tests/cheats "$work"
    for race in '' --race; do
        ./fa_bench --source tests/emu/hopper/cuda_copies.cu --arch sm_90a "${small[@]}" --dim 64 $race --quiet
    done
    sed -i '/the buffers are free/d' "$work/emu/hopper/cuda_copies.cu"
    run -1 ./fa_bench --source "$work/emu/hopper/cuda_copies.cu" --arch sm_90a "${small[@]}" --dim 64 --race --quiet
    [[ $output == *"data race"*"bulk copy"*cuda_copies.cu:* ]]
}

@test "programmatic dependent launch: the runtime's functions, with their header and without" {
    for header in '' '#include <cuda_device_runtime_api.h>'; do
        echo "$header" >"$work/k.cu"
        sed 's/^    const int tile = /    cudaGridDependencySynchronize();\n&/' examples/plain.cu >>"$work/k.cu"
        ./fa_bench --source "$work/k.cu" --compile-only --arch sm_90a --m 32 --quiet
        ./fa_bench --source "$work/k.cu" "${small[@]}" --arch sm_90a --quiet
    done
}

@test "a check of tests/emu/ordinary that does not hold makes the kernel wrong" {
    cp -r tests/emu tests/cheats "$work"
    sed -i 's/== 496/== 495/' "$work/emu/ordinary/groups.cu"
    run -1 ./fa_bench --source "$work/emu/ordinary/groups.cu" "${small[@]}" --quiet
}

@test "ordinary CUDA under the race detector and address sanitizing: nothing found, and what is there is found" {
    for file in extern_shared static_shared groups wrapped; do
        ./fa_bench --source "tests/emu/ordinary/$file.cu" "${small[@]}" --race --quiet
    done
    cp -r tests/emu tests/cheats "$work"
    sed -i 's/SMEM_BYTES 2048/SMEM_BYTES 252/' "$work/emu/ordinary/extern_shared.cu"
    run -1 ./fa_bench --source "$work/emu/ordinary/extern_shared.cu" "${small[@]}" --sanitize address --quiet
    [[ $output == *extern_shared.cu* ]]
    sed -i '/^    pool\[threadIdx/{n;d}; s/SMEM_BYTES 252/SMEM_BYTES 2048/' "$work/emu/ordinary/extern_shared.cu"
    run -1 ./fa_bench --source "$work/emu/ordinary/extern_shared.cu" "${small[@]}" --race --quiet
}

@test "a sanitizer without a size takes a small problem and says so" {
    run -0 ./fa_bench --source examples/plain.cu --device emu --race --json "$work/r.json"
    [ "$(grep -c "small, for the sanitizer" <<<"$output")" -eq 1 ]
    record_holds "$work/r.json" '.problem.batch == 1' '.problem.seq_q == 128' '.check.seeds == 1'
    ./fa_bench --source examples/plain.cu --device emu --race --seq 40 --batch 1 --dim 16 --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.problem.seq_q == 40' '.problem.heads == 8' '.check.seeds == 5'
}

@test "a file of one's own is tried and swept as a kernel of the registry is" {
    sed '1i // FA_SPACE: m=32,64' examples/plain.cu >"$work/k.cu"
    run -0 scripts/evo_test_one.sh 32 1 8 --source "$work/k.cu" --json "$work/r.json" -- "${small[@]}"
    record_holds "$work/r.json" '.kernel == "k"' '.config.m == 32'
    run -0 scripts/evo_sweep.sh --source "$work/k.cu" --strategy grid --out "$work/sweep" -- "${small[@]}"
    jq -es 'map(.knobs) | sort == ["m=32", "m=64"]' "$work/sweep/leaderboard.jsonl"
    jq -es 'all(.[]; .status == "pass" and (.kernel | startswith("source:/")))' "$work/sweep/leaderboard.jsonl"
    sed '1i // FA_SPACE: m=16' examples/plain.cu >"$work/one.cu" # a space of one point
    scripts/evo_sweep.sh --source "$work/one.cu" --strategy grid --out "$work/one" -- "${small[@]}"
    jq -es 'map(.knobs) == ["m=16"]' "$work/one/leaderboard.jsonl"
    run -2 scripts/evo_sweep.sh --source examples/plain.cu --out "$work/sweep" -- "${small[@]}"
    [[ $output == *"states no knobs"*FA_SPACE* ]]
}

@test "headers of the host, using namespace std, structs with a stream" {
    { cat <<'END'
#include <bits/stdc++.h>
using namespace std;
struct arguments { cudaStream_t stream; cudaError_t last; uint n; };
static __device__ uint first(arguments a) { return min(a.n, uint(numeric_limits<int>::max())) + std::max(0, 0); }
static void say(const char *what) { thread_local int pid = getpid(); printf("%d: %s", pid, what); }
END
        sed 's/^    float m = NO_MAX/    if (first(arguments{nullptr, cudaSuccess, 3}) != 3)\n        return;\n&/' \
            examples/plain.cu
    } >"$work/k.cu"
    ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet
    ./fa_bench --source "$work/k.cu" --m 32 --compile-only --quiet
}
