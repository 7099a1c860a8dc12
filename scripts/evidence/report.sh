#!/usr/bin/env bash
# Tables and pages from what lies in evidence/: the documents' tables, a page with pictures per GPU. Measures nothing.
#
# usage: scripts/evidence/report.sh [options]
# Without options: the page of every folder of evidence/ that holds something to draw, and the tables of README.md,
# docs/ and evidence/README.md.
#   --dir DIR      the page of this evidence folder alone (repeatable)
#   --readme       the tables alone, between "<!-- NAME:begin" and "<!-- NAME:end -->"
#   --check        exit 1, with the difference, when a table is not current; writes nothing. Two rows are compiled of a
#                  file that the tables call wholly current, of others all (scripts/evidence/evidence_current.sh)
#   --no-compile   with --check: takes the tables' word for what is wholly of today's machine code, and looks at no
#                  table that leaves out rows; with --dir: counts every row, whatever machine code it is of
#   --table NAME   print one of the tables: summary, kernels, features, paged, fp8, backward, ladder, cards, peers,
#                  versus, sweep or robustness. With --readme: write that one alone; "kernels" needs no evidence, so a
#                  new kernel is in it in seconds
#   --dry-run      say what would be drawn from what
# Rows whose machine code is not what compiles today are left out of tables, cards and pictures, and counted.
# A page is DIR/report.html with DIR/plots/*.svg, from the records of that folder, which it links; what is missing is
# NOT-RUN there. git ignores them, but for plots/peers.svg, which README.md shows. Of two folders and more that lie side
# by side, index.html beside them shows the GPUs side by side.
# Exit: 0, 1 --check saw a difference, 2 usage, 4 NOT-RUN, 6 a failure. NOT-RUN: no fa_bench, jq or gnuplot, no
# compiler, no headers that a kernel needs, a row that could not be compiled. Then no document is changed. FA_BENCH
# names the binary (default ./fa_bench), which knows the registry.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
. scripts/lib/report/tables.sh
. scripts/lib/report/plots.sh
. scripts/lib/report/page.sh
opt=([table]='')
flag=([readme]=0 [check]=0 [no-compile]=0 [dry-run]=0)
many=([dir]='')
parse_options "$@"
shopt -s inherit_errexit
tables=(summary kernels features paged fp8 backward ladder cards peers versus sweep robustness)
mapfile -t dirs < <(values_of dir)
for dir in "${dirs[@]}"; do
    [[ -d $dir ]] || die 2 "no folder $dir"
done
[[ -z ${opt[table]} || " ${tables[*]} " == *" ${opt[table]} "* ]] ||
    die 2 "--table takes one of ${tables[*]}, not '${opt[table]}'"
[[ ${flag[no-compile]} -eq 0 || ${flag[check]} -eq 1 || ${#dirs[@]} -gt 0 ]] ||
    die 2 "--no-compile goes with --check or --dir"
need_bench
[[ -n ${opt[table]} || ${flag[readme]} -eq 1 || ${flag[check]} -eq 1 ]] || command -v gnuplot >/dev/null ||
    die 4 "NOT-RUN: no gnuplot: run scripts/setup.sh"
make_work

if [[ -n ${opt[table]} && ${flag[readme]} -eq 1 ]]; then
    tables=("${opt[table]}")
elif [[ -n ${opt[table]} ]]; then
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
# Can this table of a page, on standard input, not be told without compiling? It has left out rows.
unchecked() { # NAME
    [[ ${flag[check]} -eq 1 && ${flag[no-compile]} -eq 1 ]] && sed -n "/^<!-- $1:begin/,/^<!-- $1:end/p" |
        grep -q "^Machine code equals today's: .*; left out: "
}
with_tables() { # PAGE
    local name table text
    text=$(<"$1")
    for name in "${tables[@]}"; do
        [[ $text == *"<!-- $name:begin"* ]] || continue
        ! unchecked "$name" <<<"$text" || continue
        progress "the table $name of $1"
        # On its own line: a table that cannot be made ends the script. Prose has 120 columns.
        table=$("${name}_table" | sed -E '/^[^|].{120}/{s/(.{1,120})( |$)/\1\n/g;s/\n$//}')
        text=$(with_table "$name" "$table" <<<"$text")
    done
    progress
    printf '%s\n' "$text"
}
make_documents() { # all of them, before any is written
    local page
    for page in "${pages[@]}"; do
        mkdir -p "$work/$(dirname "$page")"
        with_tables "$page" >"$work/$page"
    done
}
write_documents() {
    local page
    make_documents
    for page in "${pages[@]}"; do
        replace_file "$page" <"$work/$page"
    done
}
if [[ ${flag[check]} -eq 1 ]]; then
    make_documents
    for page in "${pages[@]}"; do
        diff "$work/$page" "$page" || die 1 "$page: tables are not current: run $0 --readme"
    done
    exit 0
fi
if [[ ${flag[readme]} -eq 1 ]]; then
    write_documents
    exit 0
fi

all=0
if [[ ${#dirs[@]} -eq 0 ]]; then
    all=1
    mapfile -t dirs < <(folders)
fi
[[ ${#dirs[@]} -gt 0 ]] || die 4 "NOT-RUN: nothing to draw in evidence/ (evidence.sh on a GPU makes it)"
dirs=("${dirs[@]%/}")
for dir in "${dirs[@]}"; do # all of them, before any is drawn
    check_folder "$dir"
done
for dir in "${dirs[@]}"; do
    if [[ ${flag[dry-run]} -eq 1 ]]; then
        for source in ladder.jsonl versus.jsonl leaderboard.jsonl ncu.jsonl; do
            echo "$dir/$source: $([[ -n $(there $source) ]] && echo "drawn" || echo "missing")"
        done
        continue
    fi
    progress "drawing $dir/report.html"
    page >"$work/report.html"
    progress
    replace_file "$dir/report.html" <"$work/report.html"
    echo "$dir/report.html"
done
[[ ${flag[dry-run]} -eq 0 ]] || exit 0
if [[ ${#dirs[@]} -gt 1 && $(dirname "${dirs[@]}" | sort -u | wc -l) -eq 1 ]]; then
    index=$(dirname "${dirs[0]}")/index.html
    page_of_all "${dirs[@]}" >"$work/index.html"
    replace_file "$index" <"$work/index.html"
    echo "$index"
fi
[[ $all -eq 0 ]] || write_documents
