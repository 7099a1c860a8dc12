#!/usr/bin/env bats
# The tile grid of the WMMA kernels: every point runs, or is refused in words. No GPU.
load helper

wmma_kernels() {
    ./fa_bench --list-kernels --json - | jq -r '.[] | select(.tensor_cores == "wmma") | .name'
}

@test "M=64 runs in more than 48 KiB of shared memory, right to the last row" {
    ./fa_bench --compile-only --quiet || skip "no CUDA compiler"
    for kernel in $(wmma_kernels); do
        ./fa_bench --kernel "$kernel" --m 64 --n 64 --warps 4 --stages 2 --arch sm_89 --device emu --batch 1 --heads 2 --seq 129 --seeds 1 \
            --check cpu --quiet --json "$work/r.json"
        jq -e '.status == "pass" and .config.m == 64 and .ptxas.smem_total_bytes > 49152' "$work/r.json"
    done
}

@test "a tile past 99 KiB is refused with both numbers, and runs where the limit is higher" {
    ./fa_bench --compile-only --quiet || skip "no CUDA compiler"
    for kernel in $(wmma_kernels); do
        refused 3 "bytes of shared memory per block against the limit of 101376 on sm_89" \
            ./fa_bench --kernel "$kernel" --m 64 --n 128 --warps 8 --dim 128 --stages 2 --arch sm_89 --compile-only --quiet
        ./fa_bench --kernel "$kernel" --m 64 --n 128 --warps 8 --dim 128 --stages 2 --arch sm_90a --compile-only --quiet
    done
}

@test "a sample of the grid has no holes" {
    ./fa_bench --compile-only --quiet || skip "no CUDA compiler"
    scripts/tile_grid.sh --device emu --sample 4 --out "$work/grid.json"
    jq -e 'all(.[]; .holes == 0 and .points == .pass + .infeasible) and (map(.pass) | add) > 0' "$work/grid.json"
}

@test "a run that leaves no record is a hole, not a point less" {
    ./fa_bench --compile-only --quiet || skip "no CUDA compiler"
    cat >"$work/dies" <<'END'
#!/usr/bin/env bash
[[ "$*" != *"--dim 128"* ]] || exit 139
while [[ $# -gt 0 ]]; do # one that dies takes the runs after it with it
    case $1 in
        --runs) if grep -q -- "--dim 128" "$2"; then sed -i '/--dim 128/,$d' "$2"; died=1; fi; given+=("$1" "$2"); shift 2 ;;
        *) given+=("$1"); shift ;;
    esac
done
set -- "${given[@]}"
[[ ${died:-0} -eq 0 ]] || { ./fa_bench "$@"; exit 139; }
exec ./fa_bench "$@"
END
    chmod +x "$work/dies"
    FA_BENCH=$work/dies run scripts/tile_grid.sh --device emu --sample 3 --out "$work/grid.json"
    [ "$status" -eq 1 ]
    [[ $output == *"HOLE "*"no record"* ]]
    jq -e 'map(.points) | add == 6' "$work/grid.json"
    jq -e 'map(select(.dim == 64) | .holes) | add == 0' "$work/grid.json" # not of those that came after it
}

@test "--resume runs what is missing and what another source has made, and keeps the rest" {
    ./fa_bench --compile-only --quiet || skip "no CUDA compiler"
    scripts/tile_grid.sh --device emu --sample 3 --out "$work/grid.json"
    points=$work/grid.json.points.jsonl
    jq -c 'if input_line_number == 1 then .source_sha256 = "old" | .status = "error" elif input_line_number == 2 then empty else .git = "kept" end' "$points" >"$work/p"
    mv "$work/p" "$points"
    scripts/tile_grid.sh --device emu --sample 3 --resume --out "$work/grid.json"
    jq -es 'length == 6 and (map(select(.git == "kept")) | length) == 4 and all(.[]; .status != "error") and (map(.point) | unique | length) == 6' "$points"
    # A limit that is over leaves the rest for the next time.
    FA_BENCH=$PWD/fa_bench scripts/tile_grid.sh --device emu --sample 5 --resume --seconds 1 --out "$work/grid.json"
    jq -es 'length >= 6 and length <= 16 and all(.[]; .status == "pass" or .status == "infeasible")' "$points"
}
