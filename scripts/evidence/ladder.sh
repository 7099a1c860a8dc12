#!/usr/bin/env bash
# The ladder: every rung at its best swept tile over the rung below it at its own, then the libraries over the top.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/evidence/ladder.sh [options]
  --out DIR         DIR/ladder/PROBLEM/KERNEL.json, DIR/ladder.json (default build/ladder)
  --problems LIST   B,H,S,D separated by spaces (default "2,8,512,64 4,16,1024,64 4,16,4096,128")
  --kernels LIST    measure only these rungs and libraries, separated by commas; the records of the others stay
                    (default: all)
  --board FILE      the sweeps' leaderboard (default DIR/leaderboard.json)
  --max-time SEC    of sampling per step (default 1)
  --seconds SEC     start no step after so long (default 0: no limit)
  --dry-run         print the steps, do nothing
A rung's tile is the best that scripts/evo_sweep.sh found for it on the problem, else the one that its rules give.
A step that fails is said and left out; the next rung is measured over the one below it. DIR/ladder.json is made anew
after every step, so it holds what a run got to. The highest rungs are measured first.
Exit: 0 done, 1 a step failed, 2 usage, 4 not run (no GPU). FA_BENCH names the binary (default ./fa_bench).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
. scripts/lib/gpu.sh
opt=([out]=build/ladder [problems]='2,8,512,64 4,16,1024,64 4,16,4096,128' [kernels]='' [board]='' [max-time]=1
    [seconds]=0)
flag=([dry-run]=0)
parse_options "$@"
out=${opt[out]} only=${opt[kernels]} seconds=${opt[seconds]} dry_run=${flag[dry-run]}
board=${opt[board]:-$out/leaderboard.json}
need_number 0 seconds
need_bench

registry=$("$bench" --list-kernels --json -)
mapfile -t rungs < <(rungs)
mapfile -t libraries < <(jq -r '.[] | select(.kind == "library") | .name' <<<"$registry")
for name in ${only//,/ }; do
    [[ " ${rungs[*]} ${libraries[*]} " == *" $name "* ]] || die 2 "no rung or library '$name'"
done
[[ $dry_run -eq 1 || -n $(gpu_name "$bench") ]] || die 4 "NOT-RUN: no GPU here"

# The tile of a kernel on $problem that leads its sweep, "m=64,n=128"; nothing where there was none.
best_tile() { # KERNEL
    jqf ladder/tile -r --arg kernel "$1" --arg problem "$problem" "$board" 2>/dev/null || true
}

summarise() {
    find "$out/ladder" -name '*.json' -print0 | sort -z | xargs -0 jq -L "$lib" -s 'import "ladder" as m; m::table' |
        replace_file "$out/ladder.json"
}

# $kernel at its tile against OTHER at its own, or alone: a record in $folder.
step() { # [OTHER]
    local options=()
    read -ra options <<<"$problem_options $(knob_options "${tiles[$kernel]}")"
    options=(--kernel "$kernel" "${options[@]}" --seeds 1 --timing graph --warmup-ms 200 --min-samples 6
        --max-time "${opt[max-time]}")
    [[ $# -eq 0 ]] || options+=(--vs "$1${tiles[$1]:+:${tiles[$1]}}")
    echo "fa_bench ${options[*]}"
    [[ $dry_run -eq 0 ]] || return 0
    if ! "$bench" "${options[@]}" --quiet --json "$folder/$kernel.new" >/dev/null; then
        rm -f "$folder/$kernel.new"
        return 1
    fi
    mv "$folder/$kernel.new" "$folder/$kernel.json"
    jqf ladder/said -r "$folder/$kernel.json"
    summarise
}

# The step of $kernel over the nearest of the rungs below it, highest first, that runs.
climb() { # RUNGS...
    local other
    for other in "$@"; do
        step "$other" && return
    done
    [[ $# -gt 0 ]] || step || { echo "ladder.sh: $kernel failed"; return 1; }
    [[ $# -eq 0 ]] || { echo "ladder.sh: $kernel failed against each of $*"; return 1; }
}

asked() { # KERNEL
    [[ -z $only || ",$only," == *",$1,"* ]]
}

in_time() {
    [[ $seconds -eq 0 || $SECONDS -lt $seconds ]]
}

# A rung that does not run alone is no rung to stand on.
runs() { # KERNEL
    local options=()
    read -ra options <<<"$problem_options $(knob_options "${tiles[$1]}")"
    [[ $dry_run -eq 1 ]] ||
        "$bench" --kernel "$1" "${options[@]}" --seeds 1 --check cublas --timing none --quiet >/dev/null
}

failed=0
for problem in ${opt[problems]}; do
    IFS=, read -r b h s d <<<"$problem"
    problem_options="--batch $b --heads $h --seq $s --dim $d"
    folder=$out/ladder/${b}x${h}x${s}x${d}
    declare -A tiles=()
    downwards=()
    [[ $dry_run -eq 1 ]] || mkdir -p "$folder"
    for kernel in "${libraries[@]}"; do
        tiles[$kernel]=''
        [[ $dry_run -eq 1 ]] || ! asked "$kernel" || rm -f "$folder/$kernel.json"
    done
    for kernel in "${rungs[@]}"; do
        tiles[$kernel]=$(best_tile "$kernel")
        [[ $dry_run -eq 1 ]] || ! asked "$kernel" || rm -f "$folder/$kernel.json"
        if ! asked "$kernel" || ! in_time || runs "$kernel"; then
            downwards=("$kernel" "${downwards[@]}")
        else
            echo "ladder.sh: $kernel failed"
            failed=1
        fi
    done
    for kernel in "${libraries[@]}"; do
        ! asked "$kernel" || ! in_time || climb "${downwards[@]}" || failed=1
    done
    for ((i = 0; i < ${#downwards[@]}; i++)); do
        kernel=${downwards[i]}
        ! asked "$kernel" || ! in_time || climb "${downwards[@]:i+1}" || failed=1
    done
done
in_time || { echo "ladder.sh: $seconds s were not enough for every step"; failed=1; }
exit "$failed"
