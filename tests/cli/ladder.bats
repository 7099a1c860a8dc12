#!/usr/bin/env bats
# ladder.sh on a made-up bench: each rung at the sweep's best tile against the one below, and what a cut leaves.
load stub_bench

climb() { # [WRONG]
    make_stub
    echo 'lib 16 4 30' >>"$STUB/times"
    printf '%064d' 3 >"$STUB/source.lib"
    printf '%s' "${1:-}" >"$STUB/wrong"
    mkdir -p "$work/ev"
    jq -n '[{group: "NVIDIA Stub|sm_90a|2,8,8,512,512,64,full|fp32", leader: "one",
        kernels: {one: {knobs: "m=16,warps=8"}, two: {knobs: "m=32,warps=4"}}},
        {group: "NVIDIA Stub|sm_90a|2,8,8,512,512,64,causal|fp32", leader: "one",
        kernels: {one: {knobs: "m=32,warps=8"}}}]' >"$work/ev/leaderboard.json"
    echo "--batch 2 --heads 8 --seq ${SEQ:-512} --dim 64" >"$work/problems"
    run scripts/evidence/ladder.sh --out "$work/ev/ladder.jsonl" --problems "$work/problems"
}

rows() { # JQ: true of the rows of the ladder
    jq -L scripts/lib -s 'import "ladder" as m; m::table' "$work/ev/ladder.jsonl" | jq -e "$1"
}

@test "every rung is at the tile that leads its sweep, and measured over the rung below at its own" {
    climb
    [ "$status" -eq 0 ]
    rows 'map({(.kernel): .}) | add | .one.config.m == 16 and .one.config.warps == 8 and .one.vs == null and
        .two.config.m == 32 and .two.config.warps == 4 and .two.vs == "one" and
        (.two.ratio * 70 - 40 | fabs) < 0.001 and .lib.vs == "two" and (.lib.ratio * 30 - 70 | fabs) < 0.001'
}

@test "without a leaderboard of the problem the rules give the tile; another board can be named" {
    SEQ=1024 climb
    [ "$status" -eq 0 ]
    rows 'map({(.kernel): .config.warps}) | add | .one == 4 and .two == 4'
    jq 'map(.group |= sub("512,512"; "1024,1024"))' "$work/ev/leaderboard.json" >"$work/board"
    scripts/evidence/ladder.sh --out "$work/ev/ladder.jsonl" --problems "$work/problems" --board "$work/board"
    rows 'map({(.kernel): .config.warps}) | add | .one == 8 and .two == 4'
}

@test "a rung that fails is said and left out; the next stands on the one below it" {
    climb "two 32 4
"
    [ "$status" -eq 1 ]
    [[ $output == *"two failed"* ]]
    rows 'map(.kernel) == ["lib", "one"] and all(.[]; .kernel != "lib" or .vs == "one")'
}

@test "without a GPU the ladder is not run" {
    make_stub no_gpu
    refused 4 "NOT-RUN: no GPU here" scripts/evidence/ladder.sh --out "$work/ev/ladder.jsonl"
    refused 2 "--problems: cannot read '2,8,512,64'" scripts/evidence/ladder.sh --problems 2,8,512,64
}

@test "--kernel measures these alone, each over the rung below, and leaves the others' records" {
    climb
    before=$(jq -S 'select(.kernel == "one")' "$work/ev/ladder.jsonl")
    ran=$(grep -c '^one 16 8 seed' "$STUB/runs")
    sed -i 's/^two 32 4 .*/two 32 4 35/' "$STUB/times"
    run -0 scripts/evidence/ladder.sh --out "$work/ev/ladder.jsonl" --problems "$work/problems" --kernel two
    [ "$(jq -S 'select(.kernel == "one")' "$work/ev/ladder.jsonl")" = "$before" ]
    [ "$(grep -c '^one 16 8 seed' "$STUB/runs")" -eq "$ran" ]
    [ "$(wc -l <"$work/ev/ladder.jsonl")" -eq 3 ]
    rows 'map({(.kernel): .}) | add | .two.p50_us == 35 and .two.vs == "one" and
        (.two.ratio * 35 - 40 | fabs) < 0.001 and .lib.p50_us == 30'
    refused 2 "no rung or library 'three'" scripts/evidence/ladder.sh --out "$work/ev/ladder.jsonl" --kernel one,three
}
