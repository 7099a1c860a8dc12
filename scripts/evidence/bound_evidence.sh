#!/usr/bin/env bash
# Holds the static bound against every measured time in the evidence: none may lie below its bound. Needs no GPU.
#
# usage: scripts/evidence/bound_evidence.sh [options] [FILE...]
#   --out FILE       summary (default evidence/h200/bound.json); its points beside it as FILE.points.jsonl.gz
#   --sample N       at most N points of each file, spread evenly (default 0: all)
#   --jobs N         at once (default: the cores)
#   --judge          compile nothing: count the points beside --out again
# FILE: evidence of an H200, .json, .jsonl or .gz (default: every file there with times of kernels of ours, as it is and
# as it was at every earlier commit; a time that stands in several counts once).
# Each configuration is compiled once with --bound, from kernels/ of the commit that it was measured at, or from today's
# where that commit is not in the history; fa_bench's cache keeps modules and listings. A point is held against its
# bound at the clock that it was measured with, or the highest where the row has none. Only a point whose machine code
# is what was timed proves something; how many are not is counted.
# Exit: 0, 1 when a point lies below its bound, 2 usage, 4 not run: no jq, NVRTC, nvdisasm or headers that a kernel
# needs; then nothing is written. FA_BENCH names the binary (default ./fa_bench).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
opt=([out]=evidence/h200/bound.json [sample]=0 [jobs]=$(nproc))
flag=([judge]=0)
arguments=words
parse_options "$@"
need_number 0 sample
need_number 1 jobs
folder=evidence/h200
timed="$folder/((bf16_over_fp16|bound_timed|leaderboard|ladder|lse|new_over_old|peers(_mma|_bf16)?|serving|versus)"
timed+="[.]jsonl?([.]gz)?|(ladder|versus|first)/.*[.]json)\$"
points=${opt[out]}.points.jsonl.gz
make_work

compile_bounds() { # a line per option list on standard input to an object by option list: its bound
    local missing
    sort -u >"$work/options"
    : >"$work/records"
    while [[ -s $work/options ]] && ! "$bench" --compile-only --bound --runs "$work/options" --jobs "${opt[jobs]}" \
        --quiet --json "$work/records" 2>"$work/err"; do
        # A line that fa_bench takes no more, with a kernel that was not there yet, say, has no bound.
        [[ $(<"$work/err") =~ "$work/options line "([0-9]+): ]] || break
        sed -i "${BASH_REMATCH[1]}d" "$work/options"
    done
    missing=$(jqf bound/missing -rn "$work/records")
    [[ -z $missing ]] || die 4 "NOT-RUN: $missing"
    jqf bound/compiled -s --rawfile options "$work/options" "$work/records"
}

judge() { # the points with the bounds on standard input
    jq -s 'add // {}' >"$work/compiled"
    jqf bound/judged -c --slurpfile compiled "$work/compiled" --rawfile folders "$work/folders" "$work/points" \
        >"$work/judged"
}

# The kernels of a commit with the headers of today, which make the same machine code, below build/was by their tree.
kernels_of() { # COMMIT
    local tree folder
    tree=$(git rev-parse -q --verify "$1:kernels") || return 0 # no commit of this history
    folder=build/was/$tree
    if ! [[ -d $folder/kernels ]]; then
        mkdir -p "$folder"
        ln -sfn ../../../include "$folder/include"
        git archive "$1" kernels | tar xC "$folder"
    fi
    printf '%s\t%s\n' "$1" "$folder"
}

evidence() { # a line per file: where its contents are, and its name
    local blob path
    find "$folder" -type f | grep -E "^$timed" | LC_ALL=C sort | sed 's/.*/&\t&/'
    mkdir "$work/earlier"
    git log --raw --no-abbrev --format= --diff-filter=AM -- "$folder" 2>/dev/null | awk '{print $4 "\t" $6}' |
        grep -E $'\t'"$timed" | while IFS=$'\t' read -r blob path; do
        git cat-file blob "$blob" >"$work/earlier/$blob" && printf '%s\t%s\n' "$work/earlier/$blob" "$path"
    done
}

read_points() { # into $work/judged, with their bounds
    local file name kinds rows start=$EPOCHREALTIME
    kinds=$(kinds)
    if [[ ${#words[@]} -gt 0 ]]; then
        need_inputs "${words[@]}"
        for file in "${words[@]}"; do printf '%s\t%s\n' "$file" "$file"; done
    else
        evidence
    fi >"$work/files"
    while IFS=$'\t' read -r file name; do
        read_json row "$file" >"$work/read"
        jqf bound/points -nc --arg file "$name" --argjson kinds "$kinds" "$work/read" >"$work/points.one"
        if ((opt[sample] > 0)); then
            awk -v n="${opt[sample]}" -v all="$(wc -l <"$work/points.one")" \
                'all <= n || int(NR * n / all) != int((NR - 1) * n / all)' "$work/points.one"
        else
            cat "$work/points.one"
        fi
    done <"$work/files" >"$work/all"
    for rows in .mhz '.mhz | not'; do # of the same time the row that has the clock
        jq -r "select($rows)"' | "\(.kernel) \(.problem) \(.us)\t\(tojson)"' "$work/all"
    done | awk -F '\t' '!seen[$1]++ {print $2}' >"$work/points"
    [[ -s $work/points ]] || die 2 "no timed row of a kernel in ${words[*]:-$folder}"
    jq -r '.measured_at | select(. != "")' "$work/points" | sort -u |
        while read -r commit; do kernels_of "$commit"; done >"$work/folders"
    judge </dev/null
    jq -r '.options_was // empty' "$work/judged" | compile_bounds >"$work/was"
    judge <"$work/was"
    jq -r 'select(.code_of == null) | .options' "$work/judged" | compile_bounds >"$work/today"
    git=$(jq -s 'add | [.[].git] | unique | .[0] // null' "$work/was" "$work/today")
    cat "$work/was" "$work/today" | judge
    seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.0f", b - a}')
}

need_bench
need_clean "${opt[out]}"
if [[ ${flag[judge]} -eq 1 ]]; then
    read_json point "$points" >"$work/judged"
    read_json any "${opt[out]}" >"$work/before"
    seconds=$(jq '.seconds // null' "$work/before") git=$(jq '.git // null' "$work/before")
else
    read_points
fi
mkdir -p "$(dirname "${opt[out]}")"
jqf bound/summary -s --argjson seconds "$seconds" --argjson git "$git" "$work/judged" >"$work/summary"
[[ ${flag[judge]} -eq 1 ]] || jq -c 'del(.options_was)' "$work/judged" | gzip -9n | replace_file "$points"
replace_file "${opt[out]}" <"$work/summary"
jqf bound/text -r "$work/summary"
jq -e '.same_code > 0 and (.below_bound | length) == 0' "$work/summary" >/dev/null
