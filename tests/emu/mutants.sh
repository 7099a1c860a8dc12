#!/usr/bin/env bash
# Mutation proof of the race detector: takes each barrier and each wait out of each kernel in turn, and runs the emulator.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [[ ${1:-} == --help ]]; then
    echo "usage: tests/emu/mutants.sh [KERNEL...]    a table of mutants and what caught each; default: all emulatable kernels"
    echo "A mutant is one __syncthreads, __syncwarp, bar_sync, cp_async_wait or cp_async_commit fewer, in the kernel's file or one it includes."
    exit 0
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/fa_mutants.XXXXXX")
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache FA_HOME=$PWD
cp fa_bench "$work/fa_bench" # what others build or edit meanwhile does not disturb
cp -r kernels "$work/original"
kernels=("$@")
if [[ ${#kernels[@]} -eq 0 ]]; then
    mapfile -t kernels < <(sed -n 's/^FA_KERNEL(\([a-z_0-9]*\), HAND.*/\1/p' kernels/kernels.def)
fi
shape=(--device emu --batch 1 --heads 2 --seq 70 --seq-kv 200 --dim 64 --seeds 1 --check cpu --timeout 60)
# What is tried on a mutant until something objects: other tiles reach other lines, other orders other races.
variants=("--sanitize thread" "--dist needle --sanitize thread" "--stages 1 --sanitize thread" "--stages 2 --sanitize thread" "--splits 2 --sanitize thread"
    "--causal --sanitize thread" "--seq-kv 3 --causal --sanitize thread" "--n 32 --warps 2 --sanitize thread" "--acc fp16 --atol 1 --sanitize thread" "--schedule descending" "--schedule random"
    "--stages 2 --schedule random" "--sanitize address")

knobs_of() { # KERNEL: the options of its own tile
    "$work/fa_bench" --kernel "$1" --compile-only --json - --quiet 2>/dev/null |
        jq -r '.config | to_entries[] | select(.key != "maxreg") | "--\(.key) \(.value)"' | tr '\n' ' '
}
files_of() { # KERNEL: its file and the headers with barriers it includes, directly or not
    local seen=" $1.cu " list=("$1.cu") i=0 next
    while [[ $i -lt ${#list[@]} ]]; do
        while read -r next; do
            if [[ -e $work/original/$next && $seen != *" $next "* && $next != prims.cuh ]]; then
                seen+="$next "
                list+=("$next")
            fi
        done < <(sed -n 's/^#include "\([a-z_0-9]*\.cuh\)"/\1/p' "$work/original/${list[i]}")
        i=$((i + 1))
    done
    printf '%s\n' "${list[@]}"
}
run() { # SOURCE OPTIONS...: the status in the record
    "$work/fa_bench" "${shape[@]}" --source "$@" --json - --quiet 2>/dev/null | jq -r '.status + ": " + ((.reason // "") | split("\n")[0])' || true
}

caught=0 survived=0
for kernel in "${kernels[@]}"; do
    read -ra knobs < <(knobs_of "$kernel"; echo)
    usable=()
    for variant in "${variants[@]}"; do # those the kernel itself passes
        read -ra words <<<"$variant"
        if [[ $(run "$work/original/$kernel.cu" "${knobs[@]}" "${words[@]}") == pass* ]]; then usable+=("$variant"); fi
    done
    if [[ ${#usable[@]} -eq 0 ]]; then
        echo "| $kernel | - | does not run here, no mutants | - |"
        continue
    fi
    while read -r file; do
        while IFS=: read -r line text; do
            rm -rf "$work/kernels"
            cp -r "$work/original" "$work/kernels"
            sed -i -E "${line}s/(__syncthreads|__syncwarp|bar_sync|cp_async_wait<[^;]*>|cp_async_commit)\([^;]*\);/;/" "$work/kernels/$file"
            by=
            for variant in "${usable[@]}"; do
                read -ra words <<<"$variant"
                got=$(run "$work/kernels/$kernel.cu" "${knobs[@]}" "${words[@]}")
                case $got in
                    wrong*ThreadSanitizer*) by="race ($variant)" ;;
                    wrong*Sanitizer*) by="sanitizer ($variant)" ;;
                    wrong*) by="wrong result ($variant)" ;;
                    error*) by="${got#error: emulator: } ($variant)" ;;
                    *) continue ;;
                esac
                break
            done
            if [[ -n $by ]]; then caught=$((caught + 1)); else survived=$((survived + 1)); fi
            echo "| $kernel | $file:$line | \`${text#"${text%%[! ]*}"}\` | ${by:-SURVIVED} |"
        done < <(grep -nE '^[^/]*(__syncthreads|__syncwarp|bar_sync|cp_async_wait<[^;]*>|cp_async_commit)\([^;]*\);' "$work/original/$file" || true)
    done < <(files_of "$kernel")
done
echo "$caught caught, $survived survived"
