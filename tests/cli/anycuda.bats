#!/usr/bin/env bats
# Ordinary CUDA: files as people have them, on the emulator and through NVRTC.
load helper

@test "--include and --define reach the compilers, the cache key and the record" {
    mkdir "$work/inc"
    echo '#define FACTOR 1.0f' >"$work/inc/factor.h"
    sed 's/s \*= p.scale;/s *= p.scale * FACTOR * MORE;/; 1i #include <factor.h>' examples/plain.cu >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" "${small[@]}"
    [ "$status" -eq 6 ]
    with=(--source "$work/k.cu" --include "$work/inc" "${small[@]}" --json "$work/r.json" --quiet)
    ./fa_bench "${with[@]}" --define MORE=1.0f
    record_holds "$work/r.json" '.status == "pass"' '.provenance.options | index("-DMORE=1.0f") != null' \
        ".provenance.options | index(\"-I$work/inc\") != null"
    first=$(jq -r .provenance.source_sha256 "$work/r.json")
    run ./fa_bench "${with[@]}" --define MORE=1.5f
    [ "$status" -eq 1 ]
    echo '#define FACTOR 1.5f' >"$work/inc/factor.h" # an edit of a header is seen
    run ./fa_bench "${with[@]}" --define MORE=1.0f
    [ "$status" -eq 1 ]
    [ "$(jq -r .provenance.source_sha256 "$work/r.json")" != "$first" ]
}

@test "--include and --define of a line of --runs add to those of the command line" {
    sed 's/s \*= p.scale;/s *= p.scale * A * B;/' examples/plain.cu >"$work/k.cu"
    printf '%s\n' '--define B=1.0f' '--define B=2.0f' >"$work/runs"
    run ./fa_bench --source "$work/k.cu" --define A=1.0f "${small[@]}" --runs "$work/runs" --json "$work/r.jsonl" --quiet
    [ "$(jq -r .status "$work/r.jsonl" | tr '\n' ' ')" = "pass wrong " ]
}

@test "a macro or folder that cannot be is refused" {
    refused 2 "--define takes NAME or NAME=VALUE" ./fa_bench --define 3x=1
    refused 2 "--define FA_M" ./fa_bench --define FA_M=16
    refused 2 "--include takes a folder" ./fa_bench --include "$work/none"
    refused 2 "--define takes NAME" ./fa_bench --define ''
}

@test "headers of the C and C++ library and of the toolkit compile" {
    for header in cstdint cmath cfloat climits cassert cstdio algorithm limits type_traits stdint.h math.h \
        cuda_runtime.h cuda_bf16.h cuda_fp8.h cuda_pipeline.h cooperative_groups.h cooperative_groups/reduce.h \
        cuda/std/cstdint cuda/std/type_traits math_constants.h; do
        echo "#include <$header>"
    done | cat - examples/plain.cu >"$work/k.cu"
    ./fa_bench --source "$work/k.cu" "${small[@]}" --compile-only --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.status == "pass"'
}

@test "a header that NVRTC cannot find: the error says what to do" {
    sed '1i #include <forward_list>' examples/plain.cu >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" --compile-only
    [ "$status" -eq 6 ]
    [[ $output == *forward_list*"--include DIR"*"--compiler nvcc"* ]]
    type nvcc || skip "no nvcc"
    ./fa_bench --source "$work/k.cu" --compile-only --compiler nvcc --quiet
}
