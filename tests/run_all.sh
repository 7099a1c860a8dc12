#!/usr/bin/env bash
# Runs every suite on the built binaries and ends with "N passed, N failed, N skipped". Exit 1 when anything failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ${1:-} == --help ]]; then
    echo "usage: tests/run_all.sh [SUITE...]    suites: house unit emu cli fuzz (default: all)"
    exit 0
fi

build=${BUILD:-build}
out=$build/test
rm -rf "$out"
mkdir -p "$out"
export XDG_CACHE_HOME=$PWD/$out/cache FA_TEST_OUT=$PWD/$out OMP_WAIT_POLICY=passive
jobs=${JOBS:-$(nproc)}

# Tests of one suite member run in the background, as many members at once as there are cores; each leaves its line, its
# log and its counts, and the counts are added up at the end.
running=0
member() { # NAME FUNCTION ARGUMENTS...
    local name=$1
    shift
    (
        "$@" >"$out/$name.lines" 2>&1 || true
        [[ -s $out/$name.counts ]] || echo "0 1 0" >"$out/$name.counts" # it died before it could count
        cat "$out/$name.lines"
    ) &
    running=$((running + 1))
    if [[ $running -ge $jobs ]]; then
        wait -n || true
        running=$((running - 1))
    fi
}

tally() { # NAME PASSED FAILED SKIPPED
    printf '%-28s %4d passed %3d failed %3d skipped\n' "$1" "$2" "$3" "$4"
    echo "$2 $3 $4" >"$out/${1%%:*}.counts"
}

# One check that is a command: passes when it exits 0.
check() { # NAME COMMAND...
    local name=$1
    shift
    if "$@" >"$out/$name.log" 2>&1; then
        tally "$name" 1 0 0
    else
        tally "$name" 0 1 0
        sed 's/^/    /' "$out/$name.log"
    fi
}

suite_house() {
    local scripts
    mapfile -t scripts < <(git ls-files '*.sh' .ci/run 2>/dev/null || find scripts tests .ci -name '*.sh')
    member house-size check house-size scripts/check_size.sh
    member house-includes check house-includes scripts/check_includes.sh
    member house-shellcheck check house-shellcheck shellcheck "${scripts[@]}"
    member house-docs check house-docs tests/check_docs.sh
    member house-evidence check house-evidence scripts/evidence_index.sh --check
}

# A cmocka binary says how many of its tests passed, failed and were skipped.
run_cmocka() { # BINARY
    local name log ok bad skip code=0
    name=$(basename "$1")
    log=$out/$name.log
    timeout "${TEST_TIMEOUT:-600}" "$1" >"$log" 2>&1 || code=$?
    ok=$(grep -c '^\[       OK \]' "$log" || true)
    # Named where they fail and once more at the end.
    bad=$(grep '^\[  FAILED  \] [A-Za-z_0-9]*$' "$log" | sort -u | wc -l || true)
    skip=$(grep '^\[  SKIPPED \] [A-Za-z_0-9]*$' "$log" | sort -u | wc -l || true)
    [[ $code -ne 0 && $bad -eq 0 ]] && bad=1 # it crashed or hung
    [[ $code -eq 0 && $((ok + skip)) -eq 0 ]] && bad=1 # it ran nothing
    tally "$name" "$ok" "$bad" "$skip"
    [[ $bad -eq 0 ]] || grep -vE '^\[ (RUN|      OK)' "$log" | sed 's/^/    /' | tail -n 40
}

suite_unit() {
    local binary
    for binary in "$build"/tests/unit/test_*; do
        [[ -x $binary && $binary != *.d ]] && member "$(basename "$binary")" run_cmocka "$binary"
    done
    return 0
}

suite_emu() {
    local binary
    for binary in "$build"/tests/emu/test_*; do
        [[ -x $binary && $binary != *.d ]] && member "$(basename "$binary")" run_cmocka "$binary"
    done
    return 0
}

# bats in TAP: "ok N name", "ok N name # skip why", "not ok N name".
run_bats() { # FILE
    local name log skip ok bad code=0
    name=$(basename "$1")
    log=$out/$name.log
    bats --tap "$1" >"$log" 2>&1 || code=$?
    skip=$(grep -c '^ok .* # skip' "$log" || true)
    ok=$(($(grep -c '^ok ' "$log" || true) - skip))
    bad=$(grep -c '^not ok ' "$log" || true)
    [[ $code -ne 0 && $bad -eq 0 ]] && bad=1
    tally "$name" "$ok" "$bad" "$skip"
    [[ $bad -eq 0 ]] || grep -A12 '^not ok ' "$log" | sed 's/^/    /'
}

suite_cli() {
    local file
    for file in tests/cli/*.bats; do
        member "$(basename "$file")" run_bats "$file"
    done
}

# A few seconds of each fuzzer on the committed corpus; ten minutes each: make fuzz.
run_fuzzer() { # NAME
    tests/fuzz/run.sh --seconds "${FUZZ_SECONDS:-3}" --only "$1" --json "$out/fuzz-$1.json" >"$out/fuzz-$1.log" 2>&1 || true
    case $(jq -r '.targets[0].verdict' "$out/fuzz-$1.json" 2>/dev/null) in
        PASS) tally "fuzz-$1" 1 0 0 ;;
        NOT-RUN) tally "fuzz-$1: clang has no libFuzzer" 0 0 1 ;;
        *) tally "fuzz-$1" 0 1 0; sed 's/^/    /' "$out/fuzz-$1.log" ;;
    esac
}

suite_fuzz() {
    local name
    for name in options spec log npy cubin json; do
        member "fuzz-$name" run_fuzzer "$name"
    done
}

suites=("$@")
[[ ${#suites[@]} -gt 0 ]] || suites=(emu cli fuzz unit house) # the long ones first
for suite in "${suites[@]}"; do
    case $suite in
        house | unit | emu | cli | fuzz) "suite_$suite" ;;
        *) echo "run_all.sh: no suite '$suite'" >&2; exit 2 ;;
    esac
done
wait
read -r passed failed skipped < <(cat "$out"/*.counts | awk '{p += $1; f += $2; s += $3} END {print p + 0, f + 0, s + 0}')
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 && $passed -gt 0 ]]
