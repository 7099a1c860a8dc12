#!/usr/bin/env bash
# Which rows of the evidence were made with the machine code that compiles today? Needs no GPU.
#
# usage: scripts/evidence/evidence_current.sh [options] FILE...
#   --sample N    only N rows of each file, evenly spread over it (default 0: all)
#   --jobs N      at once (default: the cores)
#   --rows        a JSON line for each row instead of a line for each file: file, kernel, git, current; all: how many
#                 rows the file has
#   --values      with --rows: each row itself, too, also rows that were infeasible or not run (claims: false)
# FILE: JSON or JSON lines, also compressed. Compiles the kernel of every row again with the row's own architecture,
# head dim, mask and configuration, and compares the SHA-256 of the machine code with the row's code_sha256. A comment,
# a rename or a moved file leaves every row current. A row with --vs is current when both sides are.
#   - A row whose hash is null is not current; one that was infeasible or not run has no machine code and does not
#   count.
#   - A library has no machine code here: it is current while the registry has its name.
#   - A row that could not be compiled is not looked at: current is null.
#   - Rows with the same configuration are compiled once; fa_bench's own cache keeps what was compiled.
# Exit: 0 whatever is current, 2 usage, 4 NOT-RUN: no fa_bench, no jq, no NVRTC, or no headers that a kernel needs.
# FA_BENCH names the binary (default ./fa_bench).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
opt=([sample]=0 [jobs]=$(nproc))
flag=([rows]=0 [values]=0)
arguments=words
parse_options "$@"
files=("${words[@]}")
need_number 0 sample
need_number 1 jobs
[[ ${#files[@]} -gt 0 ]] || die 2 "no FILE (see --help)"
need_inputs "${files[@]}"
need_bench

make_work
kinds=$(kinds) values=false
[[ ${flag[values]} -eq 0 ]] || values=true
for file in "${files[@]}"; do
    read_json row "$file" >"$work/read"
    jqf evidence/candidates -nc --arg file "$file" --argjson kinds "$kinds" --argjson values "$values" "$work/read"
done | jqf evidence/sampled -cs --argjson sample "${opt[sample]}" >"$work/rows"
jq -r '.made_of[].options[]?' "$work/rows" | sort -u >"$work/options"

: >"$work/compiled"
code=0
[[ ! -s $work/options ]] ||
    "$bench" --compile-only --runs "$work/options" --jobs "${opt[jobs]}" --quiet --json - 2>"$work/err" |
    jqf evidence/compiled -c --rawfile options "$work/options" >"$work/compiled" || code=$?
[[ $code -ne 2 ]] || cat "$work/err" >&2 # options that fa_bench has no more: no row is looked at
missing=$(jq -rn 'first(inputs | select(.status == "not_run").reason) // empty' "$work/compiled")
[[ -z $missing ]] || die 4 "NOT-RUN: $missing"
jq -r 'select(.code == null) | "not looked at: \(.options): \(.reason)"' "$work/compiled" >&2

jqf evidence/current -nc --slurpfile compiled "$work/compiled" "$work/rows" >"$work/current"
if [[ ${flag[rows]} -eq 1 ]]; then
    cat "$work/current"
else
    for file in "${files[@]}"; do
        jqf evidence/current_text -rs --arg file "$file" "$work/current"
    done
fi
