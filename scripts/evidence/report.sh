#!/usr/bin/env bash
# Tables and pages from what lies in evidence/: the documents' tables, a page with pictures per GPU. Measures nothing.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/evidence/report.sh [options]
Without options: the page of every folder of evidence/ that holds something to draw, and the tables of README.md,
docs/kernels.md and evidence/README.md.
  --dir DIR      the page of this evidence folder alone (repeatable)
  --readme       the tables alone, between "<!-- NAME:begin" and "<!-- NAME:end -->"
  --check        exit 1, with the difference, when a table is not current; writes nothing. Of a table whose rows all
                 are of today's machine code it compiles two, of another none (scripts/evidence/evidence_current.sh)
  --no-compile   with --check: takes the page's word for what is of today's machine code
  --table NAME   print one of the tables: summary, kernels, ladder, peers, versus, sweep or robustness
  --png          PNG beside each SVG
  --dry-run      say what would be drawn from what
A page is DIR/report.html with DIR/plots/*.svg, from the records of that folder, which it links; what is
missing is NOT-RUN there. Of two folders and more that lie side by side, index.html beside them shows the GPUs side by
side. FA_BENCH names the binary (default ./fa_bench), which knows the registry.
Exit: 0, 1 --check saw a difference, 2 usage, 4 NOT-RUN (no gnuplot, no jq, no evidence), 6 a failure.
USAGE
}

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
. scripts/lib/report/tables.sh
. scripts/lib/report/plots.sh
. scripts/lib/report/page.sh
opt=([table]='')
flag=([readme]=0 [check]=0 [no-compile]=0 [png]=0 [dry-run]=0)
many=([dir]='')
parse_options "$@"
png=${flag[png]}
tables=(summary kernels ladder peers versus sweep robustness)

if [[ -n ${opt[table]} ]]; then
    [[ " ${tables[*]} " == *" ${opt[table]} "* ]] || die 2 "--table takes one of ${tables[*]}, not '${opt[table]}'"
    "${opt[table]}_table"
    exit 0
fi

# Standard input, with what stands between the markers of NAME replaced by the table.
with_table() { # NAME TABLE
    awk -v name="$1" -v table="$2" '
        index($0, "<!-- " name ":begin") == 1 {print; print table; skip = 1; next}
        index($0, "<!-- " name ":end") == 1 {skip = 0}
        !skip {print}'
}
with_tables() { # PAGE
    local name table text
    text=$(<"$1")
    for name in "${tables[@]}"; do
        [[ $text == *"<!-- $name:begin"* ]] || continue
        table=$("${name}_table") # on its own line: a table that cannot be made ends the script
        text=$(with_table "$name" "$table" <<<"$text")
    done
    printf '%s\n' "$text"
}
if [[ ${flag[check]} -eq 1 ]]; then
    for page in "${pages[@]}"; do
        text=$(with_tables "$page")
        diff <(printf '%s\n' "$text") "$page" || die 1 "$page: tables are not current: run $0 --readme"
    done
    exit 0
fi
write_tables() {
    local page text
    for page in "${pages[@]}"; do
        text=$(with_tables "$page")
        replace_file "$page" <<<"$text"
    done
}
if [[ ${flag[readme]} -eq 1 ]]; then
    write_tables
    exit 0
fi

for tool in jq gnuplot; do
    command -v "$tool" >/dev/null || die 4 "NOT-RUN: no $tool: run scripts/setup.sh"
done
mapfile -t dirs < <(values_of dir)
all=0
if [[ ${#dirs[@]} -eq 0 ]]; then
    all=1
    mapfile -t dirs < <(find evidence -mindepth 2 -maxdepth 2 \
        \( -name ladder.json -o -name 'leaderboard.jsonl*' -o -name peers.json \) -printf '%h\n' | sort -u)
fi
[[ ${#dirs[@]} -gt 0 ]] || die 4 "NOT-RUN: nothing to draw in evidence/ (evidence.sh on a GPU makes it)"
make_work
dirs=("${dirs[@]%/}")
for dir in "${dirs[@]}"; do
    [[ -d $dir ]] || die 2 "no folder $dir"
    sweep_log=leaderboard.jsonl
    [[ -s $dir/$sweep_log || ! -s $dir/$sweep_log.gz ]] || sweep_log+=.gz
    if [[ ${flag[dry-run]} -eq 1 ]]; then
        for source in ladder.json "$sweep_log" peers.json; do
            echo "$dir/$source: $([[ -s $dir/$source ]] && echo "drawn" || echo "missing")"
        done
        continue
    fi
    page >"$work/report.html"
    replace_file "$dir/report.html" <"$work/report.html"
    echo "$dir/report.html"
done
if [[ ${#dirs[@]} -gt 1 && ${flag[dry-run]} -eq 0 && $(dirname "${dirs[@]}" | sort -u | wc -l) -eq 1 ]]; then
    index=$(dirname "${dirs[0]}")/index.html
    page_of_all "${dirs[@]}" >"$work/index.html"
    replace_file "$index" <"$work/index.html"
    echo "$index"
fi
[[ $all -eq 0 || ${flag[dry-run]} -eq 1 ]] || write_tables
