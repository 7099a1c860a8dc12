#!/usr/bin/env bash
# Our kernels beside their peers, each alone and in pairs: dense attention, and lengths, windows, sinks, pages, FP8,
# gradients.
#
# usage: scripts/peers.sh [options] [-- options of fa_bench, which are added to each problem: --dtype bf16]
#   --kernel NAME[,NAME...]    of lines that name none; repeatable, the fastest counts (default: the last rung that
#                     serves the problem)
#   --problems FILE[,FILE...]    a line of problem options each, which may name a --kernel; {A|B}: a problem each; dense
#                     (default), caches, features, paged, fp8 and backward are lists in scripts/lib/peers
#   --only TEXT       only lines that contain TEXT
#   --peers LIST      of fa4, cudnn, fa3, flashinfer, fmha_v2, flash_mla; fa2, efficient and math, PyTorch's own;
#                     contiguous: ours without pages; dense: without lengths; 16bit: without FP8 (default: those that
#                     serve the problem somewhere)
#   --library FILE    another peer for dense problems: a shared object (include/fa_library.h), or a library of the
#                     registry by its name, timed and paired by fa_bench itself; repeatable (default: built, which is
#                     fa2, fa3, cutlass_* and flashinfer_* of examples/library/build, those that are there; none adds
#                     none). A library that has a time stands for the peer of its name
#   --env DIR         peers that scripts/evidence/peers_env.sh brought
#   --max-time SEC    sampling per kernel, per peer and per pair of them (default 0.15)
#   --limit SEC       for one peer with its compiler (default 300)
#   --no-pairs        alone only: no peer is timed a second time against the kernel
#   --out FILE        of one list; default evidence/<gpu>/LIST.jsonl. Rows are added, those of the same options replaced
#   --again           measure also what the file holds for this very machine code
#   --dry-run         print the problems, run nothing
# The file is rewritten after every problem, so a run that was stopped goes on where it was. Each side is compared with
# FP64 first, on the same tensors, heads side by side (--strides bshd) where the line names no strides; then timed
# alone, back to back, and in blocks A B B A in one process. A peer that is wrong, refuses, ends the process or is not
# here says so in its row, which is kept: use --again when that has changed. "solo_ratio" and "ratio" of a row are the
# least of its peers', alone and in pairs: above 1 ours is faster. A kernel that is wrong in a pair is wrong.
# FA_BENCH names the binary. Exit: 0, 1 a kernel failed, 2 usage, 4 NOT-RUN (no GPU, no PyTorch), 6 an error.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
opt=([problems]=dense [only]='' [peers]='' [env]='' [max-time]=0.15 [limit]=300 [out]='')
flag=([no-pairs]=0 [again]=0 [dry-run]=0)
many=([kernel]='' [library]='')
arguments=bench
parse_options "$@"
refuse_own "kernel library vs device seeds check timing quiet" "${more[@]}"
peer='(fa4|cudnn|fa3|fa2|efficient|math|flashinfer|fmha_v2|flash_mla|contiguous|dense|16bit)'
[[ ${opt[peers]} =~ ^($peer(,$peer)*)?$ ]] || die 2 "--peers takes names of peers (see --help), not '${opt[peers]}'"
[[ ${opt[max-time]} =~ ^[0-9]*[.]?[0-9]+$ ]] || die 2 "--max-time takes seconds, not '${opt[max-time]}'"
need_number 1 limit
for name in env out; do opt[$name]=$(from_caller "${opt[$name]}"); done
IFS=, read -ra lists <<<"${opt[problems]}"
for i in "${!lists[@]}"; do
    if [[ ${lists[i]} =~ ^(dense|caches|features|paged|fp8|backward)$ ]]; then
        lists[i]=$lib/peers/${lists[i]}.txt
    else
        lists[i]=$(from_caller "${lists[i]}")
    fi
    is_input "${lists[i]}" || die 2 "--problems takes a file that can be read or a list's name, not '${lists[i]}'"
done
[[ -z ${opt[out]} || ${#lists[@]} -eq 1 ]] || die 2 "--out is of one list of problems"
need_python
use_peers "${opt[env]}"
make_work
worker=$lib/peers/peers_rows.py
for i in "${!lists[@]}"; do
    python3 "$worker" --problems="${lists[i]}" --only="${opt[only]}" --more="${more[*]}" >"$work/lines.$i"
done
[[ $(cat "$work"/lines.*) ]] || die 2 "no problem of ${opt[problems]} contains '${opt[only]}'"
[[ ${flag[dry-run]} -eq 0 ]] || { cat "$work"/lines.* | put_out ''; exit 0; }
need_bench
need_kernels "$(values_of kernel)"
asked=$(IFS=, && echo "${names[*]}")
libraries=()
while read -r file; do
    case $file in
        none) ;;
        built) mapfile -t -O "${#libraries[@]}" libraries < <(find examples/library/build \( -name 'fa[23].so' -o \
            -name 'cutlass_*.so' -o -name 'flashinfer_*.so' \) 2>/dev/null | sort) ;;
        *)
            kernel_exists "$file" library || { file=$(from_caller "$file") && is_input "$file"; } ||
                die 2 "--library takes a file that can be read, a library's name, built or none, not '$file'"
            libraries+=("$file")
            ;;
    esac
done < <(printf '%s' "${many[library]:-built$'\n'}")
gpu=$(gpu_name "$bench")
[[ -n $gpu ]] || die 4 "NOT-RUN: no GPU here"
timing=("${with_peers[@]}" python3 "$worker" --bench="$bench" --kernel="${asked:-$(rungs | tac | paste -sd,)}"
    --asked="$asked" --libraries="$(printf '%s\n' "${libraries[@]}")")
for name in peers max-time limit; do timing+=("--$name=${opt[$name]}"); done
for name in no-pairs again; do timing+=("--$name=${flag[$name]}"); done
export FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED=1 # FlashAttention 4 compiles for seconds: another process finds it
failed=0
for i in "${!lists[@]}"; do
    out=${opt[out]:-evidence/$(gpu_folder "$gpu")/$(basename "${lists[i]}" .txt).jsonl}
    need_clean "$out"
    [[ ! -s $out ]] || read_json beside "$out" >/dev/null
    "${timing[@]}" --problems="$work/lines.$i" --out="$out" ||
        { code=$? && [[ $code -eq 1 ]] && failed=1; } || exit "$code"
done
exit "$failed"
