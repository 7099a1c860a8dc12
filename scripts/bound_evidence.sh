#!/usr/bin/env bash
# Holds the static bound against every measured time in the evidence: none may lie below its bound. Needs no GPU.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/bound_evidence.sh [options] [FILE...]
  --out FILE       summary (default evidence/h200/bound.json); its points beside it as FILE.points.jsonl.gz
  --sample N       at most N points of each file, spread evenly (default 0: all)
  --jobs N         at once (default: the cores)
FILE: evidence of an H200, .json, .jsonl or .gz (default: the leaderboard, the ladder, peers and serving shapes).
Each row is compiled with --bound at the clock that it was measured with, or the highest where the row has none.
Prints how many points lie below their bound, and per tile space Spearman's rank correlation of bound and time and how
much slower the best of the bound's first eight tiles is than the best of all.
Exit: 0, 1 when a point lies below its bound, 2 usage, 4 not run. FA_BENCH names the binary (default ./fa_bench).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
opt=([out]=evidence/h200/bound.json [sample]=0 [jobs]=$(nproc))
flag=()
arguments=words
parse_options "$@"
need_number 0 sample
need_number 1 jobs
need_bench
files=("${words[@]}")
folder=evidence/h200
[[ ${#files[@]} -gt 0 ]] ||
    files=("$folder"/{leaderboard.jsonl.gz,peers.json,peers_mma.json,serving.jsonl} "$folder"/ladder/*/*.json)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work bench
kinds=$("$bench" --list-kernels --json - | jq -c 'map({(.name): .kind}) | add')
for file in "${files[@]}"; do
    [[ -r $file ]] || die 2 "cannot read $file"
    zcat -f "$file" | jqf bound/points -nc --argjson kinds "$kinds" >"$work/points.one"
    if ((opt[sample] > 0)); then
        awk -v n="${opt[sample]}" -v all="$(wc -l <"$work/points.one")" \
            'all <= n || int(NR * n / all) != int((NR - 1) * n / all)' "$work/points.one"
    else
        cat "$work/points.one"
    fi
done >"$work/points"
[[ -s $work/points ]] || die 2 "no timed row of a kernel in ${files[*]}"
jq -r .options "$work/points" | sort -u >"$work/options"

bound_share() { # FILE: {options, bound} of each line
    "$bench" --compile-only --bound --runs "$1" --quiet --json - 2>/dev/null |
        jq -c --rawfile options "$1" '{key: ($options | split("\n"))[.provenance.line - 1], value: .bound}' || true
}
export -f bound_share
split -a 4 -d -n "r/${opt[jobs]}" "$work/options" "$work/share."
# shellcheck disable=SC2016 # expanded by the inner shell
find "$work" -name 'share.*' | sort |
    xargs -r -P "${opt[jobs]}" -I{} bash -c 'bound_share "$1" >"$1.bounds"' _ {}
find "$work" -name 'share.*.bounds' -exec cat {} + | jq -s from_entries >"$work/bounds"

mkdir -p "$(dirname "${opt[out]}")"
jq -c --slurpfile bounds "$work/bounds" '$bounds[0][.options] as $b | .bound_us = (if $b.clocks then
    [$b.clocks / (.mhz // $b.clock_mhz_max), $b.dram_us] | max else null end) | .binds = $b.binds |
    .percent_of_bound = (if .bound_us then 100 * .bound_us / .us else null end)' "$work/points" >"$work/judged"
jqf bound/summary -s "$work/judged" >"${opt[out]}"
gzip -9nc "$work/judged" >"${opt[out]}.points.jsonl.gz"
jq -r '"\(.with_bound) of \(.points) points have a bound, \(.below_bound | length) lie below it; " +
    "percent of the bound: median \(.percent_of_bound.median // 0 | round), " +
    "largest \(.percent_of_bound.largest // 0 | round)",
    (.spaces[] | "\(.kernel) \(.problem): \(.tiles) tiles, Spearman \(.spearman * 100 | round / 100), " +
    "best of the first 8 \(.regret_of_best_8 * 100 | round) % slower than the best")' "${opt[out]}"
jq -e '.with_bound > 0 and (.below_bound | length) == 0' "${opt[out]}" >/dev/null
