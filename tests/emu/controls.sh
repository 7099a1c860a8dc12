#!/usr/bin/env bash
# Counts the emulator's controls. Each part of tests/emu/controls.cu is wrong in one way and must be reported, with its
# class and line. With --race: of the kernels of tests/emu/race, none with a race may be missed and none without one
# accused, each under every schedule.
#
# usage: tests/emu/controls.sh [--race] [--json FILE]
#   --race        the controls of the race detector (some minutes)
#   --json FILE   summary (default build/controls.json, build/race_controls.json)
# Runs build/tests/emu/test_emu or test_emu_cases (make test-binaries). Prints a line per control: CAUGHT when every run
# of it was reported as it must be, MISSED when one was not or there is none; with --race what was missed and accused.
# BUILD names the build folder. Exit: 0 none missed and none accused, 1 one was, 2 usage, 4 no such program.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh
script=tests/emu/controls.sh
build=${BUILD:-build}
opt=([json]='')
flag=([race]=0)
parse_options "$@"
what=controls program=(test_emu)
[[ ${flag[race]} -eq 0 ]] || what=race_controls program=(test_emu_cases race)
json=${opt[json]:-$build/$what.json}
[[ -x $build/tests/emu/${program[0]} ]] || die 4 "no $build/tests/emu/${program[0]}: make test-binaries"
make_work
mkdir -p "$(dirname "$json")"
"$build/tests/emu/${program[0]}" "${program[@]:1}" >"$work/log" 2>&1 || true

# Runs are named control_NAME_SA: schedule and sanitizer.
each_control() {
    sed -n 's/^#if defined(CONTROL_\(.*\))$/\1/p' tests/emu/controls.cu | while read -r name; do
        ok=$(grep -cE "^\[       OK \] control_${name}_[a-z]{2}$" "$work/log" || true)
        bad=$(grep -cE "^\[  FAILED  \] control_${name}_[a-z]{2}$" "$work/log" || true)
        verdict=$([[ $ok -gt 0 && $bad -eq 0 ]] && echo CAUGHT || echo MISSED)
        printf '%-7s %-26s %d runs\n' "$verdict" "$name" "$((ok + bad))" >&2
        jq -nc --arg name "$name" --arg verdict "$verdict" --argjson runs "$((ok + bad))" \
            --arg is "$(sed -n "/CONTROL_$name)/,/\*\//p" tests/emu/controls.cu | sed 1d | tr -s "\n" " " |
                sed -E 's/^\/\* *//; s/ *\*\/ *$//; s/ +\* / /g')" \
            '$ARGS.named'
    done
}
# Runs are named racy_NAME_S and clean_NAME_S: the schedule.
each_race() {
    sed -nE -e 's/^\[       OK \] (racy|clean)_(.*)_[adrg]$/{"is":"\1","name":"\2","good":true}/p' \
        -e 's/^\[  FAILED  \] (racy|clean)_(.*)_[adrg]$/{"is":"\1","name":"\2","good":false}/p' "$work/log"
}

if [[ ${flag[race]} -eq 1 ]]; then each_race; else each_control; fi | lib=tests jqf "summaries/$what" -s >"$json"
lib=tests jqf "summaries/${what}_text" -r "$json"
jq -e 'if .what == "controls" then .missed == 0
    else .racy >= 30 and .clean >= 20 and .missed == [] and .accused == [] end' "$json" >/dev/null
