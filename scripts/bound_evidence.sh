#!/usr/bin/env bash
# Holds the static bound against every measured time in the evidence: none may lie below its bound. Needs no GPU.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/bound_evidence.sh [options] [FILE...]
  --out FILE       summary (default evidence/h200/bound.json); its points beside it as FILE.points.jsonl.gz
  --sample N       at most N points of each file, spread evenly (default 0: all)
  --jobs N         at once (default: the cores)
  --judge          compile nothing: count the points beside --out again
FILE: evidence of an H200, .json, .jsonl or .gz (default: every file there with times of kernels of ours).
Each configuration is compiled once with --bound; fa_bench's cache keeps modules and listings. A point is held against
its bound at the clock that it was measured with, or the highest where the row has none. Only a row whose machine code
is what compiles today proves something; how many are not is counted.
Exit: 0, 1 when a point lies below its bound, 2 usage, 4 not run. FA_BENCH names the binary (default ./fa_bench).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
opt=([out]=evidence/h200/bound.json [sample]=0 [jobs]=$(nproc))
flag=([judge]=0)
arguments=words
parse_options "$@"
need_number 0 sample
need_number 1 jobs
files=("${words[@]}")
folder=evidence/h200
points=${opt[out]}.points.jsonl.gz
[[ ${#files[@]} -gt 0 ]] || files=("$folder"/{leaderboard.json,leaderboard.jsonl.gz,lse.jsonl.gz,new_over_old.json} \
    "$folder"/{peers.json,peers_mma.json,serving.jsonl,versus.jsonl.gz} "$folder"/ladder/*/*.json)
[[ ${#words[@]} -gt 0 || ! -e $folder/bound_timed.jsonl.gz ]] || files+=("$folder/bound_timed.jsonl.gz")
make_work
export work bench lib

bound_share() { # FILE: what compiled.jq takes of the record of each line
    "$bench" --compile-only --bound --runs "$1" --quiet --json - 2>/dev/null |
        jqf bound/compiled -c --rawfile options "$1" || true
}
export -f bound_share jqf

read_points() { # into $work/judged, with their bounds
    local file kinds start=$EPOCHREALTIME
    kinds=$(kinds)
    for file in "${files[@]}"; do
        is_input "$file" || die 2 "cannot read $file"
        zcat -f "$file" | jqf bound/points -nc --arg file "$file" --argjson kinds "$kinds" >"$work/points.one"
        if ((opt[sample] > 0)); then
            awk -v n="${opt[sample]}" -v all="$(wc -l <"$work/points.one")" \
                'all <= n || int(NR * n / all) != int((NR - 1) * n / all)' "$work/points.one"
        else
            cat "$work/points.one"
        fi
    done >"$work/points"
    [[ -s $work/points ]] || die 2 "no timed row of a kernel in ${files[*]}"
    jq -r .options "$work/points" | sort -u | shuf --random-source=<(yes) >"$work/options"
    split -a 4 -d -l 8 "$work/options" "$work/share."
    # shellcheck disable=SC2016 # expanded by the inner shell
    find "$work" -name 'share.*' | sort |
        xargs -r -P "${opt[jobs]}" -I{} bash -c 'bound_share "$1" >"$1.bounds"' _ {}
    find "$work" -name 'share.*.bounds' -exec cat {} + | jq -s from_entries >"$work/compiled"
    git=$(jq '[.[].git] | unique | .[0] // null' "$work/compiled")
    jqf bound/judged -c --slurpfile compiled "$work/compiled" "$work/points" >"$work/judged"
    seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.0f", b - a}')
}

if [[ ${flag[judge]} -eq 1 ]]; then
    is_input "$points" || die 2 "cannot read $points"
    zcat "$points" >"$work/judged"
    seconds=$(jq '.seconds // null' "${opt[out]}") git=$(jq '.git // null' "${opt[out]}")
else
    need_bench
    read_points
fi
mkdir -p "$(dirname "${opt[out]}")"
jqf bound/summary -s --argjson seconds "$seconds" --argjson git "$git" "$work/judged" >"$work/summary"
[[ ${flag[judge]} -eq 1 ]] || gzip -9nc "$work/judged" >"$points"
replace_file "${opt[out]}" <"$work/summary"
jqf bound/said -r "$work/summary"
jq -e '.current > 0 and (.below_bound | length) == 0' "$work/summary" >/dev/null
