# shellcheck shell=bash disable=SC2034,SC2154
# What the scripts that run many points of the registry have in common. Sourced after common.sh. A point is one line of
# options that starts with "--kernel NAME". The caller has the options --jobs, --kernel and --dry-run, and where it
# wants them --sample, --seconds and --resume.

# The registry in $registry, the kernels asked for in $only. Kernels whose headers are not here are left out and named.
start_points() {
    local missing
    need_number 1 jobs
    [[ ! -v opt[sample] ]] || need_number 0 sample
    need_bench
    make_work
    need_kernels "$(values_of kernel)"
    only=$(values_of kernel | jq -Rnc '[inputs]')
    missing=$(jq -r --argjson only "$only" '.[] | select(.missing and (.name | IN($only[]))).missing' <<<"$registry")
    [[ -z $missing ]] || die 4 "NOT-RUN: $missing"
    jq -r '.[] | .missing // empty | "NOT-RUN: " + .' <<<"$registry" >&2
    registry=$(jq -c 'map(select(.missing == null))' <<<"$registry")
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

# Runs every point of $work/points with these options. What the jq call $line makes of the records goes to FILE as runs
# end. With --resume the points that FILE has already are not run again; with --seconds those left by then are not run.
run_points() { # FILE OPTIONS...
    local bench_command=("$bench")
    [[ ${opt[seconds]:-0} -eq 0 ]] || bench_command=(timeout "${opt[seconds]}" "$bench")
    mkdir -p "$(dirname "$1")"
    if [[ ${flag[resume]:-0} -eq 1 && -e $1 ]]; then go_on_with tile "$1"; else : >"$1"; fi
    grep -vxFf <(jq -r .point "$1") "$work/points" >"$work/left" || return 0 # none is left
    "${bench_command[@]}" "${@:2}" --runs "$work/left" --jobs "${opt[jobs]}" --quiet --json - 2>"$work/err" |
        jqf "${line[@]}" -nc --unbuffered --rawfile points "$work/left" >>"$1" || true
    sed -i '/}$/!d' "$1" # a line that was cut off
    [[ ${opt[seconds]:-0} -gt 0 || $(grep -cxFf <(jq -r .point "$1") "$work/points") -eq $(wc -l <"$work/points") ]] ||
        die 6 "a point has left no line: $(tail -n 1 "$work/err")"
}
# On a GPU runs follow one another; what they need is compiled before, at once.
compile_ahead() { # OPTIONS...
    "$bench" "$@" --compile-only --runs "$work/points" --jobs "${opt[jobs]}" --quiet >/dev/null 2>&1 || true
}
# A point that was not compiled or run for want of a tool says nothing of the kernel.
refuse_not_run() { # FILE
    local reason
    reason=$(jq -rn 'first(inputs | select(.status == "not_run").reason) // empty' "$1")
    [[ -z $reason ]] || die 4 "NOT-RUN: $reason"
}
