#!/usr/bin/env bats
# Mutants of the judge (tests/mutate.py): what is changed, counts, is refused. tests/run_all.sh --rest runs a sample.
load helper

@test "each module of the judge has mutants, one change each, the same for the same seed" {
    tests/mutate.py --list --seed 3 >"$work/list"
    for file in check/check.c check/rules.c check/reference.c timing/stats.c input/spec.c; do
        [ "$(grep -c "^$file:" "$work/list")" -gt 50 ]
    done
    awk -F'\t' '$3 == $4 {exit 1}' "$work/list"
    tests/mutate.py --list --seed 3 | cmp - "$work/list"
    tests/mutate.py --list --seed 4 | cmp -s - "$work/list" && return 1
    [ -z "$(awk -F'\t' '$2 == ""' "$work/list")" ]
}

@test "every equivalent mutant has a reason, and is one that can be drawn" {
    tests/mutate.py --list >"$work/list"
    while IFS=$'\t' read -r file function line changed why; do
        [[ -n $why && $file != \#* ]] || continue
        awk -F'\t' -v f="$file:" -v fn="$function" -v l="$line" -v c="$changed" 'index($1, f) == 1 && $2 == fn &&
            $3 == l && (c == "*" || $4 == c) {found = 1} END {exit !found}' "$work/list" ||
            { echo "stale: $file $function $line"; return 1; }
    done <tests/mutate.tsv
}

@test "bad arguments are refused, and no build is NOT-RUN" {
    refused 2 "is not one of check/check.c" tests/mutate.py --only nosuch.c
    refused 2 "whole number from 1" tests/mutate.py --count 0
    BUILD=$work/none refused 4 "make test-binaries" tests/mutate.py --count 1
}

# bats test_tags=slow
@test "a change that tests see is killed, and too many that they do not see fail" {
    run tests/mutate.py --seed 1 --only timing/stats.c --count 4 --json "$work/m.json"
    jq -e '.what == "judge_mutants" and .seed == 1 and .killed + .survived == 4 and
        (.survivors | length) == .survived' "$work/m.json"
    [ "$status" -eq "$(jq 'if .survived <= 1 then 0 else 1 end' "$work/m.json")" ]
}
