#!/usr/bin/env bats
# The tile grid of the WMMA kernels: every point runs, or is refused in words. No GPU.
# bats file_tags=slow
load helper

prepare() { ./fa_bench --compile-only --quiet || skip "no CUDA compiler"; }

wmma_kernels() {
    ./fa_bench --list-kernels --json - | jq -r '.[] | select(.tensor_cores == "wmma") | .name'
}

@test "M=64 runs in more than 48 KiB of shared memory, right to the last row" {
    for kernel in $(wmma_kernels); do
        ./fa_bench --kernel "$kernel" --m 64 --n 64 --warps 4 --stages 2 --arch sm_89 --device emu --batch 1 --heads 2 \
            --seq 129 --seeds 1 --check cpu --quiet --json "$work/r.json"
        jq -e '.status == "pass" and .config.m == 64 and .ptxas.smem_total_bytes > 49152' "$work/r.json"
    done
}

@test "a tile past 99 KiB is refused with both numbers, and runs where the limit is higher" {
    for kernel in $(wmma_kernels); do
        refused 3 "bytes of shared memory per block against the limit of 101376 on sm_89" \
            ./fa_bench --kernel "$kernel" --m 64 --n 128 --warps 8 --dim 128 --stages 2 --arch sm_89 \
            --compile-only --quiet
        ./fa_bench --kernel "$kernel" --m 64 --n 128 --warps 8 --dim 128 --stages 2 --arch sm_90a --compile-only --quiet
    done
}

@test "a sample of the grid has no holes" {
    scripts/house/compile_all.sh --run --device emu --sample 2 --out "$work/grid.json"
    jq -e 'all(.[]; .holes == 0 and .points == .pass + .infeasible) and (map(.pass) | add) > 0' "$work/grid.json"
}

@test "every point runs on each of the problems; what stands there of one is not taken for another" {
    local grid=(scripts/house/compile_all.sh --run --device emu --sample 1 --dims 64 --out "$work/grid.json")
    printf '%s\n' '# a comment' '--causal --seq 70 --heads 1 --batch 1 --check cpu' \
        '--seq 9 --heads 1 --batch 1 --check cpu' >"$work/problems"
    "${grid[@]}" --problems "$work/problems" --sample 2
    jq -es 'length > 0 and all(.[].point; endswith(" --causal --seq 70 --heads 1 --batch 1 --check cpu") or
        endswith(" --seq 9 --heads 1 --batch 1 --check cpu"))' "$work/grid.json.points.jsonl"
    "${grid[@]}" --resume
    jq -es 'length > 0 and all(.[].point; contains("--seq-kv 150"))' "$work/grid.json.points.jsonl"
    refused 2 "--problems takes a file that can be read, not '$work'" "${grid[@]}" --problems "$work"
}

@test "a run that ends in an error is a hole; one that leaves no record is an error of its own" {
    executable "$work/dies" <<'END'
./fa_bench "$@" | jq -c "if type == \"object\" and .problem.dim == 128 then $HOLE else . end"
END
    local grid=(scripts/house/compile_all.sh --run --device emu --sample 6 --out "$work/grid.json")
    HOLE='.status = "error" | .reason = "ended by signal 11"' FA_BENCH=$work/dies run -1 "${grid[@]}"
    [[ $output == *"HOLE "*"ended by signal 11"* ]]
    jq -e '(map(.points) | add == 12) and all(.[]; .holes == if .dim == 128 then .points else 0 end)' "$work/grid.json"
    HOLE=empty FA_BENCH=$work/dies run -6 "${grid[@]}"
    [[ $output == *"a point has left no line"* ]]
}

@test "what is cut off goes on where it was: every point once" {
    local grid=(scripts/house/compile_all.sh --run --device emu --sample 10 --jobs 2 --out "$work/grid.json")
    setsid "${grid[@]}" >/dev/null 2>&1 3>&- &
    victim=$!
    eventually lines "$work/grid.json.points.jsonl" 3
    kill -9 -- "-$victim"
    wait "$victim" || true
    sed -i '/}$/!d' "$work/grid.json.points.jsonl" # a line that was cut off
    first=$(wc -l <"$work/grid.json.points.jsonl")
    cp "$work/grid.json.points.jsonl" "$work/before"
    "${grid[@]}" --resume
    head -n "$first" "$work/grid.json.points.jsonl" | cmp - "$work/before"
    jq -es 'length == 20 and (map(.point) | unique | length == 20)' "$work/grid.json.points.jsonl"
    run ! pgrep -f "$work"
}

@test "--resume runs what is missing and what another source has made, and keeps the rest" {
    scripts/house/compile_all.sh --run --device emu --sample 2 --out "$work/grid.json"
    points=$work/grid.json.points.jsonl
    jq -c 'if input_line_number == 1 then .source_sha256 = "old" | .status = "error" elif input_line_number == 2
        then empty else .git = "kept" end' "$points" >"$work/p"
    mv "$work/p" "$points"
    scripts/house/compile_all.sh --run --device emu --sample 2 --resume --out "$work/grid.json"
    jq -es 'length == 4 and (map(select(.git == "kept")) | length) == 2 and all(.[]; .status != "error") and
        (map(.point) | unique | length) == 4' "$points"
    # A limit that is over leaves the rest for the next time.
    FA_BENCH=$PWD/fa_bench scripts/house/compile_all.sh --run --device emu --sample 3 --resume --seconds 1 \
        --out "$work/grid.json"
    jq -es 'length >= 4 and length <= 10 and all(.[]; .status == "pass" or .status == "infeasible")' "$points"
}
