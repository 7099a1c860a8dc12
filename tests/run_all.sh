#!/usr/bin/env bash
# Runs the suites on the built binaries. Ends with the slowest tests and "N passed, N failed, N skipped"; exit 1 when
# one failed.
set -euo pipefail

usage() {
    cat <<'EOT'
usage: tests/run_all.sh [--check | --rest | --all] [SUITE...]
       tests/run_all.sh emu [--kernel] NAME
  SUITE          house, unit, emu, cli, fuzz, mutants (default: every suite that has tests of this choice)
  emu NAME       every test of one kernel on the emulator: all schedules, sanitizers, tiles
  --check        what takes seconds: house rules, unit tests, one kernel on the emulator
  --rest         what `make test` leaves out: slow tests (bats: the tag `slow`), fuzzers, mutants
  --all          both; the default is `make test`: neither slow tests, nor fuzzers, nor mutants
Mutants and wrong kernels are drawn by SEED (default: drawn, and printed), SAMPLE of each (default 8; 0: all, hours).
A line per program: its tests, its CPU seconds and its wall seconds. JOBS: how many at once (default: cores).
Logs: build/test. TEST_TIMEOUT: seconds until a program that hangs is ended and counted as failed (default 1200).
Compiled kernels are kept in build/test-cache from one run to the next; `make clean` empties it.
EOT
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C.UTF-8 # no test depends on a locale that may not be there
which="test"
kernel=''
suites=()
while [[ $# -gt 0 ]]; do
    case $1 in
        --check | --rest | --all) which=${1#--} ;;
        --kernel) [[ $# -ge 2 ]] || { echo "run_all.sh: --kernel needs a name" >&2; exit 2; }; kernel=$2; shift ;;
        -h | --help) usage; exit 0 ;;
        house | unit | emu | cli | fuzz | mutants) suites+=("$1") ;;
        *)
            if [[ ${suites[*]} != emu || -n $kernel || $1 == -* ]]; then
                echo "run_all.sh: no suite '$1' (see --help)" >&2
                exit 2
            fi
            kernel=$1
            ;;
    esac
    shift
done
[[ -z $kernel || ${suites[*]} == emu ]] || { echo "run_all.sh: --kernel goes with the suite emu alone" >&2; exit 2; }

build=${BUILD:-build}
out=$build/test
rm -rf "$out"
mkdir -p "$out" "$build/test-cache"
export XDG_CACHE_HOME=$PWD/$build/test-cache FA_TEST_OUT=$PWD/$out OMP_WAIT_POLICY=passive
: >"$out/times.tsv" # CPU seconds, wall seconds, test: one line per bats test, by tests/cli/helper.bash
jobs=${JOBS:-$(nproc)}

# Members run in the background, as many at once as there are cores. Each leaves a log, and its counts in a file; the
# counts are added up at the end. `times` says what a member's subshell and everything it waited for have used.
running=0
member() { # NAME FUNCTION ARGUMENTS...
    local name=$1
    shift
    (
        start=$EPOCHREALTIME
        "$@" >"$out/$name.said" 2>&1 || true
        [[ -s $out/$name.counts ]] || echo "0 1 0" >"$out/$name.counts" # it died before it could count
        read -r ok bad skip note <"$out/$name.counts"
        times >"$out/$name.times"
        awk -v start="$start" -v end="$EPOCHREALTIME" -v name="$name${note:+: $note}" -v ok="$ok" -v bad="$bad" \
            -v skip="$skip" '
            {for (i = 1; i <= NF; i++) {split($i, part, /[ms]/); cpu += 60 * part[1] + part[2]}}
            END {printf "%-28s %4d passed %3d failed %3d skipped  %7.1f s CPU %7.1f s wall\n", \
                name, ok, bad, skip, cpu, end - start}' "$out/$name.times"
        cat "$out/$name.said"
    ) &
    running=$((running + 1))
    if [[ $running -ge $jobs ]]; then
        wait -n || true
        running=$((running - 1))
    fi
}

tally() { # NAME PASSED FAILED SKIPPED [NOTE]
    echo "${*:2}" >"$out/$1.counts"
}

# What hangs ends, and says so in its log: the others run, and the sum is written.
limited() { # COMMAND...
    local code=0
    timeout -k 30 "${TEST_TIMEOUT:-1200}" "$@" || code=$?
    [[ $code -ne 124 && $code -ne 137 ]] || echo "ended after ${TEST_TIMEOUT:-1200} s: $*"
    return $code
}

# One check that is a command: passes when it exits 0, is skipped when it exits 4, with the last line it said as the
# reason.
check() { # NAME COMMAND...
    local name=$1 code=0
    shift
    limited "$@" >"$out/$name.log" 2>&1 || code=$?
    case $code in
        0) tally "$name" 1 0 0 ;;
        4) tally "$name" 0 0 1 "$(tail -n 1 "$out/$name.log")" ;;
        *)
            tally "$name" 0 1 0
            sed 's/^/    /' "$out/$name.log"
            ;;
    esac
}

suite_house() {
    local scripts
    if [[ $which == rest || $which == all ]]; then # compiles what the evidence calls current
        member house-docs-compiled check house-docs-compiled tests/check_docs.sh
        member house-evidence-compiled check house-evidence-compiled scripts/evidence/evidence_index.sh --check
    fi
    [[ $which != rest ]] || return 0
    member house-format check house-format scripts/house/check_format.sh
    member house-size check house-size scripts/house/check_size.sh
    member house-includes check house-includes scripts/house/check_includes.sh
    member house-bats check house-bats scripts/house/check_bats.sh
    [[ $which != check ]] || return 0
    mapfile -t scripts < <(git ls-files '*.sh' .ci/run 2>/dev/null || find scripts tests .ci -name '*.sh')
    member house-shellcheck check house-shellcheck shellcheck "${scripts[@]}"
    member house-workflows check house-workflows scripts/house/check_workflows.sh
    member house-docs check house-docs tests/check_docs.sh --no-compile
    member house-evidence check house-evidence scripts/evidence/evidence_index.sh --check --no-compile
}

# A cmocka binary says how many of its tests passed, failed and were skipped.
run_cmocka() { # NAME BINARY ARGUMENTS...
    local name=$1 log=$out/$1.log ok bad skip code=0
    shift
    limited "$@" >"$log" 2>&1 || code=$?
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
    local source name
    [[ $which != rest ]] || return 0
    for source in tests/unit/test_*.c; do # not the binaries: one may be left of a test that is gone
        name=$(basename "$source" .c)
        member "$name" run_cmocka "$name" "$build/tests/unit/$name"
    done
}

# The emulator itself, and each kernel on it; a new kernel has its tests by its row in the registry.
suite_emu() {
    local binary=$build/tests/emu/test_emu_kernels name kernels
    mapfile -t kernels < <("$binary" --list)
    if [[ -n $kernel ]]; then
        [[ " ${kernels[*]} " == *" $kernel "* ]] || {
            echo "run_all.sh: no kernel '$kernel' among ${kernels[*]}" >&2
            exit 2
        }
        kernels=("$kernel") which=all
    elif [[ $which == check ]]; then
        kernels=("${kernels[0]}")
    else
        for name in test_emu test_emu_race test_emu_hopper; do
            if [[ $which == all ]]; then
                member "$name" run_cmocka "$name" "$build/tests/emu/$name"
            else
                member "$name" run_cmocka "$name" "$build/tests/emu/$name" "--$which"
            fi
        done
    fi
    for name in "${kernels[@]}"; do
        member "emu-$name" run_cmocka "emu-$name" "$binary" "--$which" "$name"
    done
}

# bats in TAP: "ok N name", "ok N name # skip why", "not ok N name".
run_bats() { # FILE
    local name log skip ok bad code=0 filter=()
    case $which in
        test) filter=(--filter-tags '!slow') ;;
        rest) filter=(--filter-tags slow) ;;
    esac
    name=$(basename "$1")
    log=$out/$name.log
    limited bats --tap "${filter[@]}" "$1" >"$log" 2>&1 || code=$?
    skip=$(grep -c '^ok .* # skip' "$log" || true)
    ok=$(($(grep -c '^ok ' "$log" || true) - skip))
    bad=$(grep -c -e '^not ok ' -e '^ended after ' "$log" || true)
    [[ $code -ne 0 && $bad -eq 0 ]] && bad=1
    tally "$name" "$ok" "$bad" "$skip"
    [[ $bad -eq 0 ]] || { grep -A12 -e '^not ok ' -e '^ended after ' "$log" || tail -n 12 "$log"; } | sed 's/^/    /'
}

suite_cli() {
    local file files
    [[ $which != check ]] || return 0
    # The long ones first, so that no core waits at the end.
    mapfile -t files < <(printf '%s\n' tests/cli/{compile_all,features,gate_problems,wrong}.bats tests/cli/*.bats |
        awk '!seen[$0]++')
    for file in "${files[@]}"; do
        [[ $which != rest ]] || grep -qE '^# bats (test|file)_tags=.*slow' "$file" || continue
        member "$(basename "$file")" run_bats "$file"
    done
}

# The same executions each time, on the committed corpus; new ones, for ten minutes: make fuzz.
run_fuzzer() { # NAME
    tests/fuzz/run.sh --runs 40000 --only "$1" --json "$out/fuzz-$1.json" >"$out/fuzz-$1.log" 2>&1 ||
        true
    case $(jq -r '.targets[0].verdict' "$out/fuzz-$1.json" 2>/dev/null) in
        PASS) tally "fuzz-$1" 1 0 0 ;;
        NOT-RUN) tally "fuzz-$1" 0 0 1 "clang has no libFuzzer" ;;
        *) tally "fuzz-$1" 0 1 0; sed 's/^/    /' "$out/fuzz-$1.log" ;;
    esac
}

suite_fuzz() {
    local name
    [[ $which == rest || $which == all ]] || return 0
    for name in options spec log npy cubin json; do
        member "fuzz-$name" run_fuzzer "$name"
    done
}

# A barrier or a wait of a kernel taken out: the race detector, a wrong result or an error must say so. And examples
# with one fault each: the emulator's gate must catch them. Of both a sample, drawn by SEED; SAMPLE=0 takes all of them.
# And a token changed in the judge: unit tests must see 95 of 100.
suite_mutants() {
    [[ $which == rest || $which == all ]] || return 0
    local sample=${SAMPLE:-8} seed=${SEED:-$RANDOM} drawn=() name
    if [[ $sample -gt 0 ]]; then
        while read -r name; do drawn+=(--only "$name"); done < <(cut -f1 tests/wrong/wrong.tsv | grep -v '^#' |
            awk -v seed="$seed" 'BEGIN {srand(seed)} {print rand() "\t" $0}' | LC_ALL=C sort -n | head -n "$sample" |
            cut -f2)
        echo "mutants and wrong: $sample of each, drawn by SEED=$seed; SAMPLE=0 takes all"
    fi
    member mutants check mutants tests/emu/mutants.sh --sample "$sample" --seed "$seed" --json "$out/mutants.json"
    member hopper_mutants check hopper_mutants tests/emu/hopper_mutants.sh --sample "$sample" --seed "$seed" \
        --json "$out/hopper_mutants.json"
    member wrong check wrong tests/wrong/run.sh --jobs 1 "${drawn[@]}" --json "$out/wrong.json"
    member judge-mutants check judge-mutants tests/mutate.py --seed "${SEED:-1}" --jobs 1 --count 40 \
        --json "$out/judge_mutants.json"
}

[[ ${#suites[@]} -gt 0 ]] || suites=(mutants emu cli fuzz unit house) # the long ones first
for suite in "${suites[@]}"; do
    "suite_$suite"
done
wait
if [[ -s $out/times.tsv ]]; then
    echo "slowest tests of the command line:"
    LC_ALL=C sort -rn "$out/times.tsv" | awk -F'\t' 'NR <= 8 {printf "%8.1f s CPU %7.1f s wall  %s\n", $1, $2, $3}'
fi
read -r passed failed skipped < <(cat "$out"/*.counts |
    awk '{p += $1; f += $2; s += $3} END {print p + 0, f + 0, s + 0}')
echo "$passed passed, $failed failed, $skipped skipped" | tee "$out/total"
[[ $failed -eq 0 && $passed -gt 0 ]]
