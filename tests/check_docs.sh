#!/usr/bin/env bash
# The documents are true: every option, file and link they name exists; pictures are XML that a browser can show; tables
# and generated pages are current; README.md is short. tests/cli/docs.bats runs their commands.
#
# usage: tests/check_docs.sh [--no-compile]
#   --no-compile   what a table calls current is not compiled again
# Exit: 0, 1 and a line per thing that is not true, 2 usage, 4 not run (no fa_bench, jq or python3).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
flag=([no-compile]=0)
parse_options "$@"
need_bench
command -v python3 >/dev/null || die 4 "NOT-RUN: no python3: run scripts/setup.sh"
shopt -s nullglob

bad=0
say() {
    echo "$1"
    bad=1
}
docs=(README.md AGENTS.md CHANGELOG.md docs/*.md evidence/README.md tests/README.md scripts/README.md)
known=$("$bench" --help && for script in scripts/{,house/,evidence/}*.sh tests/run_{all.sh,docs.py} \
    studies/{estimate,replay}.py; do
    "$script" --help
done)
# Options of every script, and of sbatch, openevolve-run, shinka_run, robust-kbench. A name is cut before a "_".
known+=" --help --array --config --config-fname --task-dir --results --num --op "
while read -r option; do
    grep -qE -- "(^|[^a-z-])--$option([^a-z0-9-]|\$)" <<<"$known" || say "no option --$option"
done < <(grep -ohE '(^|[ `(])--[a-z][a-z0-9-]+' "${docs[@]}" | sed -E 's/.*--//' | sort -u)
while read -r file; do
    [[ -e $file ]] || say "no file $file"
done < <(grep -ohE "(scripts|tests|src|kernels|include|examples|studies)/[A-Za-z0-9_./]+\.(sh|cu?h?|def|json|py)\b" \
    "${docs[@]}" | sort -u | grep -vE 'NAME|kernels/mine.cu')
headings() { # FILE: as the end of a link names them
    sed -nE 's/^#+ //; T; s/[^A-Za-z0-9 _-]//g; s/ /-/g; p' "$1" | tr '[:upper:]' '[:lower:]'
}
for doc in "${docs[@]}"; do
    while read -r link; do
        [[ $link != http* ]] || continue
        file=$(dirname "$doc")/${link%%#*}
        [[ $link != "#"* ]] || file=$doc
        [[ -e $file && ($link != *"#"* || $'\n'$(headings "$file")$'\n' == *$'\n'"${link#*#}"$'\n'*) ]] ||
            say "$doc: no $link"
    done < <(grep -oE '\]\([^)]+\)' "$doc" | sed -E 's/^\]\((.*)\)$/\1/')
done
# Pictures are well-formed XML: a browser shows nothing of one that is not.
for file in docs/*.svg evidence/*/plots/*.svg; do
    said=$(python3 -c 'import sys, xml.etree.ElementTree as xml; xml.parse(sys.argv[1])' "$file" 2>&1) ||
        say "$file: ${said##*Error: }"
done
# Where a page says "`name` in `file`" the file has the name.
# shellcheck disable=SC2016 # Markdown's backticks
while IFS='|' read -r name file; do
    grep -qw -- "$name" "$file" || say "docs/architecture.md: no $name in $file"
done < <(grep -oE '`[a-z_A-Z]+` in `[A-Za-z0-9_./]+`' docs/architecture.md | sed -E 's/`(.*)` in `(.*)`/\1|\2/')
# Every file of studies/ is named there, and what is named is there.
named=$(grep -oE '[^/a-z0-9_.][a-z0-9_]+\.(cuh?|c|txt|md|py|patch|jsonl?(\.gz)?)\b' studies/README.md | cut -c2-)
for file in studies/*; do
    grep -qxF "${file##*/}" <<<"README.md"$'\n'"$named" || say "studies/README.md does not name ${file##*/}"
done
while read -r file; do
    [[ -e studies/$file ]] || say "studies/README.md: no file studies/$file"
done <<<"$named"
# A record is of a commit.
while read -r file; do
    ! zcat -f "$file" | grep -qE '[0-9a-f]{12}-dirty' || say "$file: a record of a changed tree (-dirty)"
done < <(find evidence -type f ! -name '*.md' ! -name '*.html' ! -name '*.svg')
length=$(wc -w <README.md)
((length <= 900)) || say "README.md: $length words, the budget is 900"
scripts/evidence/report.sh --check "$@" || bad=1
scripts/house/manual.sh --check || bad=1
scripts/house/test_map.py --check || bad=1
exit $bad
