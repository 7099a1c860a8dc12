#!/usr/bin/env bash
# Our kernels beside their peers beyond dense forward: lengths, windows, sinks, 192/128, pages, MLA, FP8, gradients.
#
# usage: scripts/evidence/features.sh [options]
#   --kernel NAME     of lines that name none (default: wgmma)
#   --problems FILE[,FILE...]    a line of problem options each, which may name a --kernel; features (default), paged,
#                     fp8 and backward are lists in scripts/lib/peers
#   --only TEXT       only lines that contain TEXT
#   --peers LIST      of fa4, cudnn, fa3, fa2, flashinfer, fmha_v2, flash_mla; contiguous: ours without pages; 16bit:
#                     ours without FP8 (default: those that serve the problem somewhere)
#   --env DIR         peers that scripts/evidence/peers_env.sh brought
#   --max-time SEC    sampling per pair (default 0.15)
#   --limit SEC       for one peer with its compiler (default 300)
#   --out FILE        of one list; default evidence/<gpu>/LIST.jsonl. Rows are added, those of the same options replaced
#   --dry-run         print the problems
# Each side is compared with FP64 first, on the same tensors; then blocks A B B A in one process. A peer that is wrong,
# refuses, ends the process or is not here says so in its row. "ratio" of a row is the least of its peers': above 1 ours
# is faster.
# FA_BENCH names the binary. Exit: 0, 1 a kernel failed, 2 usage, 4 NOT-RUN (no GPU, no PyTorch).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
. scripts/lib/gpu.sh
opt=([kernel]=wgmma [problems]=features [only]='' [peers]='' [env]='' [max-time]=0.15 [limit]=300 [out]='')
flag=([dry-run]=0)
parse_options "$@"
peer='(fa4|cudnn|fa3|fa2|flashinfer|fmha_v2|flash_mla|contiguous|16bit)'
[[ ${opt[peers]} =~ ^($peer(,$peer)*)?$ ]] || die 2 "--peers takes names of peers (see --help), not '${opt[peers]}'"
[[ ${opt[max-time]} =~ ^[0-9]*[.]?[0-9]+$ ]] || die 2 "--max-time takes seconds, not '${opt[max-time]}'"
need_number 1 limit
IFS=, read -ra lists <<<"${opt[problems]}"
for i in "${!lists[@]}"; do
    [[ ! ${lists[i]} =~ ^(features|paged|fp8|backward)$ ]] || lists[i]=$lib/peers/${lists[i]}.txt
    is_input "${lists[i]}" || die 2 "--problems takes a file that can be read or a list's name, not '${lists[i]}'"
done
[[ -z ${opt[out]} || ${#lists[@]} -eq 1 ]] || die 2 "--out is of one list of problems"
use_peers "${opt[env]}"
timing=("${with_peers[@]}" python3 "$lib/peers/peers_features.py")
for name in kernel only peers max-time limit; do timing+=("--$name=${opt[$name]}"); done
if [[ ${flag[dry-run]} -eq 1 ]]; then
    for list in "${lists[@]}"; do "${timing[@]}" --problems="$list"; done
    exit 0
fi
need_jq
need_bench
registry=$("$bench" --list-kernels --json -)
need_kernels "${opt[kernel]}"
gpu=$(gpu_name "$bench")
[[ -n $gpu ]] || die 4 "NOT-RUN: no GPU here"
export FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED=1 # FlashAttention 4 compiles for seconds: another process finds it
failed=0
make_work
for list in "${lists[@]}"; do
    out=${opt[out]:-evidence/$(gpu_folder "$gpu")/$(basename "$list" .txt).jsonl}
    need_clean "$out"
    [[ ! -s $out ]] || read_json row "$out" >/dev/null
    mkdir -p "$(dirname "$out")"
    "${timing[@]}" --bench="$bench" --problems="$list" --out="$out" ||
        { code=$? && [[ $code -eq 1 ]] && failed=1; } || exit "$code"
done
exit "$failed"
