#!/usr/bin/env bash
# Makes evidence/robustness: what was tried against the bench and how often it held, each part by the script that the README's table names.
set -euo pipefail

usage() {
    cat <<'EOT'
usage: scripts/robustness.sh PART... [--out DIR] [--kills N] [--fuzz-seconds N] [--dry-run] [--help]
Parts, or all:
  controls   kernels wrong in one way, on the emulator (tests/emu/controls.sh)
  mutants    barriers and waits taken out of the kernels (tests/emu/mutants.sh; some minutes)
  race       the emulator's problem matrix under its race detector (scripts/ci_gate.sh --race; some minutes)
  asan       the suites with the driver under ASan, UBSan and LeakSanitizer (tests/asan.sh; some minutes)
  fuzz       --fuzz-seconds N each, default 600 (tests/fuzz/run.sh)
  cheats     on this machine's device (scripts/cheats.sh)
  faults     on this machine, with its GPU where it has one; --kills N, default 200 (scripts/faults.sh)
conform and sanitize, which need a GPU, are parts of scripts/evidence.sh and scripts/ci_gate.sh.
Writes DIR/PART.json, of cheats and faults DIR/PART_DEVICE.json (default DIR: evidence/robustness). Each part runs on where another failed.
FA_BENCH names the binary (default ./fa_bench). Exit: 0 all held, 1 one did not, 2 usage, 4 a part could not run.
EOT
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/gpu.sh
. scripts/gpu.sh
all=(controls mutants race asan fuzz cheats faults)
parts=() out=evidence/robustness kills=200 seconds=600 dry_run=0
while [[ $# -gt 0 ]]; do
    case $1 in
        --out | --kills | --fuzz-seconds)
            [[ $# -ge 2 ]] || { echo "robustness.sh: $1 needs a value" >&2; exit 2; }
            case $1 in --out) out=$2 ;; --kills) kills=$2 ;; --fuzz-seconds) seconds=$2 ;; esac
            shift
            ;;
        --dry-run) dry_run=1 ;;
        --help) usage; exit 0 ;;
        all) parts+=("${all[@]}") ;;
        *)
            [[ " ${all[*]} " == *" $1 "* ]] || { echo "robustness.sh: unknown argument $1 (see --help)" >&2; exit 2; }
            parts+=("$1")
            ;;
    esac
    shift
done
[[ ${#parts[@]} -gt 0 ]] || { usage >&2; exit 2; }
bench=${FA_BENCH:-./fa_bench}
[[ -x $bench ]] || { echo "robustness.sh: no $bench: run make" >&2; exit 4; }
device=emu
[[ -z $(gpu_name "$bench") ]] || device=cuda

worst=0
try() { # COMMAND...
    local code=0
    echo "$*"
    [[ $dry_run -eq 0 ]] || return 0
    "$@" || code=$?
    if [[ $code -eq 1 || ($code -ne 0 && $worst -eq 0) ]]; then worst=$code; fi
}
[[ $dry_run -eq 1 ]] || mkdir -p "$out"
for part in "${parts[@]}"; do
    case $part in
        controls) try tests/emu/controls.sh --json "$out/controls.json" ;;
        mutants) try tests/emu/mutants.sh --json "$out/mutants.json" ;;
        race)
            try scripts/ci_gate.sh --race --out build/race
            [[ $dry_run -eq 1 ]] || cp build/race/summary.json "$out/race.json"
            ;;
        asan) try tests/asan.sh --json "$out/asan.json" ;;
        fuzz) try tests/fuzz/run.sh --seconds "$seconds" --json "$out/fuzz.json" ;;
        cheats) try scripts/cheats.sh --device $device --json "$out/cheats_$device.json" ;;
        faults) try scripts/faults.sh --kills "$kills" --json "$out/faults_$device.json" ;;
    esac
done
exit "$worst"
