#!/usr/bin/env bash
# The page of the L4: what each rung of the ladder cannot be faster than there, and an estimate. Needs no GPU.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/l4.sh [options]
  --dir DIR      where README.md and bound.jsonl go (default evidence/l4)
  --page         the page alone, from DIR/bound.jsonl; compiles nothing
Compiles each kernel of the ladder with the tile that its rules select on an L4, at batch 2, heads 8, length 512, head
dim 64, and a few tiles of interest (scripts/lib/l4/tiles.txt), all with --bound for sm_89.
Exit: 0, 2 usage, 4 not run (no fa_bench, no jq, no nvdisasm). FA_BENCH names the binary (default ./fa_bench).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
opt=([dir]=evidence/l4)
flag=([page]=0)
parse_options "$@"
records=${opt[dir]}/bound.jsonl
if [[ ${flag[page]} -eq 0 ]]; then
    need_bench
    make_work
    grep -v '^#' scripts/lib/l4/tiles.txt | sed 's/$/ --batch 2 --heads 8 --seq 512 --dim 64/' >"$work/runs"
    "$bench" --compile-only --arch sm_89 --bound --runs "$work/runs" --quiet --json - |
        jqf l4/row -c >"$work/rows"
    jq -e -s 'all(.[]; .bound.us)' "$work/rows" >/dev/null ||
        die 4 "NOT-RUN: no bound: $(jq -r '.bound.unknown // .reason // empty' "$work/rows" | head -n 1)"
    replace_file "$records" <"$work/rows"
fi
[[ -r $records ]] || die 2 "cannot read $records"
jqf l4/page -rs "$records" | replace_file "${opt[dir]}/README.md"
echo "${opt[dir]}/README.md"
