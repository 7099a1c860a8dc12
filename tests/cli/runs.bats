#!/usr/bin/env bats
# --runs: many checks in one process.
load helper

run_lines() { # LINE...: each with a record of its own, $work/1.json and so on
    local i
    for ((i = 1; i <= $#; i++)); do echo "${!i} --json $work/$i.json"; done >"$work/runs"
    run ./fa_bench "${small[@]}" --timing none --quiet --runs "$work/runs"
}

@test "each line is a run like any other: its record, and the code of the first that did not pass" {
    run_lines "--kernel scalar" "" "--kernel light --n 63" "--kernel light --seq 65 --causal" "--kernel scalar --atol 0 --rtol 0"
    [ "$status" -eq 3 ]
    record_holds "$work/1.json" '.status == "pass"' '.kernel == "scalar" and .problem.seq_q == 33'
    record_holds "$work/3.json" '.status == "infeasible"' '.reason | test("multiple of 32")'
    record_holds "$work/4.json" '.status == "pass"' '.problem.seq_q == 65 and .problem.causal' '.provenance.command | test("--runs") | not'
    # The same as alone.
    ./fa_bench "${small[@]}" --timing none --quiet --kernel light --seq 65 --causal --json "$work/alone.json"
    diff <(jq 'del(.provenance)' "$work/4.json") <(jq 'del(.provenance)' "$work/alone.json")
}

@test "a hang and a crash end their run alone" {
    sed 's|^    float m = |    for (volatile int forever = 1; forever;) {}\n&|' examples/plain.cu >"$work/hangs.cu"
    sed 's|^    float m = |    *(volatile int *)8 = 1;\n&|' examples/plain.cu >"$work/crashes.cu"
    run_lines "--kernel scalar" "--source $work/hangs.cu --timeout 4" "--kernel light" "--source $work/crashes.cu" "--kernel scalar --causal"
    [ "$status" -eq 5 ]
    record_holds "$work/1.json" '.status == "pass"'
    record_holds "$work/2.json" '.status == "timeout"' '.reason | test("4 s while checking")'
    record_holds "$work/3.json" '.status == "pass"' '.kernel == "light"'
    record_holds "$work/4.json" '.status == "error"' '.reason | test("signal 11|address")'
    record_holds "$work/5.json" '.status == "pass"' '.problem.causal'
}

@test "a line that is no check is refused before any run, with its number" {
    for line in "--help" "--runs x" "--list-kernels" "--m none" "--race"; do
        printf '%s\n' "--kernel scalar --json $work/1.json" "" "$line" >"$work/runs"
        refused 2 "$work/runs:3: " ./fa_bench "${small[@]}" --timing none --runs "$work/runs"
        [ ! -e "$work/1.json" ]
    done
    echo "--kernel scalar" >"$work/runs"
    refused 2 "--timing none or --compile-only" ./fa_bench "${small[@]}" --runs "$work/runs"
    : >"$work/runs"
    refused 2 "no run in" ./fa_bench --runs "$work/runs"
    refused 2 "cannot read" ./fa_bench --runs "$work/none"
}

@test "many compiles without a GPU" {
    ./fa_bench --compile-only --quiet || skip "no CUDA compiler"
    printf '%s\n' "--dim 64 --json $work/a.json" "--dim 128 --json $work/b.json" >"$work/runs"
    ./fa_bench --kernel light --compile-only --arch sm_90a --quiet --runs "$work/runs"
    for record in a b; do record_holds "$work/$record.json" '.status == "pass"' '.ptxas.arch == "sm_90a"'; done
}
