#!/usr/bin/env bats
# The measurement of sweeps over several GPUs, on made-up records.
load stub_bench

# bats test_tags=slow
@test "sweeps over 1 and 2 GPUs: the same candidates, all anew, a rate each" {
    make_stub
    printf '#!/bin/sh\nprintf "GPU 0: a\\nGPU 1: b\\n"\n' | executable "$work/bin/nvidia-smi"
    local script=$PWD/scripts/evidence/sweep_scaling.sh # from any folder
    (cd "$work" && PATH=$work/bin:$PATH "$script" --gpus 1,2 --kernel one --out rates -- --seq 64)
    jq -es 'map(.gpus) == [1, 2] and all(.[]; .machine.gpus == 2 and .measured == 4 and .per_second > 0) and
        all(.[]; .space == 4 and .cores_each == 0)' "$work/rates"
    jq -c '.seconds = 40 / .gpus / (if .gpus > 1 then 0.95 else 1 end) | .per_second = .candidates / .seconds' \
        "$work/rates" >"$work/made_up"
    scripts/evidence/sweep_scaling.sh --table "$work/made_up" | tail -n 1 | grep -q '| 0.95 |$'
    [ "$(nproc)" -lt 2 ] || scripts/evidence/sweep_scaling.sh --gpus 1 --cores 2 --kernel one --out "$work/alike" --
    [ "$(nproc)" -lt 2 ] || jq -e '.cores_each == 2 and .pool == 2' "$work/alike"
    refused 4 "--cores takes 99999 for 1 GPUs" scripts/evidence/sweep_scaling.sh --cores 99999 --kernel one
    touch "$STUB/no_gpu"
    refused 4 "no GPU here" scripts/evidence/sweep_scaling.sh --kernel one
    refused 2 "--gpus takes a list of numbers, not 'two'" scripts/evidence/sweep_scaling.sh --gpus two
    refused 2 "no file" scripts/evidence/sweep_scaling.sh --table nowhere
}

@test "the scripts around sweeps take the repository's fa_bench, from any folder" {
    local scripts=$PWD/scripts
    cd "$work"
    "$scripts/evo_sweep.sh" --kernel light --strategy grid --budget 1 --out lb -- "${small[@]}"
    jq -es 'length == 1 and .[0].status == "pass"' lb/leaderboard.jsonl
    "$scripts/evo_test_one.sh" 16 4 8 --kernel light -- "${small[@]}" | grep PASS
    ! ls /dev/nvidia[0-9]* 2>/dev/null || skip "there is a GPU"
    refused 4 "no GPU here" "$scripts/evidence/sweep_scaling.sh"
}
