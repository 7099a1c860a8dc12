#!/usr/bin/env bash
# Results, old and new: what is faster, slower, within the noise, by the intervals.
#
# usage: scripts/compare.sh [options] OLD NEW
#        scripts/compare.sh [options] --history FILE...
#   --history          of all files together: each kernel's results in the order of their times, each against the one
#                      before
#   --tiles            a tile is compared with itself (default: a kernel's fastest tile with its fastest tile)
#   --kernel NAME[,NAME...]   these alone; repeatable
#   --noise PERCENT    a difference up to this is noise, whatever the intervals say (default 1)
#   --json             JSON Lines, one per comparison, not a table
#   --out FILE         write to FILE, not to stdout
# A file has records of fa_bench (--json), lines of a leaderboard, or a leaderboard, as JSON, a list or JSON Lines,
# plain or .gz; a folder is a sweep's. Results are the same case when kernel, problem, GPU and
# pace are. Where both were paired by --vs with the same machine code, the ratios to it are compared, else the times:
# what differs between two processes (clock, temperature) is in no interval, so a claim needs --vs. A tile that was
# measured again counts once, the last time.
# Exit: 0, 1 something is slower or no longer right, 2 usage, 4 not run (no jq), 6 the result cannot be written.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}") # paths are below the caller's folder, so that one stays
. "$here/lib/common.sh"
opt=([noise]=1 [out]='')
flag=([history]=0 [tiles]=0 [json]=0)
many=([kernel]='')
arguments=words
parse_options "$@"
[[ ${opt[noise]} =~ ^[0-9]{1,3}(\.[0-9]+)?$ ]] || die 2 "--noise takes percent, not '${opt[noise]}'"
if [[ ${flag[history]} -eq 1 ]]; then
    [[ ${#words[@]} -ge 1 ]] || die 2 "--history takes a FILE or more (see --help)"
else
    [[ ${#words[@]} -eq 2 ]] || die 2 "takes two files, OLD and NEW (see --help)"
fi
need_jq
make_work
number=-1
for file in "${words[@]}"; do
    [[ ! -d $file ]] || found=$(either "$file/leaderboard.jsonl") file=${found:-$file/leaderboard.jsonl}
    number=$((number + 1))
    read_json compared "$file" >"$work/read"
    jqf compare/cases -c --argjson file "$number" --argjson tiles "${flag[tiles]}" \
        --argjson kernels "$(values_of kernel | jq -Rnc '[inputs]')" "$work/read"
done >"$work/cases"
[[ -s $work/cases ]] || die 2 "nothing to compare: no result of these in ${words[*]}"
jqf compare/pairs -sc --argjson history "${flag[history]}" --argjson noise "${opt[noise]}" "$work/cases" >"$work/pairs"
[[ -s $work/pairs ]] || die 2 "nothing to compare: no case was measured twice in ${words[*]}"
jqf compare/text -sr "$work/pairs" >"$work/text"
[[ ${flag[json]} -eq 0 ]] || cp "$work/pairs" "$work/text"
put_out "${opt[out]}" <"$work/text"
if jq -se 'any(.[]; .verdict | IN("slower", "broken"))' "$work/pairs" >/dev/null; then exit 1; fi
