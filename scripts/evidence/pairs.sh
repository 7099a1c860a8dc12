#!/usr/bin/env bash
# Pairs a kernel with its peers in one process: over the peers' shapes, problems drawn from a seed, or a list.
#
# usage: scripts/evidence/pairs.sh [options]            measures the pairs that --out does not hold yet
#        scripts/evidence/pairs.sh FILE... [--out FILE]    measures nothing: joins records, of lanes, and sums them up
#   --random N       N problems drawn from --seed: batch and heads 1 to 64, groups of 1 to 8 heads, 64 to 16384 queries,
#                    another number of keys in a third, dims 32 to 256, both masks, up to 2^34 pairs of query and key
#   --seed S         default 1
#   --problems FILE  a problem a line, as options of fa_bench
#                    (default: scripts/lib/peers/dense.txt and scripts/lib/pairs/more.txt)
#   --kernel NAME    default: the last rung of the registry that serves the first problem
#   --vs SPEC        a peer as fa_bench --vs takes it; repeatable
#                    (default: the fused library, and examples/library/build/fa3.so where it is built)
#   --pace LIST      sustained (default): back to back, as under load
#                    rested: a sample after --rest-ms idle, the L2 cold; sustained,rested: both
#   --rest-ms MS     default 12
#   --lane I/N       every N-th problem from the I-th on: N processes, each with a GPU (CUDA_VISIBLE_DEVICES) and an
#                    --out
#   --jobs N         compilers at once, before the first pair (default: one a processor)
#   --env DIR        peers that scripts/evidence/peers_env.sh brought: their cuDNN
#   --out FILE       the records, a line each as it ends (default build/pairs.jsonl)
#   --dry-run        print the runs
# Every result is checked, in the first pair of a problem against cuBLAS too. A record that --out holds is kept,
# whatever machine code it is of: a new kernel takes a new file.
# Prints per pace and peer: geometric mean of the ratios (above 1: the kernel is faster), the least, those below 1.
# Exit: 0, 1 a kernel failed, 2 usage, 4 not run. FA_BENCH names the binary (default ./fa_bench).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
opt=([random]=0 [seed]=1 [problems]='' [kernel]='' [pace]=sustained [rest-ms]=12 [lane]=1/1 [jobs]="$(nproc)"
    [env]='' [out]=build/pairs.jsonl)
flag=([dry-run]=0)
many=([vs]='')
arguments=words
parse_options "$@"
out=${opt[out]}
[[ $out == *.jsonl ]] || die 2 "--out takes a FILE.jsonl, not '$out'"
[[ ${opt[pace]} =~ ^(sustained|rested)(,(sustained|rested))?$ ]] ||
    die 2 "--pace takes sustained, rested, or both, not '${opt[pace]}'"
[[ ${opt[lane]} =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ && ${BASH_REMATCH[1]} -le ${BASH_REMATCH[2]} ]] ||
    die 2 "--lane takes I/N, I at most N, not '${opt[lane]}'"
lane=${BASH_REMATCH[1]} lanes=${BASH_REMATCH[2]}
need_number 0 random seed rest-ms
need_number 1 jobs
[[ -z ${opt[problems]} ]] || is_input "${opt[problems]}" || die 2 "--problems: cannot read '${opt[problems]}'"
need_inputs "${words[@]}"

summarise() { # what the records come to
    jqf pairs/rows -nR "$out" | jqf pairs/text -r
}
if [[ ${#words[@]} -gt 0 ]]; then
    need_jq
    make_work
    for file in "${words[@]}"; do
        read_json record "$file"
    done >"$work/joined"
    replace_file "$out" <"$work/joined"
    summarise
    exit 0
fi

use_peers "${opt[env]}"
need_bench
need_python
registry=$("$bench" --list-kernels --json -)
[[ -z ${opt[kernel]} ]] || kernel_exists "${opt[kernel]}" ||
    die 2 "no kernel '${opt[kernel]}' (fa_bench --list-kernels)"
mapfile -t peers < <(values_of vs)
if [[ ${#peers[@]} -eq 0 ]]; then
    mapfile -t peers < <(jq -r '[.[] | select(.kind == "library").name] | last' <<<"$registry")
    [[ ! -e examples/library/build/fa3.so ]] || peers+=(library:examples/library/build/fa3.so)
fi
make_work

problems() {
    if [[ ${opt[random]} -gt 0 ]]; then
        python3 scripts/lib/gate/problems.py pairs --draws "${opt[random]}" --seed "${opt[seed]}"
    elif [[ -n ${opt[problems]} ]]; then
        cat "${opt[problems]}"
    else
        problems_of scripts/lib/peers/dense.txt scripts/lib/pairs/more.txt
    fi
}
problems | awk -v lane="$lane" -v lanes="$lanes" '
    /^ *(#|$)/ {next} ++n % lanes == lane % lanes {$1 = $1; print}' >"$work/problems"
[[ -s $work/problems ]] || die 2 "no problem in lane ${opt[lane]}"
gpu_probe "$bench" --kernel "$(jq -r '[.[] | select(.kind == "hand").name][0]' <<<"$registry")" >"$work/probe"
arch=$(jq -r 'select(.status != "not_run") | .ptxas.arch // .device.arch // empty' "$work/probe")
kernel=${opt[kernel]}
if [[ -z $kernel ]]; then
    read -ra first <"$work/problems"
    first+=(--compile-only --no-bound --quiet ${arch:+--arch "$(gpu_target "$arch")"})
    while read -r kernel; do
        status=$("$bench" --kernel "$kernel" "${first[@]}" --json - 2>/dev/null | jq -r .status) || true
        [[ $status == infeasible ]] || break
    done < <(rungs | tac)
fi

# How a pace is measured. Later pairs of a problem are checked against attention in FP64 alone.
declare -A protocol=(
    [sustained]="--timing graph --warmup-ms 150 --max-time 1" # long ones, too, get six blocks, for an interval
    [rested]="--rest-ms ${opt[rest-ms]} --l2 cold --warmup-ms 0 --max-time 1")
check="--check cpu,cublas"
for pace in ${opt[pace]//,/ }; do
    for peer in "${peers[@]}"; do
        sed "s|.*|--kernel $kernel & --vs $peer $check ${protocol[$pace]}|" "$work/problems"
        check="--check cpu"
    done
done >"$work/runs"
[[ ${flag[dry-run]} -eq 0 ]] || { cat "$work/runs"; exit 0; }

need_clean "$out"
mkdir -p "$(dirname "$out")"
go_on_with record "$out"
: >"$work/commands"
[[ ! -s $out ]] || jq -r '.provenance.command // empty' "$out" >"$work/commands"
jqf pairs/left -nRr --rawfile commands "$work/commands" "$work/runs" >"$work/left"

# A kernel is compiled for each dim, mask and tile: by one compiler that takes as long as the pairs themselves.
compile_ahead() { # ARCH
    sed -E 's/ --vs .*//; s/.*--dim ([0-9]+)( --causal)?.*/\1\2\t&/' "$work/left" | sort -u | cut -f2 >"$work/points"
    "$bench" --compile-only --arch "$1" --runs "$work/points" --jobs "${opt[jobs]}" --quiet >/dev/null 2>&1 || true
}
# shellcheck disable=SC2317 # by the trap
finish() {
    [[ ! -s $out ]] || summarise
    rm -rf "$work"
}
trap finish EXIT # also when it is cut off
# A library that cannot be opened would cost the time of every pair.
need_peer() { # NAME of the registry
    gpu_probe "$bench" --kernel "$1" >"$work/peer"
    jq -e '.provenance.compiler // "" | . != ""' "$work/peer" >/dev/null ||
        die 4 "NOT-RUN: $1: $(jq -r '.reason // "no record"' "$work/peer")"
}
if [[ -s $work/left ]]; then
    jq -e '.device and .status != "not_run"' "$work/probe" >/dev/null ||
        die 4 "NOT-RUN: $(jq -r '.reason // "no record"' "$work/probe")"
    for peer in "${peers[@]}"; do
        ! kernel_exists "$peer" || need_peer "$peer"
    done
    compile_ahead "$arch"
    code=0
    "$bench" --device cuda --seeds 1 --no-bound --runs "$work/left" --quiet --json - >>"$out" || code=$?
    [[ $code -ne 2 ]] || exit 2 # it has said what is wrong with a run, and made none
fi
jqf pairs/failed -e --slurp "$out" >/dev/null
