#!/usr/bin/env bash
# Do fa_bench's kernels and PyTorch compute the same attention? Inputs and outputs change hands as .npy files.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/parity.sh [options]
  --kernel LIST     comma-separated (default: every kernel that runs here)
  --out FILE        the table as JSON (default: build/parity.json)
  --jobs N          kernels at once (default: half the cores)
  --dry-run         print the runs, do nothing
Each kernel runs on inputs drawn by fa_bench and on inputs drawn by PyTorch. Its O must be FP64 attention to 1e-3 + 1e-3 |R|, on every
row, and PyTorch's result to twice that. Without a GPU the emulator and PyTorch on the CPU do it.
FA_BENCH names the binary (default ./fa_bench), PEERS_TORCH the other side (default: python3 scripts/peers_torch.py).
Exit: 0 all agree, 1 one does not, 2 usage, 4 NOT-RUN (no fa_bench, no PyTorch, nothing that could run).
USAGE
}

die() { # CODE TEXT
    echo "parity.sh: $2" >&2
    exit "$1"
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/gpu.sh
. scripts/gpu.sh
bench=${FA_BENCH:-./fa_bench}
kernels='' out=build/parity.json jobs=$((($(nproc) + 1) / 2)) dry_run=0
while [[ $# -gt 0 ]]; do
    case $1 in
        --kernel | --out | --jobs)
            [[ $# -ge 2 ]] || die 2 "$1 needs a value"
            case $1 in --kernel) kernels=$2 ;; --out) out=$2 ;; --jobs) jobs=$2 ;; esac
            shift
            ;;
        --dry-run) dry_run=1 ;;
        --help) usage; exit 0 ;;
        *) die 2 "unknown option $1 (see --help)" ;;
    esac
    shift
done
[[ $jobs =~ ^[1-9][0-9]*$ ]] || die 2 "--jobs takes a whole number from 1, not '$jobs'"
[[ -x $bench ]] || die 4 "NOT-RUN: no $bench: run make"
command -v jq >/dev/null || die 4 "NOT-RUN: no jq: run scripts/setup.sh"
registry=$("$bench" --list-kernels --json -)
if [[ -n $kernels ]]; then
    IFS=, read -ra names <<<"$kernels"
    for name in "${names[@]}"; do
        jq -e --arg k "$name" 'any(.[]; .name == $k)' <<<"$registry" >/dev/null || die 2 "no kernel '$name' (fa_bench --list-kernels)"
    done
else
    mapfile -t names < <(jq -r '.[] | select(.variant_of == null) | .name' <<<"$registry")
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
device=emu
[[ -z $(gpu_name "$bench") ]] || device=cuda

# What the two sides may see differently: the mask of a square and of another problem, rows that see no key, grouped heads, tails.
problems=("--batch 1 --heads 2 --seq 65 --dim 64" "--batch 1 --heads 4 --kv-heads 2 --seq 113 --dim 72 --causal"
    "--batch 1 --heads 2 --seq 33 --seq-kv 129 --dim 128 --causal" "--batch 1 --heads 2 --seq 71 --seq-kv 29 --dim 64 --causal")
drawn="--batch 1 --heads 3 --seq 127 --dim 40 --causal" # by PyTorch
if [[ $device == cuda ]]; then
    problems+=("" "--causal" "--batch 2 --heads 8 --kv-heads 2 --seq 1024 --dim 128 --causal" "--batch 1 --heads 3 --seq 799 --dim 256")
    drawn="--batch 2 --heads 8 --seq 512 --dim 64 --causal"
fi
for name in "${names[@]}"; do
    for i in "${!problems[@]}"; do
        echo "$name|$work/$name.$i|${problems[i]}"
    done
    echo "$name|$work/$name.torch|$drawn --load $work/drawn"
done >"$work/runs"
if [[ $dry_run -eq 1 ]]; then
    cut -d'|' -f1,3 "$work/runs"
    exit 0
fi

not_run() { # the other side's own words
    sed -n '$ s/^.*NOT-RUN: //; $ s/^/NOT-RUN: /p' "$work/err"
}

read -ra torch <<<"${PEERS_TORCH:-python3 scripts/peers_torch.py}"
# shellcheck disable=SC2086
"${torch[@]}" $drawn --dump "$work/drawn" 2>"$work/err" || die 4 "$(not_run)"

one() { # KERNEL|FOLDER|PROBLEM: inputs, output and record in the folder
    local kernel folder problem
    IFS='|' read -r kernel folder problem <<<"$1"
    mkdir "$folder"
    # shellcheck disable=SC2086
    "$bench" --kernel "$kernel" --device "$device" $problem --seeds 1 --check cpu --timing none --dump "$folder" --quiet --json "$folder/record.json" 2>"$folder/err" || true
}
export -f one
export bench device
# shellcheck disable=SC2016 # expanded by the inner shell
xargs -d '\n' -P "$jobs" -I{} bash -c 'one "$1"' _ {} <"$work/runs"

# A wrong O is still compared: the other side should say so too. What did not run has none.
folders=()
while IFS='|' read -r name folder _; do
    [[ -s $folder/record.json ]] || die 6 "no record of $name: $(head -n 1 "$folder/err")"
    [[ ! -s $folder/o.npy ]] || folders+=("$folder")
done <"$work/runs"
[[ ${#folders[@]} -gt 0 ]] || die 4 "NOT-RUN: no kernel ran: $(jq -r .reason "$work"/*/record.json | head -n 1)"
code=0
"${torch[@]}" --parity "${folders[@]}" >"$work/parity.json" 2>"$work/err" || code=$?
[[ $code -le 1 && -s $work/parity.json ]] || die 4 "$(not_run)"

while IFS='|' read -r _ folder _; do
    jq -c --arg folder "$folder" --slurpfile parity "$work/parity.json" '([$parity[0][] | select(.dir == $folder)][0]) as $p |
        {kernel, variant, arch: .ptxas.arch, config, code_sha256: .provenance.code_sha256, problem: (.problem | {batch, heads, kv_heads, seq_q, seq_kv, dim, causal}), inputs: (if .provenance.dist == "loaded" or (.provenance.command | contains("--load")) then "torch" else "fa_bench" end),
        status, reason, verdict: (if $p == null then "NOT-RUN" elif $p.passed and .status == "pass" then "PASS" else "FAIL" end),
        max_abs_err: $p.exact.max_abs_err, rows_checked: $p.exact.rows_checked, max_abs_difference_to_torch: $p.torch.max_abs_difference,
        device: .device.name, torch: $p.torch_version, torch_device: $p.device, git: .provenance.git}' "$folder/record.json"
done <"$work/runs" | jq -s . >"$work/table"
mkdir -p "$(dirname "$out")"
cp "$work/table" "$out.tmp"
mv "$out.tmp" "$out"
jq -r '.[] | select(.verdict == "FAIL") | "FAIL \(.kernel) \(.problem) inputs of \(.inputs): \(.status), \(.max_abs_err) to FP64, \(.max_abs_difference_to_torch) to PyTorch"' "$out"
jq -r 'group_by(.kernel)[] | "\(.[0].kernel): \(map(select(.verdict == "PASS")) | length) agree, \(map(select(.verdict == "FAIL")) | length) do not, \(map(select(.verdict == "NOT-RUN")) | length) NOT-RUN; at most \(map(.max_abs_difference_to_torch // 0) | max) from PyTorch"' "$out"
jq -e 'all(.[]; .verdict != "FAIL")' "$out" >/dev/null
