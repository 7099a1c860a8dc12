#!/usr/bin/env bash
# Candidates per second of evo_sweep.sh with 1, 2, 4 GPUs of this machine, on the same candidates, all compiled anew.
#
# usage: scripts/evidence/sweep_scaling.sh [options] [-- fa_bench options, which may pin knobs]
#        scripts/evidence/sweep_scaling.sh --table FILE
#   --gpus LIST      how many GPUs, one sweep each (default 1,2)
#   --kernel NAME[,NAME...]   default wmma
#   --cores N        cores for each GPU of a sweep (default 0: a sweep may use all). One GPU of a machine with two has
#                    twice the cores that it has in a sweep with both, and compilers need them; --cores compares alike
#   --out FILE       a line of JSON per sweep, appended (default: stdout)
#   --table FILE     such lines as Markdown
# Each sweep tries the whole tile space that the pinned knobs leave, in a drawn order, with a compile cache and a
# leaderboard of its own. Without fa_bench options --vec is pinned to 8.
# Exit: 0, 2 usage, 4 not run (no fa_bench, jq, python3 or GPU, or fewer GPUs or cores), otherwise evo_sweep.sh's.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")/.. # scripts/; FILE paths are below the caller's folder, so that one stays
. "$here/lib/common.sh"
opt=([gpus]="1,2" [kernel]=wmma [cores]=0 [out]='' [table]='')
arguments=bench
parse_options "$@"
[[ ${opt[gpus]} =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || die 2 "--gpus takes a list of numbers, not '${opt[gpus]}'"
need_number 0 cores
if [[ -n ${opt[table]} ]]; then
    need_jq
    make_work
    read_json rate "${opt[table]}" >"$work/read"
    jqf evo/rates -rs "$work/read"
    exit 0
fi
export FA_BENCH=${FA_BENCH:-$(realpath "$here/..")/fa_bench}
bench=$FA_BENCH
need_bench
need_kernels "${opt[kernel]}"
gpu=$(gpu_name "$bench")
[[ -n $gpu ]] || die 4 "NOT-RUN: no GPU here"
[[ ${#more[@]} -gt 0 ]] || more=(--vec 8)

if [[ -n ${opt[out]} ]]; then exec {rates}>>"${opt[out]}"; else exec {rates}>&1; fi
make_work
for kernel in "${names[@]}"; do
    for gpus in ${opt[gpus]//,/ }; do
        sweep=("$here/evo_sweep.sh" --kernel "$kernel" --strategy random --budget 999999999 --jobs "$gpus")
        last=$((gpus * opt[cores] - 1))
        [[ $last -lt $(nproc) ]] || die 4 "NOT-RUN: $(nproc) cores, --cores takes $((last + 1)) for $gpus GPUs"
        [[ $last -lt 0 ]] || sweep=(taskset -c "0-$last" "${sweep[@]}")
        XDG_CACHE_HOME=$work/cache "${sweep[@]}" --out "$work/board" -- "${more[@]}" >&2
        jqf evo/rate -cs --argjson gpus "$gpus" --arg gpu "$gpu" --argjson cores "$(nproc)" \
            --argjson present "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)" \
            --argjson each "${opt[cores]}" \
            --slurpfile sweep "$work/board/sweeps.jsonl" "$work/board/leaderboard.jsonl" >&"$rates"
        rm -rf "$work/cache" "$work/board"
    done
done
