#!/usr/bin/env bash
# Compares the strategies of evo_sweep.sh over candidates that were measured before; needs no GPU.
#
# usage: scripts/replay.sh LEADERBOARD [options]
#        scripts/replay.sh --table FILE
#   LEADERBOARD      leaderboard.jsonl or its .gz (default: studies/sweep_candidates.jsonl.gz)
#   --strategy NAME[,NAME...]   default grid,random,evo,tpe
#   --seeds N        searches of each but grid (default 8)
#   --budget N       candidates of a search (default 64)
#   --batch N        asked for at once, twice as many at first (default 6)
#   --out FILE       the curves, a line per kernel and strategy (default: stdout)
#   --table FILE     such curves as Markdown
# A search is offered the recorded candidates alone, and learns their recorded times. A curve is the best time found
# after N candidates over the best recorded, as the median and the worst of the seeds.
# Exit: 0, 2 usage, 4 not run (no python3, jq or Python package optuna), 6 the curves cannot be written.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}") # paths are below the caller's folder, so that one stays
# shellcheck source=scripts/lib/common.sh
. "$here/lib/common.sh"
opt=([strategy]="grid,random,evo,tpe" [seeds]=8 [budget]=64 [batch]=6 [out]='' [table]='')
arguments=words
parse_options "$@"
need_number 1 seeds budget batch
[[ ${opt[strategy]} =~ ^(grid|random|evo|tpe)(,(grid|random|evo|tpe))*$ ]] ||
    die 2 "--strategy takes a list of grid, random, evo and tpe, not '${opt[strategy]}'"
file=${opt[table]:-${words[0]:-$here/../studies/sweep_candidates.jsonl.gz}}
need_jq
make_work
if [[ -n ${opt[table]} ]]; then
    read_json curve "$file" >"$work/read"
    jqf evo/strategies -rs "$work/read"
    exit 0
fi
need_python
read_json line "$file" >"$work/read"
command=(python3 "$lib/evo/replay.py" "$work/read" "${opt[strategy]}" "${opt[seeds]}" "${opt[budget]}" "${opt[batch]}")
jq -es 'any(.p50_us)' "$work/read" >/dev/null || die 2 "no recorded time in $file"
if [[ -n ${opt[out]} ]]; then
    "${command[@]}" >"$work/curves"
    put_out "${opt[out]}" <"$work/curves"
else
    "${command[@]}"
fi
