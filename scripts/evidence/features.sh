#!/usr/bin/env bash
# Our kernels beside FlashAttention 3 and 4 and cuDNN beyond dense forward: lengths, windows, softcap, sinks, 192/128.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/evidence/features.sh [options]
  --kernel NAME     default wgmma
  --problems FILE   a line of problem options each (default: scripts/lib/peers/features.txt)
  --only TEXT       only lines that contain TEXT
  --peers LIST      of fa4, cudnn, fa3 (default: all three)
  --env DIR         peers that scripts/evidence/peers_env.sh brought
  --max-time SEC    sampling per pair (default 0.15)
  --out FILE        default evidence/<gpu>/features.jsonl; rows are added, those of the same options replaced
  --dry-run         print the problems
Each side is compared with FP64 attention first, on the same tensors; then blocks A B B A in one process. A peer that is
wrong, refuses or is not here says so in its row. "ratio" of a row is the least of its peers': above 1 ours is faster.
FA_BENCH names the binary. Exit: 0, 1 a kernel failed, 2 usage, 4 NOT-RUN (no GPU, no PyTorch).
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
. scripts/lib/gpu.sh
opt=([kernel]=wgmma [problems]=$lib/peers/features.txt [only]='' [peers]='fa4,cudnn,fa3' [env]='' [max-time]=0.15
    [out]='')
flag=([dry-run]=0)
parse_options "$@"
peer='(fa3|fa4|cudnn)'
[[ ${opt[peers]} =~ ^$peer(,$peer)*$ ]] || die 2 "--peers takes fa4, cudnn, fa3, not '${opt[peers]}'"
[[ ${opt[max-time]} =~ ^[0-9]*[.]?[0-9]+$ ]] || die 2 "--max-time takes seconds, not '${opt[max-time]}'"
is_input "${opt[problems]}" || die 2 "--problems takes a file that can be read, not '${opt[problems]}'"
use_peers "${opt[env]}"
if [[ ${flag[dry-run]} -eq 1 ]]; then
    grep -vE '^(#.*|[[:space:]]*)$' "${opt[problems]}" | grep -F -- "${opt[only]}"
    exit 0
fi
need_jq
need_bench
gpu=$(gpu_name "$bench")
[[ -n $gpu ]] || die 4 "NOT-RUN: no GPU here"
out=${opt[out]:-evidence/$(gpu_folder "$gpu")/features.jsonl}
need_clean "$out"
make_work
[[ ! -s $out ]] || read_json row "$out" >/dev/null
mkdir -p "$(dirname "$out")"
"${with_peers[@]}" python3 "$lib/peers/peers_features.py" --bench "$bench" --kernel "${opt[kernel]}" \
    --problems "${opt[problems]}" --only "${opt[only]}" --peers "${opt[peers]}" --max-time "${opt[max-time]}" \
    --out "$out"
