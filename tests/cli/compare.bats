#!/usr/bin/env bats
# scripts/compare.sh: old and new results, by their intervals.
load helper

# Records of one kernel: us, interval, and what else the JSON says.
record() { # KERNEL SEQ US LOW HIGH [JQ]
    jq -nc --arg k "$1" --argjson s "$2" --argjson us "$3" --argjson ci "[$4, $5]" '{schema: "fa_bench.result/1",
        status: "pass", kernel: $k, problem: {batch: 2, heads: 8, kv_heads: 8, seq_q: $s, seq_kv: $s, dim: 64,
        causal: false, dtype: "fp16", flop: 1}, device: {name: "GPU"}, config: {m: 64},
        timing: {p50_us: $us, p50_ci95_us: $ci, l2: "warm", pace: {rest_ms: 0}}} | '"${6:-.}"
}
verdicts() { # ARGUMENTS...: [kernel, seq, verdict] of each, a line
    local code=0
    scripts/compare.sh --json "$@" >"$work/pairs" || code=$?
    jq -rc '"\(.kernel) \(.problem) \(.verdict)"' "$work/pairs"
    return $code
}

@test "faster, slower, within the noise, broken, right now, new, gone; the exit code" {
    local wrong='.status = "wrong" | .reason = "row 3" | .timing = null'
    { record a 1 100 99 101; record b 1 100 99 101; record c 1 100 90 110; record d 1 100 99.9 100.1; record e 1 9 8 10
      record f 1 9 8 10 "$wrong"; record g 1 9 8 10; record i 1 100 99.99 100.01
      record j 1 9 8 10 '.timing.p50_ci95_us = null'; } >"$work/old"
    { record a 1 90 89 91; record b 1 110 109 111; record c 1 95 88 104; record d 1 99.5 99.4 99.6
      record e 1 9 8 10 "$wrong"; record f 1 9 8 10; record h 1 9 8 10; record i 1 101.5 101.4 101.6
      record j 1 5 4 6; } | jq -s . >"$work/new" # a list
    run -1 verdicts "$work/old" "$work/new"
    diff <(sort <<<"$output") - <<'END'
a 2,8,1,64 faster
b 2,8,1,64 slower
c 2,8,1,64 within noise
d 2,8,1,64 within noise
e 2,8,1,64 broken
f 2,8,1,64 right now
g 2,8,1,64 gone
h 2,8,1,64 new
i 2,8,1,64 slower
j 2,8,1,64 no interval
END
    jq -es 'map(select(.kernel == "a"))[0] | .ratio > 1.11 and .ratio < 1.112 and .ci95[0] == 99 / 91 and
        .ci95[1] == 101 / 89' "$work/pairs"
    verdicts "$work/old" "$work/new" --kernel a,c,d # nothing slower: 0
    [ "$(verdicts "$work/old" "$work/new" --kernel i --noise 2)" = "i 2,8,1,64 within noise" ]
    scripts/compare.sh "$work/old" "$work/new" --kernel e --out "$work/text" || [ $? -eq 1 ]
    grep -q '| e | 2,8,1,64 | 9 | - | - | - | broken | wrong: row 3 |' "$work/text"
    grep -qx '1 broken' "$work/text"
}

@test "pairs with the same machine code are compared by their ratios; another pace is another case" {
    local vs='.vs = {kernel: "base", ratio: RATIO, ratio_ci95: [RATIO - 0.01, RATIO + 0.01], code_sha256: "CODE"}'
    record a 1 100 99 101 "$(sed 's/RATIO/1.5/g; s/CODE/x/' <<<"$vs")" >"$work/old"
    record a 1 130 129 131 "$(sed 's/RATIO/1.6/g; s/CODE/x/' <<<"$vs")" >"$work/new" # a hot day
    [ "$(verdicts "$work/old" "$work/new")" = "a 2,8,1,64 faster" ]
    jq -e '.by == "paired with base" and .ratio > 1.06 and .ratio < 1.07' "$work/pairs"
    record a 1 130 129 131 "$(sed 's/RATIO/1.6/g; s/CODE/y/' <<<"$vs")" >"$work/new" # of another base
    run verdicts "$work/old" "$work/new"
    [ "$output" = "a 2,8,1,64 slower" ]
    record a 1 50 49 51 '.timing.pace.rest_ms = 100' >"$work/new"
    [ "$(verdicts "$work/old" "$work/new" | sort | paste -sd,)" = "a 2,8,1,64 gone,a 2,8,1,64 new" ]
}

@test "tiles, leaderboards, folders, a history; records of older versions are the same case" {
    local other='.config.m = 32'
    { record a 1 100 99 101; record a 1 50 49 51 "$other"; } >"$work/old"
    # Fields that an older version did not write, at rest; the tile of 50 us, measured twice: the last time counts.
    { record a 1 90 89 91 '.problem += {dim_v: 64, window: null, sinks: false, mask: "none", pairs: 7}'
      record a 1 40 39 41 "$other"; record a 1 60 59 61 "$other"; } | gzip >"$work/new.gz"
    run verdicts "$work/old" "$work/new.gz"
    [ "$output" = "a 2,8,1,64 slower" ]
    run verdicts --tiles "$work/old" "$work/new.gz"
    [ "$output" = $'a 2,8,1,64 slower\na 2,8,1,64 faster' ]
    [ "$(jq -s '.[0].ratio == 50 / 60' "$work/pairs")" = true ]
    mkdir "$work/sweep"
    jq -nc '{group: "GPU|sm_90a|p", gpu: "GPU", kernel: "a", knobs: "m=64", status: "pass", p50_us: 90,
        problem: {batch: 2, heads: 8, seq_q: 1, dim: 64}}' >"$work/sweep/leaderboard.jsonl"
    [ "$(verdicts "$work/sweep" "$work/old")" = "a 2,8,1,64 no interval" ]
    jq -n '[{group: "GPU|sm_90a|p", leader: "a", kernels: {a: {knobs: "m=64", p50_us: 90, p50_ci95_us: [89, 91]}}}]' \
        >"$work/board"
    [ "$(verdicts "$work/board" "$work/board")" = "a p within noise" ]
    { record a 1 80 79 81 '.provenance.time = "3"'; record a 1 100 99 101 '.provenance.time = "1"'; } >"$work/one"
    record a 1 90 89 91 '.provenance.time = "2"' >"$work/two"
    scripts/compare.sh --json --history "$work/one" "$work/two" >"$work/pairs"
    jq -es 'map([.old_us, .new_us, .verdict]) == [[100, 90, "faster"], [90, 80, "faster"]]' "$work/pairs"
}

@test "usage" {
    record a 1 100 99 101 >"$work/old"
    refused 2 "takes two files, OLD and NEW" scripts/compare.sh "$work/old"
    refused 2 "no file '$work/none'" scripts/compare.sh "$work/old" "$work/none"
    refused 2 "no case was measured twice" scripts/compare.sh --history "$work/old"
    refused 2 "no result of these" scripts/compare.sh "$work/old" "$work/old" --kernel b
    refused 2 "--noise takes percent" scripts/compare.sh "$work/old" "$work/old" --noise much
    echo '{"a": 1}' >"$work/no"
    refused 2 "record 1: it is neither" scripts/compare.sh "$work/old" "$work/no"
}
