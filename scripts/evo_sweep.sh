#!/usr/bin/env bash
# Searches a kernel's tile space: every candidate compiled, proven, timed; only a paired comparison beats the leader.
#
# usage: scripts/evo_sweep.sh [options] [-- fa_bench options, e.g. --seq 4096 --causal --acc fp16]
#   --kernel NAME[,NAME...]  default FA_KERNEL, else the bench's default; several are swept one after the other
#   --source FILE.cu         a file of your own, whose FA_SPACE states its knobs and their values
#   --strategy grid|random|evo|tpe   default evo; tpe is Optuna's tree-structured Parzen estimator
#   --budget N               candidates of a kernel at most (default 64, the whole space with --seconds)
#   --seconds SEC            no candidate begins after that
#   --seed N                 default 1
#   --out DIR                default evidence/<gpu>; holds leaderboard.jsonl (append-only; a .gz of it is
#                            unpacked), leaderboard.json and micro_best.json
#   --pool N                 candidates being compiled and checked while one is timed (default: the cores, 2 to 16
#                            for each GPU; on hosts 12)
#   --jobs N                 GPUs of this machine at once: the first N, or of CUDA_VISIBLE_DEVICES (default 1)
#   --sshloginfile FILE      hosts for GNU parallel, with the same GPU, --jobs of them each; the repository at the same
#                            path there
#   --prune BY               do not run a candidate that is slower than the fastest so far by its bound, which loses no
#                            winner, or by the low end of its estimate, which skips far more and can lose one:
#                            none (default), bound or estimate; needs nvdisasm (docs/profiling.md)
#   --dry-run                print the first candidates, run nothing
# A knob among the fa_bench options (--warps 8) stays at that value. The fastest tiles are tried with register limits
# (--maxreg) that let more blocks onto a multiprocessor. Candidates are explored with --seeds 1 --check cpu
# (FP64 attention, before and after the timing) --warmup-ms 60 --max-time 0.1 unless these are given; what cannot beat
# the best so far is not timed to the end (--beat BEST; docs/sweeps.md). Before one leads it
# passes five fresh seeds (or --seeds) against every reference and beats the incumbent by --vs, with the whole protocol,
# in two fresh processes.
# A result is keyed by content (source, options, compiler, driver, GPU, problem, protocol): what is there is not
# measured again, and a sweep that was killed goes on where it was. FA_BENCH names the binary (default: the
# repository's).
# Without a GPU a sweep is not run, but for -- --device emu, which compiles and checks candidates and times none.
# Exit: 0, 2 usage, 4 not run (no GPU, fa_bench, python3, parallel or optuna; a dead host), 6 results not written.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}") # paths are below the caller's folder, so that one stays
. "$here/lib/common.sh"
engine=(python3 "$lib/evo/sweep.py")
if [[ ${1:-} == --measure ]]; then # TASK KNOBS: candidates, on a host of GNU parallel
    exec "${engine[@]}" measure "${@:2}"
fi

opt=([kernel]=${FA_KERNEL:-} [source]='' [strategy]=evo [budget]=none [seconds]='' [seed]=1 [out]='' [jobs]=1
    [sshloginfile]='' [pool]=none [prune]=none)
flag=([dry-run]=0)
arguments=bench
parse_options "$@"
[[ ${opt[strategy]} =~ ^(grid|random|evo|tpe)$ ]] ||
    die 2 "--strategy takes grid, random, evo or tpe, not '${opt[strategy]}'"
[[ ${opt[prune]} =~ ^(none|bound|estimate)$ ]] ||
    die 2 "--prune takes none, bound or estimate, not '${opt[prune]}'"
hosts=${opt[sshloginfile]}
[[ ${opt[prune]} == none || -z $hosts ]] || die 2 "--prune knows the candidates of this machine: no --sshloginfile"
need_number 0 seed
need_number 1 jobs
for name in budget pool; do [[ ${opt[$name]} == none ]] || need_number 1 "$name"; done
[[ -z ${opt[seconds]} || (${opt[seconds]} =~ ^[0-9]+([.][0-9]+)?$ && ${opt[seconds]} =~ [1-9]) ]] ||
    die 2 "--seconds takes a number above 0, not '${opt[seconds]}'"
[[ -z $hosts ]] || is_input "$hosts" || die 2 "--sshloginfile takes a file that can be read, not '$hosts'"
refuse_own "kernel source library vs compile-only arch seed dump" "${more[@]}"
export FA_BENCH=${FA_BENCH:-$(realpath "$here/..")/fa_bench}
[[ -x $FA_BENCH ]] || die 4 "NOT-RUN: no $FA_BENCH: run make"
need_python

for name in leaderboard.jsonl leaderboard.jsonl.gz leaderboard.json micro_best.json sweeps.jsonl; do
    file=${opt[out]}/$name
    [[ -z ${opt[out]} || ! -e $file || -f $file ]] || die 2 "$file is not a file"
    [[ -z ${opt[out]} || $name != *.gz || ! -e $file || -e ${file%.gz} ]] || gzip -tq "$file" 2>/dev/null ||
        die 2 "$file: damaged .gz"
done
for name in "${!opt[@]}"; do
    [[ -z ${opt[$name]} || ${opt[$name]} == none ]] || words+=("--$name=${opt[$name]}")
done
[[ ${flag[dry-run]} -eq 0 ]] || words+=(--dry-run)
exec "${engine[@]}" search "${words[@]}" -- "${more[@]}"
