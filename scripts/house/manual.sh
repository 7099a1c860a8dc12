#!/usr/bin/env bash
# The generated parts of the manual: docs/options.md, presets.md, record.md, the man page, the bash completion.
#
# usage: scripts/house/manual.sh [option]
# Without options: writes docs/options.md from the program's options, docs/presets.md from src/input/presets.def and
# docs/record.md from the record's schema.
#   --check        write nothing; exit 1, with the difference, when a page is not current
#   --man          print the man page
#   --completion   print the bash completion
# A field of tests/schemas/fa_bench.result.schema.json without a description is an error.
# FA_BENCH names the binary (default ./fa_bench). Exit: 0, 1 a page is not current, 2 usage, 4 NOT-RUN, 5 no words.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
flag=([check]=0 [man]=0 [completion]=0)
parse_options "$@"
need_bench

presets() { # [[name, what, source, options], ...]
    sed -nE 's/^FA_PRESET\((.*)\)$/[\1]/p' src/input/presets.def | jq -c '.[:3] + [.[3:] | join(" ")]' | jq -sc .
}
options() { # PROGRAM: of scripts/lib/manual.jq
    "$bench" --help --json - | jqf "manual/$1" -r --argjson presets "$(presets)" \
        --arg version "$(sed -n 's/^#define FA_VERSION "\(.*\)"/\1/p' src/base/version.h)"
}

for page in man completion; do
    if [[ ${flag[$page]} -eq 1 ]]; then
        options "$page"
        exit 0
    fi
done
make_work
options options >"$work/options.md"
options presets >"$work/presets.md"
jqf manual/record -r tests/schemas/fa_bench.result.schema.json >"$work/record.md"
for page in options presets record; do
    if [[ ${flag[check]} -eq 0 ]]; then
        replace_file "docs/$page.md" <"$work/$page.md"
        continue
    fi
    diff "$work/$page.md" "docs/$page.md" || die 1 "docs/$page.md is not current: run scripts/house/manual.sh"
done
