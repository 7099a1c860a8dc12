#!/usr/bin/env bash
# Counts the negative controls of the emulator: each part of tests/emu/controls.cu is wrong in one way, and test_emu
# says whether it was reported.
#
# usage: tests/emu/controls.sh [--json FILE] [--help]
#   --json FILE   summary (default build/controls.json)
# Runs build/tests/emu/test_emu (make test-binaries) and prints a line per control: CAUGHT when every run of it was
# reported as it must be, with its class and line, MISSED when one was not or there is none. BUILD names the build
# folder.
# Exit: 0 none missed, 1 one missed, 2 usage, 4 no test_emu.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
script=tests/emu/controls.sh
build=${BUILD:-build}
opt=([json]=$build/controls.json)
parse_options "$@"
json=${opt[json]}
[[ -x $build/tests/emu/test_emu ]] || die 4 "no $build/tests/emu/test_emu: make test-binaries"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$build/tests/emu/test_emu" >"$log" 2>&1 || true
mkdir -p "$(dirname "$json")"
# Runs are named control_NAME_SA: schedule and sanitizer. What a control does wrong stands in the comment above it.
awk '/^\/\*/ {said = ""} {said = said " " $0}
    match($0, /^CONTROL\([a-z_0-9]+/) {print substr($0, 9, RLENGTH - 8), said}' tests/emu/controls.cu |
    sed -E 's: +/\* : :; s: *\*/.*::; s: +\* : :g' | while read -r name is; do
    ok=$(grep -cE "^\[       OK \] control_${name}_[a-z]{2}$" "$log" || true)
    bad=$(grep -cE "^\[  FAILED  \] control_${name}_[a-z]{2}$" "$log" || true)
    verdict=$([[ $ok -gt 0 && $bad -eq 0 ]] && echo CAUGHT || echo MISSED)
    printf '%-7s %-26s %d runs\n' "$verdict" "$name" "$((ok + bad))" >&2
    jq -nc --arg name "$name" --arg verdict "$verdict" --argjson runs "$((ok + bad))" --arg is "$is" '$ARGS.named'
done | lib=tests jqf summaries/controls -s >"$json"
jq -r '"\(.caught) of \(.caught + .missed) controls caught, in \(.runs) runs"' "$json"
jq -e '.missed == 0' "$json" >/dev/null
