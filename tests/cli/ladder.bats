#!/usr/bin/env bats
# ladder.sh on a made-up bench: each rung at the sweep's best tile against the one below, and what a cut leaves.
load helper
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
    run scripts/evidence/ladder.sh --out "$work/ev" --problems "${PROBLEM:-2,8,512,64}"
}

@test "every rung is at the tile that leads its sweep, and measured over the rung below at its own" {
    climb
    [ "$status" -eq 0 ]
    jq -e 'map({(.kernel): .}) | add | .one.config.m == 16 and .one.config.warps == 8 and .one.vs == null and
        .two.config.m == 32 and .two.config.warps == 4 and .two.vs == "one" and
        (.two.ratio * 70 - 40 | fabs) < 0.001 and
        .lib.vs == "two" and (.lib.ratio * 30 - 70 | fabs) < 0.001' "$work/ev/ladder.json"
}

@test "without a leaderboard of the problem the rules give the tile; another board can be named" {
    PROBLEM=2,8,1024,64 climb
    [ "$status" -eq 0 ]
    jq -e 'map({(.kernel): .config.warps}) | add | .one == 4 and .two == 4' "$work/ev/ladder.json"
    jq 'map(.group |= sub("512,512"; "1024,1024"))' "$work/ev/leaderboard.json" >"$work/board"
    scripts/evidence/ladder.sh --out "$work/ev" --problems 2,8,1024,64 --board "$work/board"
    jq -e 'map({(.kernel): .config.warps}) | add | .one == 8 and .two == 4' "$work/ev/ladder.json"
}

@test "a rung that fails is said and left out; the next stands on the one below it" {
    climb "two 32 4
"
    [ "$status" -eq 1 ]
    [[ $output == *"two failed"* ]]
    jq -e 'map(.kernel) == ["lib", "one"] and all(.[]; .kernel != "lib" or .vs == "one")' "$work/ev/ladder.json"
}

@test "without a GPU the ladder is not run" {
    make_stub
    touch "$STUB/no_gpu"
    run scripts/evidence/ladder.sh --out "$work/ev"
    [ "$status" -eq 4 ]
    [[ $output == *NOT-RUN* ]]
}

@test "--kernels measures these alone, each over the rung below, and leaves the others' records" {
    climb
    before=$(jq -S 'map(select(.kernel == "one"))' "$work/ev/ladder.json")
    ran=$(grep -c '^one 16 8 seed' "$STUB/runs")
    sed -i 's/^two 32 4 .*/two 32 4 35/' "$STUB/times"
    run scripts/evidence/ladder.sh --out "$work/ev" --problems 2,8,512,64 --kernels two
    [ "$status" -eq 0 ]
    [ "$(jq -S 'map(select(.kernel == "one"))' "$work/ev/ladder.json")" = "$before" ]
    [ "$(grep -c '^one 16 8 seed' "$STUB/runs")" -eq "$ran" ]
    jq -e 'map({(.kernel): .}) | add | .two.p50_us == 35 and .two.vs == "one" and
        (.two.ratio * 35 - 40 | fabs) < 0.001 and .lib.p50_us == 30' "$work/ev/ladder.json"
    run scripts/evidence/ladder.sh --out "$work/ev" --kernels three
    [ "$status" -eq 2 ]
    [[ $output == *"no rung or library 'three'"* ]]
}
