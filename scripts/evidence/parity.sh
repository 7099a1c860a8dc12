#!/usr/bin/env bash
# Do fa_bench's kernels and PyTorch compute the same attention? Inputs and outputs change hands as .npy files.
#
# usage: scripts/evidence/parity.sh [options]
#   --kernel NAME[,NAME...]    repeatable (default: every kernel that runs here)
#   --dtype TYPE      fp16 (default) or bf16: tensors of that type on both sides
#   --out FILE        the table as JSON (default: build/parity.json, of BF16 build/parity_bf16.json)
#   --jobs N          runs at once; on a GPU one (default: the cores)
#   --dry-run         print the runs, do nothing
# Each kernel runs on inputs drawn by fa_bench and on inputs drawn by PyTorch. Its O must be FP64 attention to t + t |R|
# on every row, t = 1e-3 (BF16: 8e-3), and PyTorch's result to twice that. Without a GPU the emulator and PyTorch on the
# CPU do it.
# FA_BENCH names the binary (default ./fa_bench), PEERS_TORCH the other side (default: python3
# scripts/lib/peers/peers_torch.py).
# Exit: 0 all agree, 1 one does not, 2 usage, 4 NOT-RUN (no fa_bench, no PyTorch, nothing that could run), 6 an error.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
opt=([dtype]=fp16 [out]='' [jobs]=$(nproc))
flag=([dry-run]=0)
many=([kernel]='')
parse_options "$@"
typed='' out=build/parity.json
case ${opt[dtype]} in
    fp16) ;;
    bf16) typed='--dtype bf16 ' out=build/parity_bf16.json ;;
    *) die 2 "--dtype takes fp16 or bf16, not '${opt[dtype]}'" ;;
esac
out=${opt[out]:-$out}
need_number 1 jobs
need_bench
need_kernels "$(values_of kernel)"
[[ ${#names[@]} -gt 0 ]] || mapfile -t names < <(jq -r '.[] | select(.variant_of == null) | .name' <<<"$registry")

need_clean "$out"
make_work
device=emu
[[ -z $(gpu_name "$bench") ]] || device=cuda

# What the two sides may see differently: masks (square or not), rows that see no key, grouped heads, tails.
problems=("--batch 1 --heads 2 --seq 65 --dim 64" "--batch 1 --heads 4 --kv-heads 2 --seq 113 --dim 72 --causal"
    "--batch 1 --heads 2 --seq 33 --seq-kv 129 --dim 128 --causal"
    "--batch 1 --heads 2 --seq 71 --seq-kv 29 --dim 64 --causal")
drawn="--batch 1 --heads 3 --seq 127 --dim 40 --causal" # by PyTorch
if [[ $device == cuda ]]; then
    problems+=("" "--causal" "--batch 2 --heads 8 --kv-heads 2 --seq 1024 --dim 128 --causal"
        "--batch 1 --heads 3 --seq 799 --dim 256")
    drawn="--batch 2 --heads 8 --seq 512 --dim 64 --causal"
fi
for name in "${names[@]}"; do
    for i in "${!problems[@]}"; do
        echo "--kernel $name $typed${problems[i]} --dump $work/$name.$i"
    done
    echo "--kernel $name $typed$drawn --load $work/drawn --dump $work/$name.torch"
done >"$work/runs"
if [[ ${flag[dry-run]} -eq 1 ]]; then
    sed 's/ *--dump .*//' "$work/runs"
    exit 0
fi

not_run() { # the other side's own words
    sed -n '$ s/^.*NOT-RUN: //; $ s/^/NOT-RUN: /p' "$work/err"
}

read -ra torch <<<"${PEERS_TORCH:-python3 scripts/lib/peers/peers_torch.py}"
# shellcheck disable=SC2086
"${torch[@]}" $typed$drawn --dump "$work/drawn" 2>"$work/err" || die 4 "$(not_run)"

mapfile -t folders < <(sed 's/.* --dump //' "$work/runs")
mkdir "${folders[@]}"
"$bench" --device "$device" --seeds 1 --check cpu --timing none --runs "$work/runs" --jobs "${opt[jobs]}" --quiet \
    --json "$work/records" 2>"$work/err" || true
[[ $(wc -l <"$work/records") -eq ${#folders[@]} ]] || die 6 "a run has left no record: $(tail -n 1 "$work/err")"

jq -r '"\(.provenance.line - 1) \(tojson)"' "$work/records" | while read -r i record; do
    echo "$record" >"${folders[i]}/record.json"
done

# A wrong O is still compared: the other side should say so too. What did not run has none.
for i in "${!folders[@]}"; do
    [[ -s ${folders[i]}/o.npy ]] || unset "folders[$i]"
done
[[ ${#folders[@]} -gt 0 ]] || die 4 "NOT-RUN: no kernel ran: $(jq -r .reason "$work/records" | head -n 1)"
code=0
"${torch[@]}" --parity "${folders[@]}" >"$work/parity.json" 2>"$work/err" || code=$?
[[ $code -le 1 && -s $work/parity.json ]] || die 4 "$(not_run)"

jqf parity/rows -s --rawfile runs "$work/runs" --slurpfile parity "$work/parity.json" "$work/records" >"$work/table"
replace_file "$out" <"$work/table"
jqf parity/text -r "$out"
jq -e 'all(.[]; .verdict != "FAIL")' "$out" >/dev/null
