#!/usr/bin/env bash
# How well the static bound and the estimate rank tiles, and how far the estimate is off, on recorded times. No GPU.
#
# usage: scripts/evidence/bound_rank.sh [options]
#   --dir DIR      evidence with bound.json.points.jsonl.gz, by bound_evidence.sh (default evidence/h200);
#                  bound_rank.json is written there
#   --fit          write the coefficients to src/timing/estimate.def, too; build again afterwards
#   --table        print the table of DIR/bound_rank.json and do nothing else
# The estimate is fitted to half of the configurations, chosen by a hash of their options, and judged on the others.
# Only points with the bound of the machine code that was timed count. For each swept space of 12 tiles or more:
# Spearman's rank correlation with the measured time; how much slower the best of the first eight is than the best of
# all; what a search would have skipped (evo_sweep.sh --prune), in the order of the record, and how much slower its
# winner would be.
# Exit: 0, 2 usage, 4 not run (no fa_bench, no jq, no python3).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
. scripts/lib/gpu.sh
opt=([dir]=evidence/h200)
flag=([fit]=0 [table]=0)
parse_options "$@"
need_bench
need_python
make_work
points=${opt[dir]}/bound.json.points.jsonl.gz
rank=${opt[dir]}/bound_rank.json
if [[ ${flag[table]} -eq 0 ]]; then
    is_input "$points" || die 2 "cannot read $points: run scripts/evidence/bound_evidence.sh"
    need_clean "$rank"
    read_json point "$points" >"$work/points"
    python3 scripts/lib/bound/fit.py "$work/estimate.def" "$work/rank.json" <"$work/points"
    replace_file "$rank" <"$work/rank.json"
    [[ ${flag[fit]} -eq 0 ]] || replace_file src/timing/estimate.def <"$work/estimate.def"
fi
read_json rank "$rank" >"$work/rank"
jqf bound/rank_table -r "$work/rank"
