#!/usr/bin/env bash
# README.md and AGENTS.md are true: every option they name exists, every file too, and the tables are current.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bad=0
help=$(./fa_bench --help)
own=" check json help budget resume run readme " # of scripts
while read -r option; do
    grep -qE -- "^  --$option( |\$)" <<<"$help" || [[ $own == *" $option "* ]] || { echo "no option --$option"; bad=1; }
done < <(grep -ohE '(^|[ `(])--[a-z][a-z0-9-]+' README.md AGENTS.md | sed -E 's/.*--//' | sort -u)
while read -r file; do
    [[ -e $file ]] || { echo "no file $file"; bad=1; }
done < <(grep -ohE "(scripts|tests|src|kernels|include|examples)/[A-Za-z0-9_./]+\.(sh|c|h|cu|cuh|def|json|py)" \
    README.md AGENTS.md | sort -u | grep -v NAME)
scripts/report.sh --check || bad=1
scripts/manual.sh --check || bad=1
exit $bad
