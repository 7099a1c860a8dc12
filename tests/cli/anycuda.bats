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
    run ./fa_bench --source "$work/k.cu" --define A=1.0f "${small[@]}" --runs "$work/runs" --json "$work/r.jsonl" \
        --quiet
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
    ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json" --quiet
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

# The files of tests/emu/ordinary, one construct each: NVRTC takes it and the emulator's result is right.
@test "ordinary CUDA runs on the emulator as it stands, and NVRTC takes it" {
    for file in tests/emu/ordinary/*.cu; do
        ./fa_bench --source "$file" --device emu --batch 1 --heads 2 --seq 70 --dim 16 --seeds 1 --json "$work/r.json" \
            --quiet || { echo "$file"; return 1; }
        record_holds "$work/r.json" '.status == "pass"' '.config.m == 64'
    done
}

@test "a check of tests/emu/ordinary that does not hold makes the kernel wrong" {
    cp tests/emu/ordinary/* "$work"
    sed -i 's/== 496/== 495/' "$work/groups.cu"
    run ./fa_bench --source "$work/groups.cu" "${small[@]}" --quiet
    [ "$status" -eq 1 ]
}

@test "ordinary CUDA under the race detector and address sanitizing: nothing found, and what is there is found" {
    needs_race
    for file in extern_shared static_shared groups wrapped; do
        ./fa_bench --source "tests/emu/ordinary/$file.cu" "${small[@]}" --race --quiet
    done
    cp tests/emu/ordinary/* "$work"
    sed -i 's/SMEM_BYTES 2048/SMEM_BYTES 252/' "$work/extern_shared.cu"
    run ./fa_bench --source "$work/extern_shared.cu" "${small[@]}" --sanitize address --quiet
    [ "$status" -eq 1 ]
    [[ $output == *extern_shared.cu* ]]
    sed -i '/^    pool\[threadIdx/{n;d}; s/SMEM_BYTES 252/SMEM_BYTES 2048/' "$work/extern_shared.cu"
    run ./fa_bench --source "$work/extern_shared.cu" "${small[@]}" --race --quiet
    [ "$status" -eq 1 ]
}

@test "what the CUDA compiler takes and the emulator does not is not_run, with its file and line" {
    sed 's/^    for (int j = 0/    s_ = __vadd4(1, 2);\n&/; s/^    float m = /    unsigned s_;\n&/' examples/plain.cu \
        >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json" --quiet
    [ "$status" -eq 4 ]
    [[ $output == *"the emulator does not take"*"k.cu:"*__vadd4* ]]
    record_holds "$work/r.json" '.status == "not_run"'
    sed -i '1i #include <cuda/barrier>' "$work/k.cu"
    run ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet
    [ "$status" -eq 4 ]
    [[ $output == *cuda/barrier* ]]
}

@test "an error that the CUDA compiler finds is a compile error, at its line, host code or not" {
    cp tests/emu/ordinary/* "$work"
    sed -i 's/^    attend(p, good);/    attend(p, nonsense);/' "$work/launcher.cu"
    line=$(grep -n nonsense "$work/launcher.cu" | cut -d: -f1)
    run ./fa_bench --source "$work/launcher.cu" "${small[@]}" --quiet
    [ "$status" -eq 6 ]
    [[ $output == *"launcher.cu($line)"*nonsense* ]]
}
