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
passed=0 failed=0 skipped=0

tally() { # NAME PASSED FAILED SKIPPED
    printf '%-28s %4d passed %3d failed %3d skipped\n' "$1" "$2" "$3" "$4"
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
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
    check house-size scripts/check_size.sh
    check house-includes scripts/check_includes.sh
    check house-shellcheck shellcheck "${scripts[@]}"
    check house-docs tests/check_docs.sh
}

# A cmocka binary says how many of its tests passed, failed and were skipped.
run_cmocka() { # BINARY
    local name log ok bad skip code=0
    name=$(basename "$1")
    log=$out/$name.log
    timeout 600 "$1" >"$log" 2>&1 || code=$?
    ok=$(grep -c '^\[       OK \]' "$log" || true)
    bad=$(grep -c '^\[  FAILED  \] [A-Za-z_]*$' "$log" || true)
    skip=$(grep -c '^\[  SKIPPED \] [A-Za-z_]*$' "$log" || true)
    [[ $code -ne 0 && $bad -eq 0 ]] && bad=1 # it crashed or hung
    [[ $code -eq 0 && $((ok + skip)) -eq 0 ]] && bad=1 # it ran nothing
    tally "$name" "$ok" "$bad" "$skip"
    [[ $bad -eq 0 ]] || grep -vE '^\[ (RUN|      OK)' "$log" | sed 's/^/    /' | tail -n 40
}

suite_unit() {
    local binary
    for binary in "$build"/tests/unit/test_*; do
        [[ -x $binary && $binary != *.d ]] && run_cmocka "$binary"
    done
    return 0
}

suite_emu() {
    local binary
    for binary in "$build"/tests/emu/test_*; do
        [[ -x $binary && $binary != *.d ]] && run_cmocka "$binary"
    done
    return 0
}

# bats in TAP: "ok N name", "ok N name # skip why", "not ok N name".
suite_cli() {
    local file name log skip ok bad code
    for file in tests/cli/*.bats; do
        name=$(basename "$file")
        log=$out/$name.log
        code=0
        bats --tap "$file" >"$log" 2>&1 || code=$?
        skip=$(grep -c '^ok .* # skip' "$log" || true)
        ok=$(($(grep -c '^ok ' "$log" || true) - skip))
        bad=$(grep -c '^not ok ' "$log" || true)
        [[ $code -ne 0 && $bad -eq 0 ]] && bad=1
        tally "$name" "$ok" "$bad" "$skip"
        [[ $bad -eq 0 ]] || grep -A12 '^not ok ' "$log" | sed 's/^/    /'
    done
}

# A few seconds of each fuzzer on the committed corpus; ten minutes each: make fuzz.
suite_fuzz() {
    local name
    for name in options spec log npy cubin json; do
        tests/fuzz/run.sh --seconds "${FUZZ_SECONDS:-3}" --only "$name" --json "$out/fuzz-$name.json" >"$out/fuzz-$name.log" 2>&1 || true
        case $(jq -r '.targets[0].verdict' "$out/fuzz-$name.json" 2>/dev/null) in
            PASS) tally "fuzz-$name" 1 0 0 ;;
            NOT-RUN) tally "fuzz-$name: clang has no libFuzzer" 0 0 1 ;;
            *) tally "fuzz-$name" 0 1 0; sed 's/^/    /' "$out/fuzz-$name.log" ;;
        esac
    done
}

suites=("$@")
[[ ${#suites[@]} -gt 0 ]] || suites=(house unit emu cli fuzz)
for suite in "${suites[@]}"; do
    case $suite in
        house | unit | emu | cli | fuzz) "suite_$suite" ;;
        *) echo "run_all.sh: no suite '$suite'" >&2; exit 2 ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 && $passed -gt 0 ]]
