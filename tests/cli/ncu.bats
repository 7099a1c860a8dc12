#!/usr/bin/env bats
# The profile's parser and gates, on reports recorded on an H200, and its refusals.
load stub_bench

profile() { scripts/ncu_profile.sh "$@"; }
gates_of() { # KERNEL: the result of its recorded report, as JSON
    profile --import "tests/golden/ncu_h200_$1.csv" --record "tests/golden/ncu_h200_$1.record.json" --out "$work/ncu" \
        >"$work/table" || true
    cat "$work/ncu/ncu_h200_$1.json"
}

# An ncu that leaves a report and prints recorded text; NCU_SAYS is what it says while profiling.
make_ncu() {
    executable "$work/bin/ncu" <<'END'
if [[ $1 == --import ]]; then
    cat "$NCU_CSV"
    exit 0
fi
while [[ $# -gt 0 && $1 != -o ]]; do shift; done
echo report >"$2.ncu-rep"
shift 2
"$@"
echo "==PROF== ${NCU_SAYS:-done}"
END
    export PATH=$work/bin:$PATH NCU_CSV=$PWD/tests/golden/ncu_h200_light.csv
}

@test "recorded light: every gate passes, the tensor gate does not apply" {
    cd tests # paths are below the caller's folder
    run -0 ../scripts/ncu_profile.sh --import golden/ncu_h200_light.csv --record golden/ncu_h200_light.record.json
    cd ..
    [[ ${lines[0]} == "light on NVIDIA H200: 1 launch(es) of fa_kernel" ]]
    [[ $output == *"NOT-RUN  tensor pipe active"*"declares no tensor cores"* ]]
    [ "$(grep -c '^PASS' <<<"$output")" -eq 7 ]
    gates_of light | jq -e '.verdict == "PASS" and .metrics.registers == 128 and .metrics.smem_block_bytes == 34816 and
        .metrics.duration_ns > 20000 and
        .metrics.bank_conflicts_store > 1000 and (.metrics.bank_conflict_store_pct | . > 3.8 and . < 3.9) and
        .metrics.warps_launched_pct > 0'
}

@test "recorded wmma fails on the tensor pipe and on bank conflicts; of wgmma the tensor instructions are seen" {
    run -1 profile --import tests/golden/ncu_h200_wmma.csv --record tests/golden/ncu_h200_wmma.record.json
    [[ $output == *"FAIL     tensor pipe active "*"14.5 %  >= 40"* ]]
    [[ $output == *"FAIL     bank conflicts, stores"* ]]
    gates_of wmma | jq -e '.verdict == "FAIL" and ([.gates[] | select(.verdict == "FAIL")] | length == 2)'
    gates_of wgmma | jq -e '.metrics.tensor_instructions == 24576 and .metrics.tensor_active_pct == 21.31 and
        .tensor_cores == "wgmma"'
}

@test "thresholds come from the file" {
    jq 'map(if .value == "tensor_active_pct" then .at_least = 10 elif .value == "bank_conflict_store_pct"
        then .at_most = 50 else . end)' scripts/lib/ncu/thresholds.json >"$work/t.json"
    run -0 profile --import tests/golden/ncu_h200_wmma.csv --record tests/golden/ncu_h200_wmma.record.json \
        --thresholds "$work/t.json"
    echo '[{"gate": "registers", "value": "registers", "unit": "", "at_most": 64}]' >"$work/t.json"
    run -1 profile --import tests/golden/ncu_h200_light.csv --record tests/golden/ncu_h200_light.record.json \
        --thresholds "$work/t.json"
    [[ $output == *"FAIL     registers"*"128"*"<= 64"* ]]
}

@test "spills and a block beyond the arch's shared memory fail" {
    jq '.ptxas.spill_store_bytes = 8' tests/golden/ncu_h200_light.record.json >"$work/r.json"
    run -1 profile --import tests/golden/ncu_h200_light.csv --record "$work/r.json"
    [[ $output == *"FAIL     spills"*"8 B"* ]]
    jq '.device.smem_block_bytes = 20000' tests/golden/ncu_h200_light.record.json >"$work/r.json"
    run -1 profile --import tests/golden/ncu_h200_light.csv --record "$work/r.json"
    [[ $output == *"FAIL     shared memory of a block"* ]]
}

@test "a metric that is not in the report, or not a number, is NOT-RUN and never a pass" {
    sed 's/dram__throughput[a-z_.]*/another__metric/g' tests/golden/ncu_h200_light.csv >"$work/x.csv"
    run -4 profile --import "$work/x.csv" --record tests/golden/ncu_h200_light.record.json
    [[ $output == *"NOT-RUN  DRAM throughput"*"not in the report"* ]]
    tail -n 1 tests/golden/ncu_h200_light.csv | sed -E 's/"[0-9][0-9.,]*"/"n\/a"/g; s/^"n\/a"/"0"/' >"$work/row"
    { head -n 2 tests/golden/ncu_h200_light.csv; cat "$work/row"; } >"$work/x.csv"
    run -4 profile --import "$work/x.csv" --record tests/golden/ncu_h200_light.record.json
    [ -z "$(grep '^PASS' <<<"$output" | grep -v spills)" ]
}

@test "no launch, or more than one, is NOT-RUN" {
    head -n 2 tests/golden/ncu_h200_light.csv >"$work/x.csv"
    run -4 profile --import "$work/x.csv" --record tests/golden/ncu_h200_light.record.json
    [[ $output == *"holds 0 launches"* ]]
    { cat tests/golden/ncu_h200_light.csv; tail -n 1 tests/golden/ncu_h200_light.csv | sed 's/^"0"/"1"/'
    } >"$work/x.csv"
    run -4 profile --import "$work/x.csv" --record tests/golden/ncu_h200_light.record.json
    [[ $output == *"holds 2 launches"* ]]
}

@test "every metric has a name that the chips know" {
    for chip in gh100 ad104; do
        jq -r '.metrics | to_entries[] | [.key, (.value | map(split(".")[0]) | join("|"))] | @tsv' \
            scripts/lib/ncu/metrics.json | while IFS=$'\t' read -r ours theirs; do
            grep -qE "^$chip (.* )?($theirs)( |\$)" tests/golden/ncu_query.txt ||
                { echo "$ours: no $theirs on $chip"; exit 1; }
        done
    done
}

@test "no ncu, no binary, no GPU: NOT-RUN, exit 4" {
    command -v ncu >/dev/null && skip "there is an ncu"
    run -4 profile --kernel light
    [[ $output == *"NOT-RUN: no ncu in PATH"* ]]
    make_ncu
    FA_BENCH=$work/none run -4 profile --kernel light
    command -v nvidia-smi >/dev/null && skip "there is a GPU"
    run -4 profile --kernel light
    [[ $output == *"NOT-RUN: "*"libcuda"* ]]
}

@test "no permission for the counters: how to get it, NOT-RUN, exit 4" {
    make_ncu
    make_stub
    NCU_SAYS='==ERROR== ERR_NVGPUCTRPERM - The user does not have permission' run profile --kernel one --out "$work/ncu"
    [ "$status" -eq 4 ]
    [[ $output == *"NOT-RUN: no permission"*"NVreg_RestrictProfilingToAdminUsers=0"* ]]
}

@test "a run: one launch, no timing loop, and the files" {
    make_ncu
    make_stub
    run -4 profile --kernel one --m 16 --warps 8 --out "$work/ncu"
    grep -q -- '--kernel one --m 16 --warps 8 --device cuda --timing none --seeds 1 --check cpu' "$STUB/commands"
    [ -e "$work/ncu/one_2x8x512x64_m16_n64_warps8_accfp32.ncu-rep" ]
    jq -e '.config.warps == 8 and .launches == 1' "$work/ncu/one_2x8x512x64_m16_n64_warps8_accfp32.json"
    echo 'one 16 8' >"$STUB/wrong"
    run -1 profile --kernel one --m 16 --warps 8 --out "$work/ncu"
    [[ $output == "FAIL "*"wrong: made up" ]]
    [[ $(profile --kernel one --dry-run) \
        == *"--clock-control none --target-processes all -k fa_kernel --launch-count 1"* ]]
}

@test "bad arguments are refused" {
    refused 2 "--import takes a file" profile --import "$work/none.csv"
    refused 2 "tests/golden/ncu_query.txt:1: not JSON" profile --thresholds tests/golden/ncu_query.txt
    refused 2 "--timing is this script's own" profile --timing graph
}
