#!/usr/bin/env bats
# The record: schema, atomic replacement, alone on stdout with -, and written when a run fails.
load helper

@test "a passing run on the emulator" {
    run -0 ./fa_bench --kernel light "${small[@]}" --json "$work/r.json"
    record_holds "$work/r.json" '.status == "pass"' '.device.backend == "emu"' '.timing == null' '.throughput == null' \
        '.check.passed' '.check.seeds == 1' '.check.references[0].name == "cpu"' \
        '.check.references[0].rows_checked == 66' \
        '.check.references[0].mismatches == 0' '.config.m > 0' '.problem.flop == 4 * 2 * 33 * 33 * 16' \
        '.provenance.seed == 42'
}

@test "- prints the record alone on stdout" {
    ./fa_bench --kernel light "${small[@]}" --json - >"$work/r.json" 2>"$work/err"
    record_holds "$work/r.json" '.status == "pass"'
    [ -s "$work/err" ]
}

@test "the file is replaced whole, and nothing else is left beside it; --quiet prints nothing for people" {
    echo old >"$work/r.json"
    run -0 ./fa_bench --kernel light "${small[@]}" --json "$work/r.json" --quiet
    [ -z "$output" ]
    record_holds "$work/r.json" '.status == "pass"'
    [ "$(ls "$work")" = r.json ]
}

@test "without a GPU auto says in one line what it took and why; one that is asked for is not_run, with a record" {
    command -v nvidia-smi >/dev/null && skip "there is a GPU"
    run -0 ./fa_bench --kernel light --batch 1 --heads 1 --seq 16 --dim 16 --seeds 1
    [ "$(grep -c '^device ' <<<"$output")" -eq 1 ]
    [[ $output == *"auto took the CPU emulator: "* ]]
    run -4 ./fa_bench --kernel light --device cuda --json "$work/r.json"
    record_holds "$work/r.json" '.status == "not_run"' '.kernel == "light"' '.device == null' '.reason | length > 5'
}

# bats test_tags=slow
@test "every distribution passes, and causal, GQA, tails, odd dims, misaligned starts" {
    for dist in normal uniform outlier sharp rising falling needle constant-v coded low cliff; do
        ./fa_bench --kernel light "${small[@]}" --dist $dist --quiet
    done
    for extra in "--causal" "--causal --seq-kv 70" "--causal --seq-kv 5" "--heads 4 --kv-heads 2" "--dim 40" \
        "--misalign 3" "--strides padded --misalign 1" "--strides bshd" "--strides far" "--seq 1 --seq-kv 1"; do
        ./fa_bench --kernel light "${small[@]}" $extra --quiet
    done
}

@test "dumped inputs load to the same verdict" {
    ./fa_bench --kernel light "${small[@]}" --dump "$work" --quiet
    [ -s "$work/q.npy" ] && [ -s "$work/k.npy" ] && [ -s "$work/v.npy" ] && [ -s "$work/o.npy" ]
    ./fa_bench --kernel light "${small[@]}" --load "$work" --quiet
    ./fa_bench --kernel light --device emu --seeds 1 --load "$work" --quiet --json "$work/r.json" # the files' size
    jq -e '.problem | [.batch, .heads, .seq_q, .seq_kv, .dim] == [1, 2, 33, 33, 16]' "$work/r.json"
    mkdir "$work/one"
    cp "$work/q.npy" "$work/one"
    refused 2 "cannot read $work/one/k.npy" ./fa_bench --kernel light --device emu --load "$work/one" --quiet
    cp "$work/q.npy" "$work/good"
    sed -i '1s/<f2/<f4/' "$work/q.npy"
    refused 2 "q.npy holds <f4, want <f2 for --dtype fp16" ./fa_bench --kernel light --device emu --load "$work" --quiet
    mv "$work/good" "$work/q.npy"
    head -c 100 "$work/k.npy" >"$work/short" && mv "$work/short" "$work/k.npy"
    run -2 ./fa_bench --kernel light "${small[@]}" --load "$work"
    [[ $output == *k.npy* ]]
}

@test "the schema takes a record, and refuses a key that it does not describe and one that is missing" {
    ./fa_bench --kernel light "${small[@]}" --json "$work/r.json" --quiet
    tests/validate_record.py "$work/r.json"
    invalid() { # JQ-PROGRAM WORDS
        jq "$1" "$work/r.json" >"$work/bad.json"
        run -1 tests/validate_record.py "$work/bad.json"
        [[ $output == *"$2"* ]]
    }
    invalid '.colour = 1' "('colour' was unexpected)"
    invalid '.check.references[0].colour = 1' "check/references/0: Additional properties"
    invalid '.config.colour = 1' "config: Additional properties"
    invalid 'del(.provenance.seed)' "provenance: 'seed' is a required property"
    invalid '.timing = {}' "timing: "
}
