#!/usr/bin/env bash
# The gate: every kernel of the registry over problems that are derived from its rules and drawn from the whole contract
# (scripts/lib/gate/problems.py), the emulator's primitives beside the GPU's, then speed ratios against the committed
# baseline of this GPU. Without a GPU the emulator runs the same classes at small sizes and the rest is NOT-RUN.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/ci_gate.sh [options]
  --require-gpu     no GPU, or no emulator beside it, is a failure, not a NOT-RUN
  --kernel NAME     only this kernel (repeatable)
  --library FILE    the matrix for this library (include/fa_library.h) instead (repeatable; GPU only): what it refuses
                    in its own words is skipped
  --source FILE.cu  a kernel that is not registered; its tile options, if any, after --
  --dtype TYPE      fp16 (default) or bf16: the matrix in that type. Without --kernel only kernels that serve it
  --draws N         problems drawn at random for each kernel (default: 60; emulator: 12; --race: 6; --sanitize: 4)
  --seed S          of the draws (default: a new one each time, so that no kernel is made for the draws; --race,
                    --sanitize: 1). The gate says it; each draw is a line of options, so a failing one runs alone
  --fail-fast       begin no case after one that failed
  --shrink SECONDS  how long to look for the smallest problem that still fails, a kernel (default: 30; 0: do not)
  --out DIR         records, junit.xml and summary.json (default: build/gate)
  --jobs N          runs at once while checking (default: the cores); timing is always one at a time
  --sanitize        compute-sanitizer's four tools over every kernel instead of the matrix: one seed, short sequences,
                    every edge of the matrix, and each value of the knobs that choose other code
  --race            the emulator's matrix under its race detector, one seed, whatever GPU there is
  --conform         conformance of the emulator alone: tests/emu/conform, tests/emu/ptx and, on sm_90, tests/emu/hopper
                    give the same words there and on the GPU
  --resume FILE     with --sanitize: cases.jsonl of an earlier run, or .gz. A case that did not fail there, with the
                    same options on the same kind of GPU and the same machine code (of a library: version and sources
                    around it), is taken over with its commit
  --quick           a fifth of the matrix
  --limit SECONDS   begin no case after so long, end those that run ten seconds later: the rest is NOT-RUN
  --dry-run         print the runs, do nothing
Exit: 0 all passed, 1 something failed, 2 usage, 4 nothing could run, or not all of it. FA_BENCH names the binary
(default ./fa_bench), EMU_CASE the one that runs a conformance kernel (default: beside FA_BENCH, or
build/tests/emu/emu_case).
EOF
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
. scripts/lib/gpu.sh
. scripts/lib/gate/subjects.sh
. scripts/lib/gate/list.sh
. scripts/lib/gate/cases.sh
. scripts/lib/gate/resume.sh
. scripts/lib/gate/conform.sh
opt=([out]=build/gate [jobs]=$(nproc) [limit]=0 [resume]='' [source]='' [draws]=-1 [seed]=-1 [shrink]=30
    [dtype]=fp16)
flag=([require-gpu]=0 [sanitize]=0 [race]=0 [conform]=0 [quick]=0 [dry-run]=0 [fail-fast]=0)
many=([kernel]='' [library]='')
arguments=words
parse_options "$@"
[[ ${#words[@]} -eq 0 ]] || die 2 "unknown option ${words[0]} (see --help)"
need_number 1 jobs
for name in draws seed; do [[ ${opt[$name]} == -1 ]] || need_number 0 "$name"; done
need_number 0 limit shrink
[[ -z ${opt[source]} || -z ${many[kernel]} ]] || die 2 "--source or --kernel, not both"
[[ -z ${opt[source]} || (-f ${opt[source]} && -r ${opt[source]}) ]] ||
    die 2 "--source takes a file that can be read, not '${opt[source]}'"
[[ -n ${opt[source]} || ${#more[@]} -eq 0 ]] || die 2 "options after -- are for --source"
[[ ${opt[dtype]} == fp16 || ${opt[dtype]} == bf16 ]] || die 2 "--dtype takes fp16 or bf16, not '${opt[dtype]}'"
out=${opt[out]} jobs=${opt[jobs]} limit=${opt[limit]} resume=${opt[resume]} require_gpu=${flag[require-gpu]}
typed= # before the options of each case
[[ ${opt[dtype]} == fp16 ]] || typed="--dtype ${opt[dtype]} "
sanitize=${flag[sanitize]} race=${flag[race]} quick=${flag[quick]} dry_run=${flag[dry-run]}
matrix=$((1 - flag[conform])) conform=1
[[ $sanitize -eq 0 && $race -eq 0 && -z $typed ]] || conform=0
[[ -z $resume ]] || { [[ $sanitize -eq 1 ]] && is_input "$resume"; } ||
    die 2 "--resume takes cases.jsonl of an earlier --sanitize, not '$resume'"
need_bench
command -v python3 >/dev/null || die 4 "NOT-RUN: no python3: run scripts/setup.sh"

declare -A kind # of each kernel: hand or library; none of the files of --library
declare -A emulated rows # of each kernel: true or false; the row tile of its defaults
declare -a serves # what a file of one's own is limited to
declare -A key  # of each case under --sanitize: what its machine code is known by
choose_subjects
choose_device
choose_served
if [[ $gpu -eq 0 && $require_gpu -eq 1 ]]; then # before any work
    echo "FAIL no GPU, and --require-gpu"
    exit 1
fi
if [[ $dry_run -eq 1 ]]; then
    list_cases
    exit 0
fi
[[ $sanitize -eq 0 || $gpu -eq 1 ]] || die 4 "NOT-RUN: compute-sanitizer needs a GPU"
[[ $sanitize -eq 0 ]] || command -v compute-sanitizer >/dev/null || die 4 "NOT-RUN: no compute-sanitizer in PATH"
[[ $gpu -eq 1 || ${#libraries[@]} -eq 0 ]] || die 4 "NOT-RUN: a library needs a GPU"

earlier= # a copy: the file may be the one that this run writes
if [[ -n $resume ]]; then
    earlier=$(mktemp)
    zcat -f "$resume" >"$earlier"
fi
rm -rf "$out/records" "$out/not_reached" "$out/failed"
mkdir -p "$out/records"
cases=$out/cases.jsonl list=$out/cases
list_cases >"$list"
mapfile -t lines <"$list"

trap 'limit=1' TERM # what there is goes into the summary
running=0
[[ $sanitize -eq 0 ]] || code_keys
if [[ -n $resume ]]; then
    take_over "$earlier"
    rm -f "$earlier"
fi
run_cases
emu_case=${EMU_CASE:-$(dirname "$bench")/emu_case}
[[ -x $emu_case ]] || emu_case=build/tests/emu/emu_case
[[ $conform -eq 0 ]] || compare_words
[[ $sanitize -eq 1 || $race -eq 1 || $matrix -eq 0 ]] || compare_speed

jqf gate/junit -rs "$cases" >"$out/junit.xml"
summarise "$emu_note"

# The smallest problem that fails as the first failing one of each kernel does, as a command.
shrink_failures() {
    local kernel tool args asked
    while IFS='|' read -r kernel tool args; do
        subject "$kernel"
        args=$(python3 scripts/lib/gate/problems.py shrink --problem "$args" --seconds "${opt[shrink]}" -- \
            "$bench" "${asked[@]}" --device "$(device_of "$tool")" --timing none --quiet) ||
            args="$args # did not fail again"
        echo "smallest that fails: $bench ${asked[*]} --device $(device_of "$tool") $args"
    done < <(jqf gate/failed -r "$cases" | sort -t'|' -u -k1,1)
}
jqf gate/said_failed -r "$cases"
[[ ${opt[shrink]} -eq 0 ]] || shrink_failures | tee "$out/smallest"
jqf gate/said -r "$out/summary.json"
[[ $draws -eq 0 || $matrix -eq 0 ]] || echo "$draws draws of seed $seed"
[[ -n $emu_note ]] && echo "$emu_note"
if [[ $conform -eq 1 && $gpu -eq 1 && ! -x $emu_case && $require_gpu -eq 1 ]]; then
    echo "FAIL no $emu_case for the conformance of the emulator, and --require-gpu"
    exit 1
fi
jq -es 'length > 0 and all(.[]; .verdict != "failed")' "$cases" >/dev/null
if jq -es 'any(.[]; .verdict == "not_run")' "$cases" >/dev/null; then exit 4; fi
! jq -es 'all(.[]; .verdict == "skipped")' "$cases" >/dev/null ||
    die 4 "NOT-RUN: no problem is served: $(jq -rn 'input | .text' "$cases" | head -n 1)"
