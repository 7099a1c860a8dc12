#!/usr/bin/env bash
# The ladder: every rung at its best swept tile over the rung below it at its own, then the libraries over the top.
#
# usage: scripts/evidence/ladder.sh [options]
#   --kernel NAMES    measure only these rungs and libraries, separated by commas (repeatable); the records of the
#                     others stay (default: all)
#   --problems FILE   a line of fa_bench options each (default scripts/lib/ladder/problems.txt)
#   --out FILE        the records, a line each (default build/ladder.jsonl)
#   --board FILE      the sweeps' leaderboard (default leaderboard.json beside --out)
#   --max-time SEC    of sampling per step (default 1)
#   --seconds SEC     start no step after so long (default 0: no limit)
#   --dry-run         print the steps, do nothing
# A rung's tile is the best that scripts/evo_sweep.sh found for it on the problem, else the one that its rules give.
# A step that fails is said and left out; the next rung is measured over the one below it. FILE is written again after
# every step, so it holds what a run got to. The highest rungs are measured first.
# Exit: 0 done, 1 a step failed, 2 usage, 4 not run (no GPU). FA_BENCH names the binary (default ./fa_bench).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
opt=([out]=build/ladder.jsonl [problems]=scripts/lib/ladder/problems.txt [board]='' [max-time]=1 [seconds]=0)
flag=([dry-run]=0)
many=([kernel]='')
parse_options "$@"
out=${opt[out]} seconds=${opt[seconds]} dry_run=${flag[dry-run]}
only=$(values_of kernel | paste -sd,)
board=${opt[board]:-$(dirname "$out")/leaderboard.json}
need_number 0 seconds
is_input "${opt[problems]}" || die 2 "--problems: cannot read '${opt[problems]}'"
need_bench

registry=$("$bench" --list-kernels --json -)
mapfile -t rungs < <(rungs)
mapfile -t libraries < <(jq -r '.[] | select(.kind == "library") | .name' <<<"$registry")
for name in ${only//,/ }; do
    [[ " ${rungs[*]} ${libraries[*]} " == *" $name "* ]] || die 2 "no rung or library '$name'"
done
[[ $dry_run -eq 1 || -n $(gpu_name "$bench") ]] || die 4 "NOT-RUN: no GPU here"
[[ $dry_run -eq 1 ]] || need_clean "$out"

# The tile of a kernel on $problem that leads its sweep, "m=64,n=128"; nothing where there was none.
best_tile() { # KERNEL
    jqf ladder/tile -rs --arg kernel "$1" --arg problem "$problem" "$work/board"
}

# The records but those of $kernel on $problem, with those on standard input at the end.
keep_others() {
    { jqf ladder/others -c --arg kernel "$kernel" --arg problem "$problem" "$work/kept"; cat; } >"$work/records"
    replace_file "$out" <"$work/records"
    mv "$work/records" "$work/kept"
}

# $kernel at its tile against OTHER at its own, or alone: a record.
step() { # [OTHER]
    local options
    options="--kernel $kernel $problem_options$(knob_options "${tiles[$kernel]}") --seeds 1"
    options+=" --timing graph --warmup-ms 200 --min-samples 6 --max-time ${opt[max-time]}"
    [[ $# -eq 0 ]] || options+=" --vs $1${tiles[$1]:+:${tiles[$1]}}"
    echo "fa_bench $options"
    [[ $dry_run -eq 0 ]] || return 0
    "$bench" --runs - --quiet --json - <<<"$options" >"$work/step" || return 1
    keep_others <"$work/step"
    jqf ladder/text -r "$work/step"
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
        "$bench" --kernel "$1" "${options[@]}" --seeds 1 --check cublas --timing none --quiet >/dev/null </dev/null
}

failed=0
make_work
: | tee "$work/board" >"$work/kept"
[[ ! -e $board ]] || read_json board "$board" >"$work/board"
[[ ! -s $out ]] || read_json record "$out" >"$work/kept" # before a step is begun
[[ $dry_run -eq 1 ]] || mkdir -p "$(dirname "$out")"
while read -r problem_options; do
    problem=$(jqf ladder/named -rn --arg options "$problem_options")
    declare -A tiles=()
    downwards=()
    for kernel in "${libraries[@]}"; do
        tiles[$kernel]=''
        [[ $dry_run -eq 1 ]] || ! asked "$kernel" || keep_others </dev/null
    done
    for kernel in "${rungs[@]}"; do
        tiles[$kernel]=$(best_tile "$kernel")
        [[ $dry_run -eq 1 ]] || ! asked "$kernel" || keep_others </dev/null
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
done < <(grep -vE '^ *(#|$)' "${opt[problems]}")
in_time || { echo "ladder.sh: $seconds s were not enough for every step"; failed=1; }
exit "$failed"
