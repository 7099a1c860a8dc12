#!/usr/bin/env bash
# Prints the hash of the machine code of every configuration that the registry's rules select. Needs no GPU.
#
# usage: scripts/house/code_hashes.sh [options]
#   --kernel NAME[,NAME...]    only these kernels and their variants; repeatable
#   --arch LIST      comma-separated (default sm_80,sm_89,sm_90a)
#   --jobs N         at once (default: the cores)
#   --dry-run        print how many configurations, compile nothing
# Prints a line per (kernel, rule, dim, mask) and architecture: rule, options, and the SHA-256 of the machine code.
# A comment, a rename or a moved file changes no line: compare two outputs with diff.
# Exit: 0, 1 when a configuration does not compile, 2 usage, 4 not run. FA_BENCH names the binary (default ./fa_bench).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
. scripts/lib/points.sh
opt=([arch]='sm_80,sm_89,sm_90a' [jobs]=$(nproc))
flag=([dry-run]=0)
many=([kernel]='')
parse_options "$@"
start_points

jqf tiles/hashes -r --argjson only "$only" --arg archs "${opt[arch]}" <<<"$registry" >"$work/rules"
sed 's/ #.*//' "$work/rules" | sort -u >"$work/all" # two rules may select one configuration
if [[ ${flag[dry-run]} -eq 1 ]]; then
    choose_points
fi
choose_points >"$work/count"

line=(tiles/line_hash)
run_points "$work/out" --compile-only
refuse_not_run "$work/out"
jqf tiles/hashes_text -rs --rawfile rules "$work/rules" "$work/out"
! jq -e 'select(.status != "pass")' "$work/out" >/dev/null
