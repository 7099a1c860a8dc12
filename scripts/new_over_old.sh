#!/usr/bin/env bash
# Times a kernel against its own earlier files, paired in one process: did a restructuring cost speed?
set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'EOF'
usage: scripts/new_over_old.sh --old DIR [options]
  --old DIR        a tree with the earlier kernels/ and include/ (git worktree add DIR COMMIT)
  --kernel NAME    kernel (repeatable; default wgmma)
  --grid FILE      shapes (default scripts/peers_grid.json)
  --out FILE       rows as JSON (default build/new_over_old.json)
  --max-time SEC   sampling per shape (default 0.4)
  --dry-run        print the command of each shape
The earlier file runs with the tile that the kernel's rules select today. Needs a GPU.
Prints a line per shape: times as fast as before, with its interval; last the geometric mean and the least.
Exit: 0, 1 when the mean is below 0.995 or a shape below 0.98, 2 usage, 4 not run. FA_BENCH names the binary.
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
bench=${FA_BENCH:-./fa_bench} old='' kernels=() grid=scripts/peers_grid.json out=build/new_over_old.json seconds=0.4 dry=0
while [[ $# -gt 0 ]]; do
    case $1 in
        --help) usage; exit 0 ;;
        --dry-run) dry=1; shift; continue ;;
        --old | --kernel | --grid | --out | --max-time)
            [[ $# -ge 2 ]] || { echo "new_over_old.sh: $1 needs a value" >&2; exit 2; } ;;
        *) echo "new_over_old.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
    esac
    case $1 in
        --old) old=$2 ;;
        --kernel) kernels+=("$2") ;;
        --grid) grid=$2 ;;
        --out) out=$2 ;;
        --max-time) seconds=$2 ;;
    esac
    shift 2
done
[[ -d $old/kernels ]] || { echo "new_over_old.sh: --old takes a tree with kernels/, not '$old'" >&2; exit 2; }
[[ -x $bench ]] || { echo "NOT-RUN: no $bench: run make" >&2; exit 4; }
[[ ${#kernels[@]} -gt 0 ]] || kernels=(wgmma)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jq -r '.shapes[] | "--batch \(.batch) --heads \(.heads) --kv-heads \(.kv_heads // .heads) --seq \(.seq) --dim \(.dim)\(
    if .causal then " --causal" else "" end)"' "$grid" >"$work/problems"
for kernel in "${kernels[@]}"; do
    sed "s/\$/ --kernel $kernel/" "$work/problems" >"$work/today"
    # What the rules select today, and the earlier file with that tile against it.
    "$bench" --compile-only --arch sm_90a --runs "$work/today" --quiet --json "$work/configs" || true
    paste -d '\t' "$work/problems" <(jq -r '[.variant // .kernel, (.config | to_entries | map("--\(.key) \(.value)") |
        join(" "))] | @tsv' "$work/configs") |
        awk -F '\t' -v old="$old" -v kernel="$kernel" '{print $1, "--source", old "/kernels/" $2 ".cu", $3, "--vs", kernel}'
done >"$work/runs"
[[ $dry -eq 0 ]] || { cat "$work/runs"; exit 0; }
code=0
"$bench" --runs "$work/runs" --seeds 1 --max-time "$seconds" --warmup-ms 500 --quiet --json "$work/records" || code=$?
[[ $code -ne 4 ]] || exit 4
mkdir -p "$(dirname "$out")"
jq -s '[.[] | {kernel: .vs.kernel, arch: .ptxas.arch, problem, config: .vs.config, status, reason,
    code_sha256: .vs.code_sha256, old_code_sha256: .provenance.code_sha256,
    new_over_old: (if .vs.ratio then 1 / .vs.ratio else null end),
    ci95: (if .vs.ratio_ci95 then [1 / .vs.ratio_ci95[1], 1 / .vs.ratio_ci95[0]] else null end),
    aa_noise: .vs.aa_noise, p50_us: .vs.p50_us, git: .provenance.git, time: .provenance.time,
    gpu: .device.name, driver: .provenance.driver}]' "$work/records" >"$out"
jq -r '.[] | [.kernel, (.problem | "\(.batch),\(.heads),\(.seq_q),\(.dim)\(if .causal then " causal" else "" end)"), .status,
    (.new_over_old // 0 | . * 1000 | round / 1000)] | @tsv' "$out"
jq -r '[.[].new_over_old | numbers] | if length == 0 then "no shape was timed" else
    "geometric mean \((map(log) | add / length | exp) * 1000 | round / 1000), least \(min * 1000 | round / 1000), \(length) shapes"
    end' "$out"
jq -e '([.[].new_over_old | numbers] | length) == length and (map(.new_over_old) | min) >= 0.98 and
    (map(.new_over_old | log) | add / length | exp) >= 0.995' "$out" >/dev/null
