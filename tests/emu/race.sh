#!/usr/bin/env bash
# Counts the controls of the race detector: kernels with a race (tests/emu/race/racy.cu), of which none may be missed,
# and kernels without one (clean.cu), of which none may be accused, each under every schedule of the emulator.
#
# usage: tests/emu/race.sh [--json FILE] [--help]
#   --json FILE   summary (default build/race_controls.json)
# Runs build/tests/emu/test_emu_race (make test-binaries; some minutes). BUILD names the build folder.
# Exit: 0 none missed and none accused, 1 one was, 2 usage, 4 no test_emu_race.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
script=tests/emu/race.sh
build=${BUILD:-build}
opt=([json]=$build/race_controls.json)
parse_options "$@"
json=${opt[json]}
[[ -x $build/tests/emu/test_emu_race ]] || die 4 "no $build/tests/emu/test_emu_race: make test-binaries"
mkdir -p "$(dirname "$json")"
# Runs are named racy_NAME_S and clean_NAME_S: the schedule is a letter.
{ "$build/tests/emu/test_emu_race" 2>&1 || true; } | sed -nE \
    -e 's/^\[       OK \] (racy|clean)_(.*)_[adrg]$/{"is":"\1","name":"\2","good":true}/p' \
    -e 's/^\[  FAILED  \] (racy|clean)_(.*)_[adrg]$/{"is":"\1","name":"\2","good":false}/p' |
    lib=tests jqf summaries/race_controls -s >"$json"
jq -r '"\(.racy) racy kernels, \(.missed | length) missed; \(.clean) clean kernels, \(.accused | length) accused; " +
    "\(.runs) runs", (.missed[] | "missed: \(.)"), (.accused[] | "accused: \(.)")' "$json"
jq -e '.racy >= 30 and .clean >= 20 and .missed == [] and .accused == []' "$json" >/dev/null
