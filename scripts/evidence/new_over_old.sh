#!/usr/bin/env bash
# Times a kernel against its own earlier files, paired in one process: did a restructuring cost speed?
#
# usage: scripts/evidence/new_over_old.sh --old DIR [options]
#   --old DIR        a tree with the earlier kernels/ and include/ (git worktree add DIR COMMIT)
#   --kernel NAME[,NAME...]    repeatable (default wgmma)
#   --problems FILE  a line of options each (default scripts/lib/peers/h200.tsv)
#   --out FILE       rows as JSON, the records beside it as FILE.records.jsonl (default build/new_over_old.json)
#   --max-time SEC   sampling per problem (default 0.4)
#   --dry-run        print the command of each problem
# The earlier file runs with the tile that the kernel's rules select today. Needs a GPU.
# Prints a line per problem: times as fast as before, with its interval; last the geometric mean and the least.
# Exit: 0, 1 when the mean is below 0.995 or a problem below 0.98, 2 usage, 4 not run. FA_BENCH names the binary.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
. scripts/lib/gpu.sh
opt=([old]='' [problems]=$lib/peers/h200.tsv [out]=build/new_over_old.json [max-time]=0.4)
flag=([dry-run]=0)
many=([kernel]='')
parse_options "$@"
old=${opt[old]} out=${opt[out]}
[[ -d $old/kernels ]] || die 2 "--old takes a tree with kernels/, not '$old'"
is_input "${opt[problems]}" || die 2 "--problems takes a file that can be read, not '${opt[problems]}'"
need_bench
mapfile -t kernels < <(values_of kernel)
[[ ${#kernels[@]} -gt 0 ]] || kernels=(wgmma)

make_work
grep -E '^ *-' "${opt[problems]}" | cut -f1 >"$work/problems"
for kernel in "${kernels[@]}"; do
    sed "s/\$/ --kernel $kernel/" "$work/problems" >"$work/today"
    # What the rules select today, and the earlier file with that tile against it.
    "$bench" --compile-only --arch sm_90a --runs "$work/today" --quiet --json "$work/configs" || true
    paste -d '\t' "$work/problems" <(jqf over/tile -r "$work/configs") | awk -F '\t' -v old="$old" -v kernel="$kernel" \
        '{print $1, "--source", old "/kernels/" $2 ".cu", $3, "--vs", kernel}'
done >"$work/runs"
[[ ${flag[dry-run]} -eq 0 ]] || { cat "$work/runs"; exit 0; }
need_clean "$out"
mkdir -p "$(dirname "$out")"
code=0
"$bench" --runs "$work/runs" --seeds 1 --max-time "${opt[max-time]}" --warmup-ms 500 --quiet \
    --json "$out.records.jsonl" || code=$?
[[ $code -ne 4 ]] || exit 4
jqf over/rows -s "$out.records.jsonl" >"$work/rows"
replace_file "$out" <"$work/rows"
jqf over/text -r "$out"
jqf over/as_fast -e "$out" >/dev/null
