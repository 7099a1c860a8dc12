#!/usr/bin/env bats
# The mutation proof and the list of controls count what they should (the whole: tests/emu/mutants.sh, controls.sh).
load helper

# bats test_tags=slow
@test "a mutant that survives needs an explanation, and an explanation a survivor" {
    neighbours "__syncthreads();" "__syncthreads();" # the second is not needed
    run -1 tests/emu/mutants.sh --tries 1 --explained "$work/why.tsv" --json "$work/m.json" "$work/k.cu"
    [[ $output == *"1 of 2 caught, 1 survived, 1 of them without an explanation"* ]]
    jq -e '.what == "mutants" and .caught == 1 and .missed == 1 and .unexplained == 1 and .survivors[0].number == 2' \
        "$work/m.json"
    jq -e '.mutants[0].by | test("race")' "$work/m.json"
    printf 'k.cu\tfa_kernel\t__syncthreads();\t2\tno thread writes again\n' >"$work/why.tsv"
    run -0 tests/emu/mutants.sh --tries 1 --explained "$work/why.tsv" --json "$work/m.json" "$work/k.cu"
    jq -e '.unexplained == 0 and .survivors[0].why == "no thread writes again"' "$work/m.json"
}

@test "every barrier and wait of the built-in kernels is a mutant" {
    run -0 tests/emu/mutants.sh --list
    local barriers='__syncthreads|__syncwarp|bar_sync|bar_sync_apart|bar_arrive|cp_async_wait<[^;]*>|cp_async_commit|'
    barriers+=cp_async_fence
    for kernel in $(./fa_bench --list-kernels --json - |
        jq -r '.[] | select(.kind == "hand" and .emulated and .missing == null) |
            select((.arch_specific | not) and .variant_of == null) | .name'); do
        # scalar has none
        want=$(grep -cE "^[^/*]*($barriers)\([^;]*\);" "kernels/$kernel.cu" || true)
        [ "$(grep -c "^$kernel.cu" <<<"$output" || true)" -eq "$want" ]
    done
    [[ $output != *$'\t\t'* ]] # each in a function with a name
}

@test "bad arguments are refused" {
    refused 2 "--tries takes a whole number" tests/emu/mutants.sh --tries 0
    refused 2 "no kernel nosuch" tests/emu/mutants.sh nosuch
    BUILD=$work refused 4 "make test-binaries" tests/emu/controls.sh
}

@test "every mutant of the Hopper kernels changes its file" {
    local kernel file what command
    while IFS=$'\t' read -r kernel file what command; do
        ! sed "$command" "kernels/$file" | cmp -s - "kernels/$file" || { echo "$kernel, $file: $what"; false; }
    done < <(grep -v '^#' tests/emu/hopper_mutants.tsv)
}
