#!/usr/bin/env bash
# Makes the committed evidence of this GPU from the bench's own tools.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/evidence.sh PART... [--out DIR] [--budget N] [--dry-run]
Parts:
  first      the first two rungs on the canonical problem: records, their ratio, wall time of a run, cold compile
  ladder     every rung against the one below it, and the libraries, on three problems
  sanitize   compute-sanitizer over every kernel (scripts/ci_gate.sh --sanitize)
  gate       every kernel over the problem matrix of correctness (scripts/ci_gate.sh)
  sweep      the tile spaces of the rungs up to WMMA on the canonical problem: leaderboard, variants per second
             (--budget N candidates each, default 48)
  grid       every point of the WMMA tile grids passes or is infeasible (scripts/tile_grid.sh)
Writes to evidence/<gpu>/ (default) or DIR. Needs a GPU: exit 4 without one. FA_BENCH names the binary (default ./fa_bench).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
bench=${FA_BENCH:-./fa_bench}
parts=() out='' dry_run=0 budget=48
while [[ $# -gt 0 ]]; do
    case $1 in
        first | ladder | sanitize | gate | sweep | grid) parts+=("$1") ;;
        --out) [[ $# -ge 2 ]] || { echo "evidence.sh: --out needs a folder" >&2; exit 2; }; out=$2; shift ;;
        --budget) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "evidence.sh: --budget takes a whole number from 1" >&2; exit 2; }; budget=$2; shift ;;
        --dry-run) dry_run=1 ;;
        --help) usage; exit 0 ;;
        *) echo "evidence.sh: unknown argument $1 (see --help)" >&2; exit 2 ;;
    esac
    shift
done
[[ ${#parts[@]} -gt 0 ]] || { usage >&2; exit 2; }
gpu=$("$bench" --version | sed -n 's/^gpu 0 *NVIDIA \([^ ]*\).*/\1/p' | tr '[:upper:]' '[:lower:]')
[[ -n $gpu || $dry_run -eq 1 ]] || { echo "evidence.sh: NOT-RUN: no GPU here" >&2; exit 4; }
out=${out:-evidence/${gpu:-gpu}}
[[ $dry_run -eq 1 ]] || mkdir -p "$out"

# The lowest rungs, in the order of the registry.
mapfile -t rungs < <("$bench" --list-kernels --json - | jq -r '.[] | select(.variant_of == null and .kind == "hand") | .name')
baseline=${rungs[0]} tiled=${rungs[1]}

run() { # RECORD OPTIONS...: one run, its record kept
    local record=$out/$1
    shift
    echo "fa_bench $*"
    [[ $dry_run -eq 1 ]] && return
    mkdir -p "$(dirname "$record")"
    "$bench" "$@" --quiet --json "$record"
}

seconds() { # COMMAND...: wall seconds
    local start=$EPOCHREALTIME
    "$@" >/dev/null
    awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.3f", b - a}'
}

part_first() {
    run first/baseline.json --kernel "$baseline"
    run first/tile.json --kernel "$tiled"
    run first/ratio.json --kernel "$tiled" --vs "$baseline"
    [[ $dry_run -eq 1 ]] && return
    local warm cold cache
    warm=$(seconds "$bench" --kernel "$tiled" --quiet)
    cache=$(mktemp -d)
    XDG_CACHE_HOME=$cache "$bench" --kernel "$tiled" --compile-only --quiet --json "$cache/cold.json"
    cold=$(jq .provenance.compile_s "$cache/cold.json")
    rm -rf "$cache"
    jq -n --argjson warm "$warm" --argjson cold "$cold" --slurpfile vs "$out/first/ratio.json" \
        '{what: "canonical problem (2,8,512,64): the shared-memory tile against the baseline, wall time of a whole run of it with a warm cache, its cold compile",
          kernel: $vs[0].kernel, vs: $vs[0].vs.kernel, ratio: $vs[0].vs.ratio, ci95: $vs[0].vs.ratio_ci95, run_wall_s: $warm, cold_compile_s: $cold, device: $vs[0].device}' \
        >"$out/first/summary.json"
}

# The tile that the ladder found best for a kernel on a problem, "m=64,n=128,..."; nothing where there was none.
best_tile() { # KERNEL B H S D
    jq -r --arg k "$1" --arg p "$2,$3,$4,$5" '[.[] | select(.problem == $p and .kernel == $k and .tile)][0].config // empty |
        to_entries | map("\(.key)=\(.value)") | join(",")' "$out/ladder.json" 2>/dev/null || true
}

part_ladder() {
    local options=(--out "$out")
    [[ $dry_run -eq 0 ]] || options+=(--dry-run)
    echo "ladder.sh ${options[*]}"
    scripts/ladder.sh "${options[@]}" || true # a step that failed is not in the table
    [[ ! -s $out/ladder.json || $dry_run -eq 1 ]] || gate_baseline
}

# What scripts/ci_gate.sh holds the rungs to: the ratio over the lowest rung, the product of the ladder's steps up to there.
gate_baseline() {
    local kernel tiles
    tiles=$(for kernel in "${rungs[@]}"; do jq -n --arg k "$kernel" --arg t "$(best_tile "$kernel" 2 8 512 64)" '{($k): $t}'; done | jq -sc add)
    jq --argjson tiles "$tiles" --args 'def options: if . == "" then "" else split(",") | map(" --" + sub("="; " ")) | add end;
        $ARGS.positional[0] as $base | map(select(.problem == "2,8,512,64")) as $rows |
        reduce $ARGS.positional[1:][] as $kernel ({over: {($base): 1}, rows: []}; ([$rows[] | select(.kernel == $kernel and .ratio != null)][0]) as $row |
            if $row and .over[$row.vs] then .over[$kernel] = .over[$row.vs] * $row.ratio |
                .rows += [{kernel: $kernel, vs: ($base + (if $tiles[$base] == "" then "" else ":" + $tiles[$base] end)),
                    args: ("--timing graph" + ($tiles[$kernel] | options)), ratio: .over[$kernel]}] else . end) | .rows' \
        "${rungs[@]}" <"$out/ladder.json" >"$out/gate_baseline.json"
}

part_sanitize() {
    run_gate=(scripts/ci_gate.sh --sanitize --out "$out/sanitize_run" --jobs 4)
    echo "${run_gate[*]}"
    [[ $dry_run -eq 1 ]] && return
    "${run_gate[@]}"
    cp "$out/sanitize_run/summary.json" "$out/sanitize.json"
    rm -rf "$out/sanitize_run"
}

part_gate() {
    run_gate=(scripts/ci_gate.sh --out "$out/gate_run" --jobs 12)
    echo "${run_gate[*]}"
    [[ $dry_run -eq 1 ]] && return
    "${run_gate[@]}" || true # a failure stands in the summary
    cp "$out/gate_run/summary.json" "$out/gate.json"
    cp "$out/gate_run/junit.xml" "$out/gate.xml"
    rm -rf "$out/gate_run"
}

part_sweep() {
    local kernel start
    for kernel in $(kernels_of none wmma); do
        [[ $kernel == "$baseline" ]] && continue
        echo "evo_sweep.sh --kernel $kernel"
        [[ $dry_run -eq 1 ]] && continue
        start=$EPOCHREALTIME
        scripts/evo_sweep.sh --kernel "$kernel" --strategy evo --budget "$budget" --out "$out" 2>&1 | tail -n 3
        awk -v a="$start" -v b="$EPOCHREALTIME" -v k="$kernel" -v n="$budget" 'BEGIN {printf "%s: %d candidates in %.1f s, %.2f per second\n", k, n, b - a, n / (b - a)}' |
            tee -a "$out/sweep_rate.txt"
    done
}

part_grid() {
    echo "tile_grid.sh"
    [[ $dry_run -eq 1 ]] && return
    scripts/tile_grid.sh --jobs 32 --out "$out/tile_grid.json" || true # a hole stands in the table
    gzip -9f "$out/tile_grid.json.points.jsonl"
}

# Names of the hand kernels whose tensor-core class is one of the words.
kernels_of() {
    "$bench" --list-kernels --json - | jq -r --args '.[] | select(.kind == "hand" and (.tensor_cores as $t | $ARGS.positional | index($t))) | .name' "$@"
}

for part in "${parts[@]}"; do
    "part_$part"
done
