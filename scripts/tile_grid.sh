#!/usr/bin/env bash
# Runs every point of a kernel's tile grid: each one passes, or is infeasible in words, within the timeout; counts both.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/tile_grid.sh [options]
  --kernel NAME    repeatable (default: every kernel with a wmma tile grid)
  --dims LIST      head dimensions (default 64,128)
  --arch sm_XX     target of the figures; with --device emu also of the limits (default: the device's, sm_89 without one)
  --device WHERE   auto, cuda or emu (default auto)
  --sample N       N points per kernel, drawn with a fixed seed, instead of all
  --timeout SEC    per point (default 60)
  --jobs N         at once (default: the cores)
  --out FILE       table as JSON (default build/tile_grid.json); FILE.points.jsonl holds every point
  --dry-run        print how many points
Exit: 0 no holes, 1 a point neither passed nor was infeasible in words, 2 usage, 4 not run. FA_BENCH names the binary.
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export bench=${FA_BENCH:-./fa_bench}
dims=64,128 arch='' device=auto sample=0 limit=60 jobs=$(nproc) out=build/tile_grid.json dry_run=0 only='[]'
while [[ $# -gt 0 ]]; do
    case $1 in
        --dry-run) dry_run=1 ;;
        --help) usage; exit 0 ;;
        --kernel | --dims | --arch | --device | --sample | --timeout | --jobs | --out)
            [[ $# -ge 2 ]] || { echo "tile_grid.sh: $1 needs a value" >&2; exit 2; }
            case $1 in
                --kernel) only=$(jq -c --arg k "$2" '. + [$k]' <<<"$only") ;;
                --dims) dims=$2 ;; --arch) arch=$2 ;; --device) device=$2 ;; --sample) sample=$2 ;;
                --timeout) limit=$2 ;; --jobs) jobs=$2 ;; --out) out=$2 ;;
            esac
            shift
            ;;
        *) echo "tile_grid.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
    esac
    shift
done
[[ $sample =~ ^[0-9]+$ && $jobs =~ ^[1-9][0-9]*$ ]] || { echo "tile_grid.sh: --sample and --jobs take whole numbers" >&2; exit 2; }
[[ -x $bench ]] || { echo "tile_grid.sh: no $bench: run make" >&2; exit 4; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The grid of the registry's row without the knobs that only vary the layout (swizzle) or the class (acc).
"$bench" --list-kernels --json - | jq -r --argjson only "$only" --arg dims "$dims" '
    .[] | select(.kind == "hand") | select(if ($only | length) > 0 then .name as $n | $only | index($n) else .tensor_cores == "wmma" end) |
    .name as $k | ($dims | split(",")[]) as $dim |
    [.values | {m, n, warps, vec, stages} | to_entries[] | .key as $n | [.value[] | " --\($n) \(.)"]] | [combinations] | .[] |
    "--kernel \($k) --dim \($dim)" + add' >"$work/all"
if [[ $sample -gt 0 ]]; then
    awk '{print $2}' "$work/all" | sort -u | while read -r kernel; do
        grep -- "--kernel $kernel " "$work/all" | shuf -n "$sample" --random-source=<(yes fa_bench)
    done >"$work/points"
else
    cp "$work/all" "$work/points"
fi
echo "$(wc -l <"$work/points") of $(wc -l <"$work/all") points"
[[ $dry_run -eq 1 ]] && exit 0

export work device limit target="${arch:+--arch $arch}"
point() {
    local record=$work/$BASHPID.json
    # 129 rows and 150 keys: a tail in both, more than one tile for every M and N of the grid.
    # shellcheck disable=SC2086
    "$bench" $1 $target --device "$device" --batch 1 --heads 2 --kv-heads 1 --seq 129 --seq-kv 150 --seeds 1 --check cpu --timing none \
        --timeout "$limit" --quiet --json "$record" 2>/dev/null || true
    jq -c --arg point "$1" '{point: $point, kernel, config, dim: .problem.dim, arch: .ptxas.arch, backend: .device.backend, status, reason,
        registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes, spill_bytes: .ptxas.spill_store_bytes, git: .provenance.git}' "$record"
    rm -f "$record"
}
export -f point
mkdir -p "$(dirname "$out")"
# shellcheck disable=SC2016 # expanded by the inner shell
xargs -d '\n' -P "$jobs" -I{} bash -c 'point "$1"' _ {} <"$work/points" >"$work/out"
mv "$work/out" "$out.points.jsonl"

jq -s 'group_by([.kernel, .dim]) | map({kernel: .[0].kernel, dim: .[0].dim, arch: (map(.arch // empty) | first), backend: (map(.backend // empty) | first),
    git: .[0].git, points: length, pass: map(select(.status == "pass")) | length, infeasible: map(select(.status == "infeasible")) | length,
    holes: map(select(.status != "pass" and (.status != "infeasible" or (.reason // "") == ""))) | length,
    m64_pass: map(select(.status == "pass" and .config.m == 64)) | length,
    reasons: (map(select(.status == "infeasible") | .reason | gsub("[0-9]+ bytes of"; "N bytes of")) | group_by(.) | map({reason: .[0], points: length}) | sort_by(-.points))})' \
    "$out.points.jsonl" >"$out"
jq -r '.[] | "\(.kernel) dim \(.dim) on \(.arch) (\(.backend)): \(.points) points, \(.pass) pass, \(.infeasible) infeasible, \(.holes) holes; M=64: \(.m64_pass) pass"' "$out"
jq -r 'select(.status != "pass" and (.status != "infeasible" or (.reason // "") == "")) | "HOLE \(.point): \(.status) \(.reason // "")"' "$out.points.jsonl" >"$work/holes"
cat "$work/holes"
[[ ! -s $work/holes ]]
