# shellcheck shell=bash
# What the scripts that run many points of the registry have in common; sourced. A point is one line of options that
# starts with "--kernel NAME". The caller has a function usage, and its options as opt (with their defaults) and flag (0).
export bench=${FA_BENCH:-./fa_bench}
script=$(basename "$0")
declare -A opt flag

# Options of the command line into opt and flag, --kernel into the JSON array `only`.
parse_options() {
    only='[]'
    while [[ $# -gt 0 ]]; do
        local name=${1#--}
        if [[ $1 == --help ]]; then
            usage
            exit 0
        elif [[ $1 == --* && -v flag[$name] ]]; then
            flag["$name"]=1
        elif [[ $1 == --kernel || ($1 == --* && -v opt[$name]) ]]; then
            [[ $# -ge 2 ]] || { echo "$script: $1 needs a value" >&2; exit 2; }
            if [[ $1 == --kernel ]]; then
                only=$(jq -c --arg k "$2" '. + [$k]' <<<"$only")
            else
                opt["$name"]=$2
            fi
            shift
        else
            echo "$script: unknown option $1 (see --help)" >&2
            exit 2
        fi
        shift
    done
    [[ ${opt[sample]} =~ ^[0-9]+$ && ${opt[jobs]} =~ ^[1-9][0-9]*$ ]] || { echo "$script: --sample and --jobs take whole numbers" >&2; exit 2; }
    [[ -x $bench ]] || { echo "$script: no $bench: run make" >&2; exit 4; }
    work=$(mktemp -d)
    export work
    trap 'rm -rf "$work"' EXIT
}

# Points of $work/all into $work/points: all, or --sample of each kernel. With --dry-run that is the end.
choose_points() {
    cp "$work/all" "$work/points"
    if [[ ${opt[sample]} -gt 0 ]]; then
        awk '{print $2}' "$work/all" | sort -u | while read -r kernel; do
            grep -- "--kernel $kernel " "$work/all" | shuf -n "${opt[sample]}" --random-source=<(yes fa_bench)
        done >"$work/points"
    fi
    echo "$(wc -l <"$work/points") of $(wc -l <"$work/all") points"
    [[ ${flag[dry-run]} -eq 0 ]] || exit 0
}

# Calls the exported function point with points, as many as $at_once of them in a call, --jobs calls side by side; the JSON lines
# they print become FILE, which grows as they end. With --resume those that FILE has already are not run again; with --seconds
# those left by then are not run: $deadline is when (0: never), and point has to heed it within a call.
run_points() { # FILE
    deadline=$((${opt[seconds]:-0} > 0 ? EPOCHSECONDS + ${opt[seconds]:-0} : 0))
    export deadline
    mkdir -p "$(dirname "$1")"
    [[ ${flag[resume]:-0} -eq 1 && -e $1 ]] || : >"$1"
    grep -vxFf <(jq -r .point "$1") "$work/points" >"$work/left" || true
    # shellcheck disable=SC2016 # expanded by the inner shell
    xargs -r -d '\n' -P "${opt[jobs]}" -n "${at_once:-1}" bash -c '[[ $deadline -ne 0 && $EPOCHSECONDS -ge $deadline ]] || point "$@"' _ <"$work/left" >>"$1" || true # counted below
    sed -i '/}$/!d' "$1" # a line that was cut off
    [[ $deadline -ne 0 || $(grep -cxFf <(jq -r .point "$1") "$work/points") -eq $(wc -l <"$work/points") ]] ||
        { echo "$script: a point has left no line" >&2; exit 1; }
}

# A run that left no record has failed: one that says so.
or_failed() { # RECORD
    [[ -s $1 ]] || echo '{"status": "error", "reason": "no record"}' >"$1"
}
export -f or_failed
