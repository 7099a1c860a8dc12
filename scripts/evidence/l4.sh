#!/usr/bin/env bash
# The page of the L4: what each rung of the ladder cannot be faster than there, and an estimate. Needs no GPU.
set -euo pipefail

usage() {
    cat <<'EOT'
usage: scripts/evidence/l4.sh [options]
  --dir DIR      where README.md and bound.jsonl go (default evidence/l4)
  --jobs N       compile so many at once (default: the cores)
  --page         the page alone, from DIR/bound.jsonl; compiles nothing
Compiles each kernel of the ladder with the tile that its rules select on an L4, with --bound for sm_89: at batch 2,
heads 8, length 512, head dim 64, beside other tiles (scripts/lib/l4/tiles.txt), and at the shapes of the peers' grid
(scripts/lib/peers/grid.txt).
Exit: 0, 2 usage, 4 not run (no fa_bench, no jq, no nvdisasm). FA_BENCH names the binary (default ./fa_bench).
EOT
}

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
opt=([dir]=evidence/l4 [jobs]=$(nproc))
flag=([page]=0)
parse_options "$@"
need_number 1 jobs
records=${opt[dir]}/bound.jsonl

rows_of() { # FILE: the row of each line of options
    "$bench" --compile-only --arch sm_89 --bound --runs "$1" --jobs 1 --quiet --json - 2>/dev/null |
        jqf l4/row -c --rawfile lines "$1"
}
export -f rows_of jqf
export bench lib

compile() {
    local kernels
    make_work
    kernels=$("$bench" --list-kernels --json - |
        jq -c 'map(select(.kind == "hand" and .variant_of == null and .arch_specific != true) | .name)')
    {
        grep -v '^#' scripts/lib/l4/tiles.txt | sed 's/$/ --batch 2 --heads 8 --seq 512 --dim 64/'
        jqf l4/grid -nrR --argjson kernels "$kernels" scripts/lib/peers/grid.txt
    } >"$work/runs"
    split -a 4 -d -l 8 "$work/runs" "$work/share."
    # shellcheck disable=SC2016 # expanded by the inner shell
    find "$work" -name 'share.*' | sort |
        xargs -r -P "${opt[jobs]}" -I{} bash -c 'rows_of "$1" >"$1.rows"' _ {}
    find "$work" -name 'share.*.rows' | sort | xargs cat >"$work/rows"
    jq -e -s 'length > 0 and all(.[]; .bound.us or .status == "infeasible")' "$work/rows" >/dev/null ||
        die 4 "NOT-RUN: no bound: $(jq -r '.bound.unknown // .reason // empty' "$work/rows" | head -n 1)"
    replace_file "$records" <"$work/rows"
}

if [[ ${flag[page]} -eq 0 ]]; then
    need_bench
    compile
fi
is_input "$records" || die 2 "cannot read $records"
jqf l4/page -rs --slurpfile rank evidence/h200/bound_rank.json "$records" | replace_file "${opt[dir]}/README.md"
echo "${opt[dir]}/README.md"
