#!/usr/bin/env bash
# Size budget: main.c 120 lines, other .c 400, kernels 400, functions 60 in the driver, 80 in kernels; 120 columns.
#
# usage: scripts/house/check_size.sh
# Exit: 0, 1 and a line per file, function or line over its budget, 2 usage.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
parse_options "$@"
export LC_ALL=C.UTF-8

bad=0
budget() { # FILE LINES
    local lines
    lines=$(wc -l <"$1")
    if ((lines > $2)); then
        echo "$1: $lines lines, the budget is $2"
        bad=1
    fi
}
for file in src/*.c src/*/*.c src/*/*/*.c src/*/*.cu kernels/*.cu kernels/*/*.cuh; do
    [[ -e $file ]] || continue
    case $file in
        src/main.c) budget "$file" 120 ;;
        *) budget "$file" 400 ;;
    esac
done
# A function: from the line of its opening brace in column 0 to the closing one.
long_functions() { # LINES FILE...
    awk -v budget="$1" 'FNR == 1 {start = 0}
        /^{/ {start = FNR}
        /^}/ && start {
            lines = FNR - start - 1
            if (lines > budget) print FILENAME ":" start ": a function of " lines " lines, the budget is " budget
            start = 0
        }' "${@:2}"
}
long=$(long_functions 60 src/*.c src/*/*.c src/*/*/*.c &&
    long_functions 80 src/*/*.cu kernels/*.cu kernels/*/*.cuh examples/*.cu)
if [[ -n $long ]]; then
    echo "$long"
    bad=1
fi
# Tables (.def, .tsv, .md) and recorded output may be wider.
wide=$(grep -rnP '^.{121,}' src include kernels examples scripts studies tests Makefile packages.mk \
    --include={*.[ch],*.cu,*.cuh,*.sh,*.bash,*.bats,*.jq,*.py,Makefile,*.mk} | cut -d: -f1,2) || true
if [[ -n $wide ]]; then
    echo "${wide//$'\n'/ }: more than 120 columns"
    bad=1
fi
exit $bad
