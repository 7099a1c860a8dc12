#!/usr/bin/env bash
# The wrong kernels of tests/wrong/named.tsv: each must be caught by one run on the emulator, with the options of its
# row, and the message must have the row's words: the mistake by name, where that can be.
#
# usage: tests/wrong/named.sh [options]
#   --only NAME     this kernel alone (repeatable)
#   --jobs N        runs at once (default: the cores)
#   --control       the kernels as they were, with the options of each row: every one must pass
# A line per kernel, then the count. Exit: 0 all caught and named, 1 not, 2 usage, 4 no binary. FA_BENCH names the
# binary (default ./fa_bench).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
opt=([jobs]=$(nproc))
flag=([control]=0)
many=([only]='')
parse_options "$@"
need_number 1 jobs
need_bench
need_python
make_work
mapfile -t only < <(values_of only)

python3 tests/wrong/make.py "$work/kernels" --named "${only[@]}" >"$work/list"
while IFS=$'\t' read -r _ file base options _; do
    [[ $base == */* ]] || base=examples/$base
    [[ ${flag[control]} -eq 0 ]] || file=$base.cu
    case $base in
        kernels/light_backward) tile="--m 32 --n 32 --warps 8 --vec 8" ;;
        kernels/light) tile="--m 32 --n 64 --warps 8 --vec 8" ;;
        kernels/mma_backward) tile="--m 32 --n 32 --warps 4 --stages 1 --swizzle 1" ;;
        kernels/mma_decode) tile="--m 16 --n 16 --warps 2 --stages 2" ;;
        kernels/wgmma_mla) tile="--arch sm_90a --m 64 --n 64 --warps 8 --stages 2 --swizzle 1" ;;
        kernels/wgmma_decode) tile="--arch sm_90a --m 64 --n 64 --warps 4 --stages 2 --swizzle 1" ;;
        kernels/mma | kernels/mma_fp8) tile="--m 64 --n 64 --warps 4 --stages 2 --swizzle 1" ;;
        examples/mma_plain) tile="--m 32 --n 32 --warps 2 --stages 2" ;;
        *) tile="--m 64 --n 1 --warps 2" ;;
    esac
    echo "--source $file $tile $options"
done <"$work/list" >"$work/runs"
"$bench" --runs "$work/runs" --device emu --no-ptxas --timing none --quiet --jobs "${opt[jobs]}" \
    --json "$work/runs.jsonl" >"$work/out" 2>&1 || true
[[ -s $work/runs.jsonl ]] || die 1 "no records: $(head -n 1 "$work/out")"
jq -r '[.status, .reason // ""] | @tsv' "$work/runs.jsonl" >"$work/said"
[[ $(wc -l <"$work/said") -eq $(wc -l <"$work/list") ]] || die 1 "not every run left a record"
bad=0
while IFS=$'\t' read -r name _ _ _ words <&3 && IFS=$'\t' read -r status reason <&4; do
    said=${reason##*looks like: }
    if [[ ${flag[control]} -eq 1 ]]; then
        verdict=$([[ $status == pass ]] && echo passed || echo FAILED)
    elif [[ $status != wrong && $status != error ]]; then
        verdict=MISSED
    else
        verdict=$([[ $reason == *"$words"* ]] && echo caught || echo "caught, without '$words'")
    fi
    printf '%-40s %s: %s\n' "$name" "$verdict" "${said:0:160}"
    [[ $verdict == caught || $verdict == passed ]] || bad=$((bad + 1))
done 3<"$work/list" 4<"$work/said"
echo "$(wc -l <"$work/list") kernels, $bad not as they should be"
[[ $bad -eq 0 ]]
