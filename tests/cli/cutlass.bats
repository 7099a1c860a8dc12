#!/usr/bin/env bats
# Kernels that need CUTLASS's headers: absent, found, hashed; and what a Sm80 tile says on sm_89 (docs/cutlass.md).
load helper

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    kernel=$(./fa_bench --list-kernels --json - | jq -r '[.[] | select(.headers == "cutlass")][0].name')
    headers=${CUTLASS_DIR:-build/cutlass}/include
    export kernel headers
}

needs_headers() {
    [[ -e $headers/cutlass/version.h ]] || skip "no CUTLASS: scripts/setup.sh cutlass"
    ./fa_bench --kernel light --compile-only --quiet || skip "no CUDA compiler"
}

@test "without the headers a kernel that needs them is not run, and says how to get them" {
    run -0 scripts/setup.sh cutlass --dry-run
    [[ -e build/cutlass/include/cutlass/version.h || $output == *"CUTLASS's headers from PyPI into"* ]]
    export CUTLASS_DIR=$work/none
    refused 4 "fa_bench: not_run: $kernel needs the headers of cutlass, and $work/none/include has none: \
scripts/setup.sh cutlass brings them" ./fa_bench --kernel "$kernel" --compile-only --quiet
    run -4 ./fa_bench --kernel "$kernel" --json "$work/r.json" --quiet "${small[@]}"
    [ "${#lines[@]}" -eq 1 ]
    record_holds "$work/r.json" '.status == "not_run"' '.provenance.headers == null'
    ./fa_bench --list-kernels --json - | jq -e --arg k "$kernel" '.[] | select(.name == $k) |
        .headers == "cutlass" and (.missing | test("scripts/setup.sh cutlass"))'
    ./fa_bench --list-kernels --json - | jq -e 'all(.[] | select(.headers == null); .missing == null)'
    # Scripts over the whole registry say it, and go on; asked for that kernel alone they are not run.
    run -0 scripts/house/code_hashes.sh --dry-run
    [[ $output == *"NOT-RUN: $kernel needs the headers"* && $output != *"--kernel $kernel "* ]]
    refused 4 "NOT-RUN: $kernel needs the headers" scripts/house/code_hashes.sh --kernel "$kernel" --dry-run
    mkdir -p "$CUTLASS_DIR/include" # a folder without them
    refused 4 "include has none" ./fa_bench --kernel "$kernel" --compile-only --quiet
}

# 8 rows of 16 queries, 4 stages of 16 keys: 64 KiB and 64 KiB.
tile=(--dim 256 --m 128 --n 16 --warps 8 --stages 4 --compile-only --quiet)

@test "a tile that sm_80 has room for and sm_89 has not is infeasible there, in bytes" {
    needs_headers
    run -3 ./fa_bench --kernel "$kernel" "${tile[@]}" --arch sm_89
    [[ $output == *"infeasible: 131072 bytes of shared memory per block against the limit of 101376 on sm_89"* ]]
}

# bats file_tags=slow
@test "a kernel that needs them compiles for sm_80; an edit of a header changes the code's key" {
    needs_headers
    local options=(--kernel "$kernel" "${tile[@]}" --arch sm_80)
    ./fa_bench "${options[@]}" --json "$work/1.json"
    record_holds "$work/1.json" '.ptxas.smem_total_bytes == 131072' '.ptxas.spill_store_bytes == 0' \
        '.provenance.headers | test("^cutlass [0-9]+\\.[0-9]+\\.[0-9]+$")'
    mkdir -p "$work/cutlass/include"
    cp -r "$headers/cute" "$headers/cutlass" "$work/cutlass/include/"
    export CUTLASS_DIR=$work/cutlass
    ./fa_bench "${options[@]}" --json "$work/2.json" # the same text in another place
    record_holds "$work/2.json" '.provenance.cache_hit' ".provenance.source_sha256 == $(jq .provenance.source_sha256 \
        "$work/1.json")"
    echo '// edited' >>"$work/cutlass/include/cute/arch/mma_sm80.hpp"
    ./fa_bench "${options[@]}" --json "$work/3.json"
    record_holds "$work/3.json" '.provenance.cache_hit == false' \
        ".provenance.source_sha256 != $(jq .provenance.source_sha256 "$work/1.json")" \
        ".provenance.code_sha256 == $(jq .provenance.code_sha256 "$work/1.json")"
}

@test "on the emulator in both element types, with tails, grouped heads and a causal mask" {
    needs_headers
    local type options=(--kernel "$kernel" --device emu --batch 1 --heads 2 --kv-heads 1 --seq 33 --seq-kv 70 --seeds 1
        --quiet --json "$work/r.json")
    for type in fp16 bf16; do
        ./fa_bench "${options[@]}" --dtype $type --dim 24 --causal --lse
        record_holds "$work/r.json" '.status == "pass"' '.device.backend == "emu"' ".problem.dtype == \"$type\""
    done
    for type in sharp outlier low needle; do
        ./fa_bench "${options[@]}" --dtype bf16 --dim 64 --m 128 --n 32 --warps 4 --swizzle 0 --dist $type --misalign 3
    done
}

@test "a file of one's own includes them, Hopper's among them: every compiler, and the emulator" {
    needs_headers
    { printf '#include <%s>\n' cstdint cmath cute/tensor.hpp cute/arch/mma_sm90_gmma.hpp cute/arch/copy_sm90_tma.hpp \
        cutlass/arch/barrier.h; cat examples/plain.cu; } >"$work/k.cu"
    local compilers=(nvrtc)
    ! type nvcc || compilers+=(nvcc)
    local run=(./fa_bench --source "$work/k.cu" --include "$headers" --quiet)
    for compiler in "${compilers[@]}"; do
        "${run[@]}" --compile-only --arch sm_90a --compiler "$compiler"
    done
    "${run[@]}" "${small[@]}"
}

@test "the builder of collectives compiles for the emulator: host code that it names is declared" {
    needs_headers
    { echo '#include <cutlass/gemm/collective/collective_builder.hpp>' && cat examples/plain.cu; } >"$work/k.cu"
    ./fa_bench --source "$work/k.cu" --include "$headers" --quiet "${small[@]}" --arch sm_90a
}
