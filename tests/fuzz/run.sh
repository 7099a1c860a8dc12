#!/usr/bin/env bash
# Runs the fuzzers on the committed corpus and what they grew from it, and the scripts that read JSON on damaged
# records.
#
# usage: tests/fuzz/run.sh [--seconds N | --runs N] [--only NAME] [--json FILE] [--help]
#   --seconds N   per fuzzer (default 5); what is new goes to build/fuzz/corpus, a crash to build/fuzz
#   --runs N      N executions (json: N / 1000) from a fixed seed on the committed corpus alone: the same each time
#   --only NAME   options, spec, log, npy, cubin or json (repeatable)
#   --json FILE   the executions, as JSON (default build/fuzz/fuzz.json)
# One line per fuzzer: "PASS|FAIL|NOT-RUN name executions". Exit: 0 clean, 1 a crash, 2 usage, 4 nothing could run.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
script=tests/fuzz/run.sh
build=${BUILD:-build}
opt=([seconds]=5 [runs]=0 [json]=$build/fuzz/fuzz.json)
many=([only]='')
parse_options "$@"
need_number 1 seconds
need_number 0 runs
need_jq
json=${opt[json]}
mapfile -t only < <(values_of only)
[[ ${#only[@]} -gt 0 ]] || only=(options spec log npy cubin json)
mkdir -p "$build/fuzz"
# Every option, and every word that one takes.
{
    sed 's/" "/"\n"/g' tests/fuzz/words.dict # one to a line
    sed -nE 's/^FA_(INT|REAL|WORD|SET|LIST|VS|TEXT|FLAG)\("([^"]+)".*/"--\2"/p' src/input/options.def
    sed -nE 's/^#define FA_[A-Z]+_WORDS "(.*)"$/\1/p' src/input/*.h | tr '|' '\n' | sed 's/.*/"&"/'
} >"$build/fuzz/words.dict"
make_work
limit=("-max_total_time=${opt[seconds]}") limit_json=(--seconds "${opt[seconds]}") grown=$build/fuzz/corpus
if [[ ${opt[runs]} -gt 0 ]]; then
    limit=("-runs=${opt[runs]}" -seed=1) limit_json=(--runs "$((opt[runs] / 1000 + 1))") grown=$work/corpus
fi

say() { # VERDICT NAME EXECUTIONS SECONDS NOTE
    printf '%-7s %-8s %10d executions in %d s%s\n' "$1" "$2" "$3" "$4" "${5:+: $5}"
    jq -nc --arg verdict "$1" --arg name "$2" --argjson executions "$3" --argjson seconds "$4" --arg note "$5" \
        '{name: $name, verdict: $verdict, executions: $executions, seconds: $seconds, note: $note}' >>"$work/lines"
}

for name in "${only[@]}"; do
    log=$build/fuzz/$name.log code=0 began=$SECONDS
    if [[ $name == json ]]; then
        tests/fuzz/json_mutations.py "${limit_json[@]}" >"$log" 2>&1 || code=$?
    elif [[ ! -x $build/fuzz/fuzz_$name ]]; then
        say NOT-RUN "$name" 0 0 "no $build/fuzz/fuzz_$name: make fuzz-binaries (clang with libFuzzer)"
        continue
    else
        seeds=tests/fuzz/corpus/$name
        mkdir -p "$grown/$name"
        if [[ ! -d $seeds ]]; then # text: "==== FUZZER NAME" before each seed
            rm -rf "$build/fuzz/seeds/$name" && mkdir -p "$build/fuzz/seeds/$name"
            awk -v name="$name" -v to="$build/fuzz/seeds/$name/" '/^==== / {
                file = $2 == name ? to $3 : ""; words = $2 == "options" && $3 != "line"; next}
                file {if (words) gsub(/ /, "\n"); print >file}' tests/fuzz/corpus/seeds.txt
            seeds=$build/fuzz/seeds/$name
        fi
        "$build/fuzz/fuzz_$name" -dict="$build/fuzz/words.dict" "${limit[@]}" -timeout=10 \
            -max_len=8192 -print_final_stats=1 \
            -artifact_prefix="$build/fuzz/crash-$name-" "$grown/$name" "$seeds" >"$log" 2>&1 || code=$?
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
    if [[ $code -eq 0 && ${runs:-0} -gt 0 ]]; then
        say PASS "$name" "$runs" $((SECONDS - began)) ""
    else
        say FAIL "$name" "${runs:-0}" $((SECONDS - began)) "exit $code, see $log"
        tail -n 20 "$log" >&2
    fi
done
lib=tests jqf summaries/fuzz -s "$work/lines" >"$json"
jq -e 'all(.targets[]; .verdict == "NOT-RUN")' "$json" >/dev/null && exit 4
jq -e '.failed == 0' "$json" >/dev/null
