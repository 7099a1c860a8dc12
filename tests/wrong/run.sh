#!/usr/bin/env bash
# The wrong kernels of tests/wrong/wrong.tsv, each with one fault: how many an ordinary run catches, and how many the
# gate. On the emulator, or with --gpu on a GPU.
set -euo pipefail

usage() {
    cat <<'EOT'
usage: tests/wrong/run.sh [options]
  --gpu           on the GPU: those, too, that only a GPU is large enough to show
  --only NAME     this kernel alone (repeatable)
  --ordinary      the ordinary run alone, without the gate
  --no-ordinary   the gate alone
  --control       the kernels that the wrong ones are made from, instead: the gate must let each pass
  --draws N       of the gate (default: 6)
  --seed S        of the gate's draws (default: the gate's own)
  --limit SECONDS a kernel, for the gate (default: 0, none)
  --jobs N        kernels at once (default: the cores)
  --json FILE     write the summary to FILE
A line per kernel, then the counts. The gate stops at the first case that fails.
Exit: 0 the gate caught all (--ordinary: whatever it caught), 1 one passed the gate (--control: failed it), 2 usage,
4 no binary, or no GPU. FA_BENCH names the binary (default ./fa_bench).
EOT
}

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh
# shellcheck source=scripts/lib/gpu.sh
. scripts/lib/gpu.sh
opt=([draws]=6 [seed]='' [limit]=0 [jobs]=$(nproc) [json]='')
flag=([gpu]=0 [ordinary]=0 [no-ordinary]=0 [control]=0)
many=([only]='')
parse_options "$@"
need_number 0 draws limit
need_number 1 jobs
need_bench
command -v python3 >/dev/null || die 4 "NOT-RUN: no python3: run scripts/setup.sh"
device=emu device_name='the emulator'
if [[ ${flag[gpu]} -eq 1 ]]; then
    device=cuda device_name=$(gpu_name "$bench")
    [[ -n $device_name ]] || die 4 "NOT-RUN: no GPU here"
fi
make_work
export OMP_NUM_THREADS=1 # the cores are full of other kernels
mapfile -t only < <(values_of only)

tile_of() { # BASE: the options that a kernel needs, small for the emulator
    case $1 in
        plain) echo "--m 64" ;;
        mma_plain) echo "--m 32 --n 32 --warps 2 --stages 2" ;;
        tests/wrong/split_keys) echo "--m 8" ;;
        tests/wrong/warp_row) echo "--m 4 --warps 4" ;;
        tests/wrong/tiled) echo "--m 32" ;;
        tests/wrong/block_row) echo "--m 1 --warps 2" ;;
        tests/wrong/last_block) echo "--m 32 --splits 3" ;;
    esac
}

# Caught: the run ends with a wrong result or with an error of the kernel's.
ordinary() { # FILE BASE DTYPE
    local code=0 tile
    read -r -a tile <<<"$(tile_of "$2")"
    "$bench" --source "$1" "${tile[@]}" --dtype "$3" --device "$device" --batch 2 --heads 4 --seq 128 \
        --timing none --quiet >/dev/null 2>&1 || code=$?
    [[ $code -eq 1 || $code -eq 6 ]]
}
# Caught: a case failed, and not because the file does not compile.
gate() { # FILE BASE DTYPE OUT
    local code=0 tile more=()
    read -r -a tile <<<"$(tile_of "$2")"
    [[ $device == emu ]] || more+=(--require-gpu)
    [[ -z ${opt[seed]} ]] || more+=(--seed "${opt[seed]}")
    scripts/ci_gate.sh --source "$1" --dtype "$3" --draws "${opt[draws]}" --fail-fast --shrink 0 --jobs 1 \
        --limit "${opt[limit]}" "${more[@]}" --out "$4" -- "${tile[@]}" >"$4.txt" 2>&1 || code=$?
    [[ $code -eq 1 ]] && jq -es 'any(.[]; .verdict == "failed" and (.text | startswith("compile_error") | not))' \
        "$4/cases.jsonl" >/dev/null
}
try() { # NAME FILE BASE WHERE
    local by_run=null by_gate=null first='' dtype=fp16
    [[ $4 != bf16 ]] || dtype=bf16
    [[ ${flag[no-ordinary]} -eq 1 ]] || by_run=$(if ordinary "$2" "$3" $dtype; then echo true; else echo false; fi)
    if [[ ${flag[ordinary]} -eq 0 ]]; then
        by_gate=$(if gate "$2" "$3" $dtype "$work/$1"; then echo true; else echo false; fi)
        first=$(jq -r 'select(.verdict == "failed") | "\(.tool) \(.args)"' "$work/$1/cases.jsonl" 2>/dev/null |
            head -n 1)
    fi
    jq -nc --arg name "$1" --argjson ordinary "$by_run" --argjson gate "$by_gate" --arg problem "${first# }" \
        --argjson seconds "$SECONDS" '$ARGS.named' >"$work/$1.case"
    printf '%-40s ordinary run %-5s gate %-5s %s\n' "$1" "$by_run" "$by_gate" "${first# }"
}

if [[ ${flag[control]} -eq 1 ]]; then
    for base in plain mma_plain tests/wrong/{split_keys,warp_row,tiled,block_row,last_block}; do
        [[ $base == */* ]] && echo "$(basename "$base") $base.cu $base any" || echo "$base examples/$base.cu $base any"
    done >"$work/list"
else
    python3 tests/wrong/make.py "$work/kernels" "${only[@]}" >"$work/list"
fi
running=0
while read -r name file base where; do
    [[ $where != gpu || $device == cuda ]] || continue
    try "$name" "$file" "$base" "$where" &
    running=$((running + 1))
    if [[ $running -ge ${opt[jobs]} ]]; then
        wait -n || true
        running=$((running - 1))
    fi
done <"$work/list"
wait
cat "$work"/*.case | jq -s --arg device "$device" --arg gpu "$device_name" --argjson gate "$((1 - flag[ordinary]))" \
    -f tests/wrong/summary.jq >"$work/summary.json"
[[ -z ${opt[json]} ]] || replace_file "${opt[json]}" <"$work/summary.json"
if [[ ${flag[control]} -eq 1 ]]; then
    jq -r '"\(.kernels) right kernels: \(.gate) of them failed the gate"' "$work/summary.json"
    jq -e '.gate == 0' "$work/summary.json" >/dev/null
    exit
fi
jq -r '"\(.kernels) wrong kernels: \(.ordinary // "none tried") caught by an ordinary run, \(.gate // "none tried") " +
    "by the gate, in \(.seconds) s", (.missed[] | "missed: \(.)")' "$work/summary.json"
jq -e '.missed == []' "$work/summary.json" >/dev/null
