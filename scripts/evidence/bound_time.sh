#!/usr/bin/env bash
# Times tiles drawn from the spaces of the kernels on a GPU and holds each time against its static bound.
#
# usage: scripts/evidence/bound_time.sh [options]
#   --kernel NAME[,NAME...]    only these; repeatable (default: every kernel of ours)
#   --sample N      tiles and shapes drawn per kernel, with a fixed seed (default 100; 0: all)
#   --jobs N        compiled at once, then timed one after the other (default: the cores)
#   --seconds SEC   for all of them: points left by then are missing (default 0: no limit)
#   --out FILE      default evidence/h200/bound_timed.jsonl.gz, a JSON line per timed point
#   --dry-run       print how many points, do nothing
# Each tile and shape (scripts/lib/bound/shapes.txt) is timed at three batches, a twentieth of a second each; one seed
# is checked. A time below its bound is an error: of the bound, or of the time. bound_evidence.sh reads FILE.
# Exit: 0, 1 when a time lies below its bound or a run fails, 2 usage, 4 not run (no GPU). FA_BENCH names the binary.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
. scripts/lib/points.sh
opt=([sample]=100 [jobs]=$(nproc) [seconds]=0 [out]=evidence/h200/bound_timed.jsonl.gz)
flag=([dry-run]=0)
many=([kernel]='')
parse_options "$@"
need_number 0 seconds
start_points
jqf bound/drawn -r --argjson only "$only" --rawfile shapes scripts/lib/bound/shapes.txt <<<"$registry" >"$work/all"
choose_points
need_clean "${opt[out]}"
# In no order, but the batches of a tile follow one another.
shuf --random-source=<(yes fa_bench) "$work/points" | while read -r tile; do
    printf '%s\n' "$tile --batch 1 --heads 8" "$tile --batch 4 --heads 16" "$tile --batch 2 --heads 32 --kv-heads 8"
done >"$work/batches"
mv "$work/batches" "$work/points"
"$bench" --device cuda --seq 16 --seeds 1 --check cpu --timing none --quiet >/dev/null || die 4 "NOT-RUN: no GPU"
compile_ahead --bound
line=(bound/timed)
run_points "$work/timed" --device cuda --seeds 1 --check cublas --max-time 0.05 --min-samples 5 --warmup-ms 20 \
    --timeout 60
refuse_not_run "$work/timed"
jq -c 'select(.p50_us)' "$work/timed" >"$work/kept"
[[ -s $work/kept ]] || die 4 "NOT-RUN: no point was timed: $(jq -r '.reason // empty' "$work/timed" | head -n 1)"
jq -es 'any(.percent_of_bound)' "$work/kept" >/dev/null ||
    die 4 "NOT-RUN: no bound: $(jq -r .bound_unknown "$work/kept" | head -n 1)"
gzip -9nc "$work/kept" | replace_file "${opt[out]}"
jqf bound/timed_text -rs "$work/timed"
jq -es 'all(.[]; .status != "error" and (.percent_of_bound // 0) <= 100)' "$work/timed" >/dev/null
