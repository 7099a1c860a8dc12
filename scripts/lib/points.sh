# shellcheck shell=bash disable=SC2034,SC2154
# What the scripts that run many points of the registry have in common. Sourced after common.sh. A point is one line of
# options that starts with "--kernel NAME". The caller has the options --jobs, --kernel and --dry-run, and where it
# wants them --sample, --seconds and --resume.
export bench lib

start_points() {
    need_number 1 jobs
    [[ ! -v opt[sample] ]] || need_number 0 sample
    need_bench
    only=$(values_of kernel | jq -Rnc '[inputs]')
    make_work
    export work
}

# The registry, without kernels whose headers are not here; those are said.
registry_here() {
    local registry
    registry=$("$bench" --list-kernels --json -)
    jq -r '.[] | .missing // empty | "NOT-RUN: " + .' <<<"$registry" >&2
    jq 'map(select(.missing == null))' <<<"$registry"
}

# Points of $work/all into $work/points: all, or --sample of each kernel. With --dry-run that is the end.
choose_points() {
    cp "$work/all" "$work/points"
    if [[ ${opt[sample]:-0} -gt 0 ]]; then
        awk '{print $2}' "$work/all" | sort -u | while read -r kernel; do
            grep -- "--kernel $kernel " "$work/all" | shuf -n "${opt[sample]}" --random-source=<(yes fa_bench)
        done >"$work/points"
    fi
    echo "$(wc -l <"$work/points") of $(wc -l <"$work/all") points"
    [[ ${flag[dry-run]} -eq 0 ]] || exit 0
}

# Runs every point with $run_options, --jobs processes at once, each with a share of them by fa_bench --runs. What the
# jq function $line makes of a record goes to FILE as the run ends. The caller exports both. With --resume the points
# that FILE has already are not run again; with --seconds those left by then are not run.
run_points() { # FILE
    local command=() share
    [[ ${opt[seconds]:-0} -eq 0 ]] || command=(timeout "${opt[seconds]}")
    mkdir -p "$(dirname "$1")"
    [[ ${flag[resume]:-0} -eq 1 && -e $1 ]] || : >"$1"
    grep -vxFf <(jq -r .point "$1") "$work/points" >"$work/left" || true
    # Small shares: a process that ends early takes another one.
    share=$(($(wc -l <"$work/left") / (4 * opt[jobs]) + 1))
    split -a 6 -d -l $((share < 40 ? share : 40)) "$work/left" "$work/share."
    # A point that is left out is counted below.
    # shellcheck disable=SC2016 # expanded by the inner shell
    find "$work" -name 'share.*' | sort |
        "${command[@]}" xargs -r -d '\n' -P "${opt[jobs]}" -I{} bash -c 'exec 3>&1; run_share "$1"' _ {} >>"$1" || true
    sed -i '/}$/!d' "$1" # a line that was cut off
    [[ ${#command[@]} -gt 0 || $(grep -cxFf <(jq -r .point "$1") "$work/points") -eq $(wc -l <"$work/points") ]] ||
        die 1 "a point has left no line"
}

# The points of a file, in one process; on to the next one with those that a process left when it ended early.
run_share() { # FILE
    local ended
    while [[ -s $1 ]]; do
        ended=$(run_listed "$1")
        if [[ $ended -eq 0 ]]; then # on its own: does this one leave no record, or another one of the file?
            head -n 1 "$1" >"$1.first"
            ended=$(run_listed "$1.first")
            [[ $ended -gt 0 ]] ||
                say_points "$1.first" <<<'{"status": "error", "reason": "no record", "provenance": {"line": 1}}'
            ended=1
        fi
        sed -i "1,${ended}d" "$1"
    done
}
# Prints how many records there were; their lines go where the caller's output goes.
run_listed() { # FILE
    # shellcheck disable=SC2086 # words
    "$bench" $run_options --runs "$1" --jobs 1 --quiet --json - 2>/dev/null | tee "$1.records" |
        say_points "$1" >&3 || true
    wc -l <"$1.records"
}
say_points() { # FILE: records from standard input
    jqf "$line" -c --unbuffered --rawfile points "$1"
}
export -f run_share run_listed say_points jqf
