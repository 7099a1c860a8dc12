#!/usr/bin/env bats
# Compile-everything: every default of the registry, for the architectures of the mission: no spills, no warnings.
load helper

@test "defaults compile for sm_80, sm_89 and sm_90a without spills or warnings" {
    ./fa_bench --kernel light --compile-only --quiet || skip "no CUDA compiler"
    scripts/compile_all.sh --defaults --dims 40,64,128,256 --out "$work/points.jsonl"
}

@test "a sample of every tile space compiles, or is infeasible in words" {
    ./fa_bench --kernel light --compile-only --quiet || skip "no CUDA compiler"
    scripts/compile_all.sh --sample 12 --arch sm_89 --out "$work/points.jsonl"
    jq -es 'length >= 12 and any(.[]; .status == "pass")' "$work/points.jsonl"
}
