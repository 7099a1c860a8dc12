#!/usr/bin/env bats
# --bound: what machine code cannot be faster than, without a GPU.
load helper

# fa_bench looks in PATH, in build/tools and in the toolkit.
need_nvdisasm() {
    command -v nvdisasm >/dev/null || [ -x build/tools/py/nvidia/cu13/bin/nvdisasm ] ||
        [ -x /usr/local/cuda/bin/nvdisasm ] || skip "no nvdisasm"
}

mma=(--kernel mma --arch sm_89 --m 64 --n 64) # one tile: compiled once

bound() { # OPTIONS...: the record's bound
    ./fa_bench --compile-only --bound --quiet --json "$work/bound.json" "$@"
    record_holds "$work/bound.json" .bound >&2
    jq .bound "$work/bound.json"
}

@test "a kernel on tensor cores: no faster than its products, and the band of the L4's clocks" {
    need_nvdisasm
    bound "${mma[@]}" --seq 2048 >"$work/mma"
    # 4 * 64 * 2048^2 * 16 operations at 1024 per clock on 58 multiprocessors, less the few that FMA can do.
    jq -e '.clocks > 0.93 * 289262 and .clocks < 1.6 * 289262' "$work/mma"
    jq -e '(.us * .clock_mhz_max / .clocks - 1 | fabs) < 1e-9' "$work/mma"
    jq -e '.clock_mhz_max == 2040 and .clock_mhz_min == 795' "$work/mma"
    jq -e '(.us_at_min_clock * 795 / (.us * 2040) - 1 | fabs) < 1e-9 and .binds == "tensor" and
        (.us_at_power_low * 892 / .clocks - 1 | fabs) < 1e-9 and .clock_mhz_power_high == 1195 and
        .percent_of_bound == null' "$work/mma"
}

@test "a kernel on CUDA cores: far above the tensor cores' time" {
    need_nvdisasm
    bound --kernel light --arch sm_89 >"$work/light"
    bound "${mma[@]}" >"$work/mma"
    jq -es '.[0].clocks > 3 * .[1].clocks and .[0].pipe_clocks.tensor == 0' "$work/light" "$work/mma"
}

@test "twice the keys, twice the bound; cold, the bytes count" {
    need_nvdisasm
    bound "${mma[@]}" --seq 4096 --seq-kv 4096 >"$work/one"
    bound "${mma[@]}" --seq 4096 --seq-kv 8192 >"$work/two"
    jq -es '.[1].clocks / .[0].clocks > 1.95 and .[1].clocks / .[0].clocks < 2.05' "$work/one" "$work/two"
    bound "${mma[@]}" --splits 1 --batch 64 --seq 1 --seq-kv 4096 --l2 cold >"$work/cold"
    jq -e '.binds == "dram" and .dram_us > 1700' "$work/cold" # 537 MB at 300 GB/s
}

@test "where it cannot be told it is unknown, with the reason" {
    need_nvdisasm
    bound --kernel light --arch sm_120 >"$work/new"
    jq -e '.unknown == "no rates of this architecture are known"' "$work/new"
    ./fa_bench --kernel scalar --device emu --seq 16 --seeds 1 --bound --quiet --json "$work/emu.json"
    jq -e '.bound.unknown | startswith("no machine code")' "$work/emu.json"
}

@test "without --bound there is none" {
    ./fa_bench --compile-only --kernel mma --arch sm_89 --quiet --json - | jq -e '.bound == null'
}

# The bound's points as bound_evidence.sh leaves them.
points() { # FILE JQ...: the committed points, changed
    zcat evidence/h200/bound.json.points.jsonl.gz | jq -c "${@:2}" | gzip -nc >"$1.points.jsonl.gz"
    echo '{}' >"$1"
}

@test "no measured time of the evidence lies below its bound; one that does fails" {
    points "$work/all.json" .
    scripts/evidence/bound_evidence.sh --judge --out "$work/all.json"
    jq -e '.points > 1000 and .same_code > 1000 and .below_bound == []' "$work/all.json"
    jq -e '{points, same_code, with_bound}' "$work/all.json" >"$work/counted"
    jq '{points, same_code, with_bound}' evidence/h200/bound.json | diff - "$work/counted"
    points "$work/bad.json" 'if input_line_number == 9 then .percent_of_bound = 101 | .code_of = "today" else . end'
    run -1 scripts/evidence/bound_evidence.sh --judge --out "$work/bad.json"
    [[ $output == *"BELOW: "* ]]
    points "$work/old.json" '.percent_of_bound = 101 | .code_of = null' # of other machine code: proves nothing
    run -1 scripts/evidence/bound_evidence.sh --judge --out "$work/old.json"
    jq -e '.below_bound == [] and .other_code_below_bound > 1000' "$work/old.json"
}

@test "the estimate is what the script fitted, and the record says of what it is made" {
    need_nvdisasm
    bound --kernel light --arch sm_90a >"$work/light"
    jq -es '.[0] as $b | .[1] as $rank |
        ([$rank.weights.light | to_entries[] | .value * $b.estimate_terms_us[.key]] | add) |
        . / $b.estimate_us - 1 | fabs < 0.01' "$work/light" evidence/h200/bound_rank.json
    jq -e '.estimate_us_low < .estimate_us and .estimate_us < .estimate_us_high and .us < .estimate_us' "$work/light"
}

@test "a time is held against the machine code of its commit, else today's; of other code it proves nothing" {
    need_nvdisasm
    git rev-parse -q --verify HEAD >/dev/null || skip "no clone"
    ./fa_bench --compile-only --kernel light --arch sm_90a --quiet --json "$work/light.json"
    jq -c --arg git "$(git rev-parse --short=12 HEAD)" '.timing = {p50_us: 1000, sm_clock_mhz: {p50: 1500}} |
        (.provenance.git = $git), (.provenance.git = "no" | .timing.p50_us = 2000),
        (.provenance.code_sha256 = "other" | .timing.p50_us = 1), (.timing.p50_us = 0.5 | .provenance.git = $git)' \
        "$work/light.json" >"$work/rows.jsonl"
    run -1 scripts/evidence/bound_evidence.sh --out "$work/some.json" "$work/rows.jsonl"
    zcat "$work/some.json.points.jsonl.gz" | jq -es 'sort_by(-.us) | map(.code_of) |
        .[0] == "today" and .[1] != null and .[2] == null and .[3] != null'
    jq -e '.points == 4 and .same_code == 3 and (.below_bound | map(.us)) == [0.5] and .other_code_below_bound == 1' \
        "$work/some.json"
}

@test "the estimate is fitted on one half, judged on the other, the same each time" {
    mkdir "$work/dir"
    cp evidence/h200/bound.json.points.jsonl.gz "$work/dir"
    studies/estimate.py --dir "$work/dir" >"$work/table"
    diff "$work/dir/bound_rank.json" evidence/h200/bound_rank.json
    grep -q '| `light` |' "$work/table"
    jq -e '.fitted + .judged > 300 and .error.median < 0.25 and (.spaces | length) == 3' "$work/dir/bound_rank.json"
}

@test "the page of the L4 is what its records give, and no estimate lies below its bound" {
    mkdir "$work/l4"
    cp evidence/l4/bound.jsonl.gz "$work/l4"
    scripts/evidence/l4.sh --page --dir "$work/l4"
    diff evidence/l4/README.md "$work/l4/README.md"
    zcat evidence/l4/bound.jsonl.gz | jq -es 'length > 200 and
        all(.[]; .bound.us > 0.3 and .bound.estimate_us_low >= .bound.us) and
        (map(select(.rule)) | group_by(.problem) | all(.[]; length >= 5))'
    grep -q 'Impossible: `light`, `scalar`' "$work/l4/README.md"
}

@test "the gate fails where a time lies below its bound" {
    PYTHONPATH=scripts/lib/gate python3 -c 'import conform, json
row = {"kernel": "light", "vs": "scalar", "args": "", "ratio": 2}
for percent in 99, 101:
    print(json.dumps(conform.speed_case({"vs": {"ratio": 2}, "bound": {"percent_of_bound": percent}}, row, 0)))' |
        jq -es '.[0].verdict == "passed" and .[1].verdict == "failed" and (.[1].text | test("below its bound"))'
}
