#!/usr/bin/env bats
# Compile-everything: every default of the registry, for the architectures of the mission: no spills, no warnings.
load helper

# A bench whose ptxas says $PTXAS of every line of --runs, or which refuses every line for $REASON.
make_compiler() {
    executable "$work/bench" <<'END'
[[ $* != *--list-kernels* ]] || exec ./fa_bench "$@"
while [[ $1 != --runs ]]; do shift; done
jq -nRc --argjson ptxas "${PTXAS:-null}" --arg reason "${REASON-}" 'inputs |
    {config: {}, provenance: {code_sha256: "x", line: input_line_number}} +
    if $ptxas == null then {status: "infeasible", $reason}
    else {status: "pass", reason: null, ptxas: ($ptxas + {arch: "sm_89", registers: 64, smem_total_bytes: 1000})} end
' "$2"
END
}

@test "without headers that a kernel asked for needs, or a compiler, nothing is written" {
    export CUTLASS_DIR=$work/none
    local needs all=(scripts/house/compile_all.sh --defaults --arch sm_89 --dims 64 --out "$work/points.jsonl")
    needs=$(./fa_bench --list-kernels --json - | jq -r 'first(.[] | select(.headers).name)')
    run -4 "${all[@]}" --kernel "$needs,light"
    [[ $output == *"NOT-RUN: $needs needs the headers of "* ]]
    run -4 scripts/house/code_hashes.sh --kernel "$needs" --arch sm_89
    make_compiler
    sed -i 's/{status: "pass", reason: null/{status: "not_run", reason: "no NVRTC: made up"/' "$work/bench"
    echo before >"$work/points.jsonl"
    PTXAS='{}' FA_BENCH=$work/bench run -4 "${all[@]}" --kernel light
    [[ $output == *"NOT-RUN: no NVRTC: made up" && $(<"$work/points.jsonl") == before ]]
}

@test "a default that spills, or that WMMA puts into local memory, fails by name" {
    make_compiler
    all=(env FA_BENCH="$work/bench" scripts/house/compile_all.sh --defaults --kernel wmma --arch sm_89 --dims 64
        --out "$work/points.jsonl")
    PTXAS='{"spill_store_bytes": 0, "spill_load_bytes": 0, "warnings": []}' run -0 "${all[@]}"
    PTXAS='{"spill_store_bytes": 0, "spill_load_bytes": 8, "warnings": []}' run -1 "${all[@]}"
    [[ $output == *"FAIL --kernel wmma --arch sm_89 --dim 64"*"spills 8"* ]]
    PTXAS='{"spill_store_bytes": 0, "spill_load_bytes": 0, "warnings": ["Local memory used for wmma fragment"]}' run \
        "${all[@]}"
    [ "$status" -eq 1 ]
    [[ $output == *"Local memory used"* ]]
}

@test "a tile whose wgmma is serialized, or that another kernel refuses, fails by name" {
    make_compiler
    all=(env FA_BENCH="$work/bench" scripts/house/compile_all.sh --sample 1 --kernel wgmma --arch sm_90a --dims 64
        --out "$work/points.jsonl")
    warned='{"spill_store_bytes": 0, "spill_load_bytes": 0, "warnings":
        ["Potential Performance Loss: wgmma.mma_async instructions are serialized due to ..."]}'
    PTXAS=$warned run -1 "${all[@]}"
    [[ $output == *"FAIL --kernel wgmma --arch sm_90a --dim 64 "*"are serialized"* ]]
    REASON="m must be 16 * warps" run -0 "${all[@]}"
    for reason in "" "wgmma_small, which serves this problem: m must be 64"; do
        REASON=$reason run -1 "${all[@]}"
        [[ $output == *"FAIL --kernel wgmma --arch sm_90a --dim 64 "*": infeasible $reason"* ]]
    done
}

# bats file_tags=slow
@test "defaults compile for sm_80, sm_89 and sm_90a without spills or warnings" {
    ./fa_bench --kernel light --compile-only --quiet || skip "no CUDA compiler"
    scripts/house/compile_all.sh --defaults --dims 40,64,128,256 --out "$work/points.jsonl"
}

@test "a sample of every tile space compiles, or is infeasible in words" {
    ./fa_bench --kernel light --compile-only --quiet || skip "no CUDA compiler"
    scripts/house/compile_all.sh --sample 16 --arch sm_89,sm_90a --dims 64,128,256 --out "$work/points.jsonl"
    jq -es 'length >= 100 and any(.[]; .status == "pass")' "$work/points.jsonl"
}
