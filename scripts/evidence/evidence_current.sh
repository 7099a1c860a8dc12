#!/usr/bin/env bash
# Which rows of the evidence were made with the machine code that compiles today? Needs no GPU.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/evidence/evidence_current.sh [options] FILE...
  --sample N    only N rows of each file, evenly spread over it (default 0: all)
  --jobs N      at once (default: the cores)
  --rows        a JSON line for each row instead of a line for each file: file, kernel, git, current
FILE: JSON or JSON lines, also compressed. Compiles the kernel of every row again with the row's own architecture, head
dim, mask and configuration, and compares the SHA-256 of the machine code with the row's code_sha256. A comment, a
rename or a moved file leaves every row current. A row with --vs is current when both sides are.
  - A row whose hash is null is not current; an infeasible one has no machine code and does not count.
  - A library has no machine code here: it is current while the registry has its name.
  - Rows with the same configuration are compiled once; fa_bench's own cache keeps what was compiled.
Exit: 0 whatever is current, 2 usage, 4 not run. FA_BENCH names the binary (default ./fa_bench).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
opt=([sample]=0 [jobs]=$(nproc))
flag=([rows]=0)
arguments=words
parse_options "$@"
files=("${words[@]}")
need_number 0 sample
need_number 1 jobs
[[ ${#files[@]} -gt 0 ]] || die 2 "no FILE (see --help)"
for file in "${files[@]}"; do
    is_input "$file" || die 2 "cannot read $file"
done
need_bench

make_work
export bench work lib
kinds=$(kinds)
for file in "${files[@]}"; do
    zcat -f "$file" | jqf evidence/candidates -nc --arg file "$file" --argjson kinds "$kinds" 2>/dev/null ||
        die 2 "$file is no JSON"
done | jqf evidence/sampled -cs --argjson sample "${opt[sample]}" >"$work/rows"
jq -r '.made_of[].options[]?' "$work/rows" | sort -u >"$work/options"

compile_share() { # FILE: the options of each line, and the hash of the machine code, for those that compile
    "$bench" --compile-only --runs "$1" --jobs 1 --quiet --json - 2>/dev/null |
        jqf evidence/code -c --rawfile options "$1" || true
}
export -f compile_share jqf
[[ ! -s $work/options ]] || split -a 4 -d -n "r/${opt[jobs]}" "$work/options" "$work/share."
# shellcheck disable=SC2016 # expanded by the inner shell
find "$work" -name 'share.*' | sort |
    xargs -r -P "${opt[jobs]}" -I{} bash -c 'compile_share "$1" >"$1.codes"' _ {}
find "$work" -name 'share.*.codes' -exec cat {} + | jq -s from_entries >"$work/codes"

jqf evidence/current -c --slurpfile codes "$work/codes" "$work/rows" >"$work/current"
if [[ ${flag[rows]} -eq 1 ]]; then
    cat "$work/current"
else
    for file in "${files[@]}"; do
        jqf evidence/said_current -rs --arg file "$file" "$work/current"
    done
fi
