#!/usr/bin/env bash
# The page of the L4: what each rung of the ladder cannot be faster than there, and an estimate. Needs no GPU.
#
# usage: scripts/evidence/l4.sh [options]
#   --dir DIR      where README.md and bound.jsonl.gz go (default evidence/l4)
#   --jobs N       compile so many at once (default: the cores)
#   --page         the page alone, from DIR/bound.jsonl.gz; compiles nothing
# Compiles each kernel of the ladder with the tile that its rules select on an L4, with --bound for sm_89: at batch 2,
# heads 8, length 512, head dim 64, beside other tiles (scripts/lib/l4/tiles.txt), and at the shapes of the peers' grid
# (scripts/lib/peers/dense.txt).
# Exit: 0, 2 usage, 4 not run (no fa_bench, no jq, no nvdisasm). FA_BENCH names the binary (default ./fa_bench).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
opt=([dir]=evidence/l4 [jobs]=$(nproc))
flag=([page]=0)
parse_options "$@"
need_number 1 jobs
records=${opt[dir]}/bound.jsonl.gz

compile() {
    {
        jqf l4/rungs -r <<<"$registry" | sed 's/^/--kernel /'
        grep -v '^#' scripts/lib/l4/tiles.txt
    } | sed 's/$/ --batch 2 --heads 8 --seq 512 --dim 64/' >"$work/runs"
    problems_of scripts/lib/peers/dense.txt | jqf l4/grid -nrR --argjson registry "$registry" >>"$work/runs"
    "$bench" --compile-only --arch sm_89 --bound --runs "$work/runs" --jobs "${opt[jobs]}" --quiet --json - \
        2>/dev/null |
        jqf l4/row -c --rawfile lines "$work/runs" >"$work/rows" || true # an infeasible tile is a row
    jq -e -s 'length > 0 and all(.[]; .bound.us or .status == "infeasible")' "$work/rows" >/dev/null ||
        die 4 "NOT-RUN: no bound: $(jq -r '.bound.unknown // .reason // empty' "$work/rows" | head -n 1)"
    gzip -9n <"$work/rows" | replace_file "$records"
}

need_bench
make_work
registry=$("$bench" --list-kernels --json -)
[[ ${flag[page]} -eq 1 ]] || compile
read_json bounded "$records" >"$work/records"
read_json rank evidence/h200/bound_rank.json >"$work/rank"
jqf l4/page -rs --slurpfile rank "$work/rank" --argjson registry "$registry" "$work/records" >"$work/page"
replace_file "${opt[dir]}/README.md" <"$work/page"
echo "${opt[dir]}/README.md"
