#!/usr/bin/env bats
# Pairs of a kernel and its peers: which are run, what is kept when it is cut off, and what they come to.
load stub_bench

prepare() {
    make_stub source.lib
    echo 'lib 16 4 99' >>"$STUB/times"
    printf '%s\n' '# a comment' '--seq 128' '' '--seq  256 ' '--seq 512' >"$work/problems"
}
# --vs: a library of FlashAttention 3 that is built here would be a peer, too
pairs() { scripts/evidence/pairs.sh --problems "$work/problems" --vs lib --jobs 1 --out "$work/p.jsonl" "$@"; }

@test "both paces of each problem, a record each as it ends; what is there is not run again" {
    run -0 pairs --pace sustained,rested
    [[ $output == *"two over made up 1.2, rested: geometric mean 1.1, least 1.1, 0 below 1, 3 pairs"* ]]
    jq -es 'length == 6 and (map(select(.timing.pace.rest_ms == 12 and .timing.l2 == "cold")) | length) == 3' \
        "$work/p.jsonl"
    jq -nR -L scripts/lib 'import "pairs" as m; m::rows' "$work/p.jsonl" |
        jq -e 'length == 6 and (group_by(.pace) | map([.[0].pace, length])) == [["rested", 3], ["sustained", 3]] and
        all(.[]; .kernel == "two" and .vs == "lib" and .vs_version == "made up 1.2" and .ratio == 1.1 and
        .percent_of_peak == 50 and .sm_clock_mhz == 1)'
    [ "$(grep -c ' vs lib' "$STUB/runs")" -eq 6 ]
    # Cut off: a record less, and half of one.
    head -n 3 "$work/p.jsonl" >"$work/cut"
    sed -n 4p "$work/p.jsonl" | head -c 200 >>"$work/cut"
    mv "$work/cut" "$work/p.jsonl"
    pairs --pace sustained,rested
    [ "$(grep -c ' vs lib' "$STUB/runs")" -eq 9 ]
    jq -es 'length == 6' "$work/p.jsonl"
    pairs --pace sustained,rested
    [ "$(grep -c ' vs lib' "$STUB/runs")" -eq 9 ]
    # What is new is compiled first, each kernel once.
    [ "$(grep -c -- '--compile-only.*--json [^-]' "$STUB/commands")" -eq 6 ]
    # The last rung that serves the problem on this GPU.
    echo "two 16 4" >"$STUB/too_large"
    [[ $(pairs --dry-run) == "--kernel one --seq 128 "* ]]
    grep -q -- '--kernel two --seq 128 --compile-only .*--arch sm_90a' "$STUB/commands"
}

@test "two lanes share the problems; their records join without a GPU" {
    pairs --lane 1/2
    scripts/evidence/pairs.sh --problems "$work/problems" --lane 2/2 --out "$work/q.jsonl"
    jq -es 'map(.problem.seq_q) == [128, 512]' "$work/p.jsonl"
    jq -es 'map(.problem.seq_q) == [256]' "$work/q.jsonl"
    touch "$STUB/no_gpu"
    gzip "$work/q.jsonl"
    run scripts/evidence/pairs.sh "$work/p.jsonl" "$work/q.jsonl.gz" --out "$work/all.jsonl"
    [[ $output == *"geometric mean 1.1, least 1.1, 0 below 1, 3 pairs" ]]
    jq -es 'length == 3' "$work/all.jsonl"
    refused 4 "NOT-RUN: no GPU in the stub" scripts/evidence/pairs.sh --problems "$work/problems" \
        --out "$work/none.jsonl"
    [ ! -e "$work/none.jsonl" ]
    # A peer that cannot be opened ends it before any pair.
    rm "$STUB/no_gpu"
    touch "$STUB/no_lib"
    refused 4 "NOT-RUN: lib: no library in the stub" scripts/evidence/pairs.sh --problems "$work/problems" \
        --out "$work/none.jsonl"
    [ ! -e "$work/none.jsonl" ]
}

@test "a kernel that is wrong fails; slower pairs and what a peer does not serve are said, each problem by name" {
    sed -i 's/^lib.*/lib 16 4 81/' "$STUB/times"
    BAD_ARGS="--seq 256" BAD_STATUS=not_run run -0 pairs
    [[ $output == *"two over made up 1.2, sustained: geometric mean 0.9, least 0.9, 2 below 1, 2 pairs"* ]]
    [[ $output == *"  0.9 (1 to 1) 2,8,128,64"*"  not_run, 1 pairs: made up" ]]
    rm "$work/p.jsonl"
    BAD_ARGS="--seq 256" BAD_STATUS=wrong run -1 pairs
    [[ $output == *"  wrong, 1 pairs: made up (2,8,256,64)" ]]
}

@test "drawn problems: the same from the same seed, all within the space; bad arguments are refused" {
    scripts/evidence/pairs.sh --random 300 --seed 5 --vs lib --dry-run >"$work/a"
    scripts/evidence/pairs.sh --random 300 --seed 5 --vs lib --dry-run | cmp - "$work/a"
    scripts/evidence/pairs.sh --random 300 --seed 6 --vs lib --dry-run | head -n 1 | grep -vqxFf "$work/a"
    sed -E 's/--(batch|heads|kv-heads|seq|seq-kv|dim) ([0-9]+)/\2,/g; s/.*two //; s/,( --causal)? --vs.*/,"\1"]/
        s/^/[/' "$work/a" | jq -es '
        length == 300 and all(.[]; .[0] <= 64 and .[1] <= 64 and
        .[1] % .[2] == 0 and .[1] / .[2] <= 8 and all(.[3, 4]; . >= 64 and . <= 16384) and .[5] >= 32 and
        .[5] <= 256 and .[5] % 8 == 0 and .[0] * .[1] * .[3] * .[4] <= 17179869184) and
        (map(select(.[3] != .[4])) | length | . > 75 and . < 125) and (map(.[5]) | unique | length) == 29 and
        (map(.[1] / .[2]) | unique) == [1, 2, 3, 4, 5, 6, 7, 8] and (map(.[6]) | unique | length) == 2'
    refused 2 "--lane takes I/N" pairs --lane 3/2
    refused 2 "--pace takes sustained, rested, or both" pairs --pace fast
    refused 2 "no kernel 'three'" pairs --kernel three
    refused 2 "no problem in lane 9/9" pairs --lane 9/9
    refused 2 "--out takes a FILE.jsonl" pairs --out "$work/x.json"
    [ "$(scripts/evidence/pairs.sh --dry-run | grep -c -- '--vs lib ')" -eq 56 ] # the fused library
}
