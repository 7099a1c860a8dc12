#!/usr/bin/env bats
# The problems of the gate: every rule of the registry has some, draws cover the contract, a failing one is shrunk.
load helper

problems() { python3 scripts/lib/gate/problems.py "$@"; }

# Rules for features are run with some by tests/emu/test_emu_kernels.c, and by what the gate draws.
@test "every dense rule of the registry is selected by a problem of the gate, with each mask it serves" {
    ./fa_bench --list-kernels --json "$work/registry.json"
    for kernel in $(jq -r '.[] | select((.rules // []) != []) | .name' "$work/registry.json"); do
        # On one of these: a rule for one architecture takes others' problems there.
        for where in "--arch sm_90a" "--arch sm_89" "--device emu"; do
            problems rules --kernel "$kernel" -- ./fa_bench $where
        done | jq -sc 'map([.rule, .causal]) | unique[]' | sort >"$work/got"
        jq -c --arg k "$kernel" '.[] | select(.name == $k) | .rules | to_entries[] |
            select(.value.features == null) | .key as $rule |
            .value.causal | if . == null then false, true else . end | [$rule, .]' "$work/registry.json" |
            sort | comm -23 - "$work/got" >"$work/missing"
        [ ! -s "$work/missing" ] || { echo "$kernel"; cat "$work/missing"; return 1; }
    done
}

@test "draws: the same for the same seed, all dims in 31, every mask, layout, distribution and tail" {
    drawn() { problems list --draws 62 --seed "$1" --device cuda | tail -n 78; } # sixteen of them with --lse once more
    drawn 5 | head -n 62 >"$work/a"
    drawn 5 | head -n 62 | diff - "$work/a"
    run ! diff <(drawn 6 | head -n 62) "$work/a"
    [ "$(drawn 5 | grep -c -- --lse)" -eq 16 ]
    for dim in $(seq 16 8 256); do grep -q -- "--dim $dim " "$work/a"; done
    for word in --causal '--strides padded' '--strides bshd' '--misalign' '--scale' '--batch 5'; do
        grep -q -- "$word" "$work/a"
    done
    for dist in uniform outlier sharp rising falling needle constant-v coded low cliff; do
        grep -q "dist $dist" "$work/a"
    done
    # groups of K/V heads that are no power of two, more keys than rows, fewer keys than rows
    awk '{g = $4 / $6; odd += g == 3 || g == 5 || g == 7; more += $10 > $8; fewer += $10 < $8}
        END {exit !(odd > 5 && more > 5 && fewer > 5)}' "$work/a"
    # every line is one that the bench takes
    ./fa_bench --kernel light --compile-only --arch sm_89 --quiet --runs <(head -n 3 "$work/a") --json - |
        jq -es 'length == 3 and all(.[]; .status == "pass")'
}

@test "each mode has what it can run: no far layouts under sanitizers, small problems on the emulator" {
    problems list --device emu >"$work/emu"
    for word in '--strides far' '--seq-kv 66000' '--heads 300' '--seq-kv 4200' '--kv-heads 4' '--misalign 1'; do
        grep -q -- "$word" "$work/emu"
    done
    problems list --device cuda >"$work/cuda"
    grep -q -- '--batch 33 --heads 2000' "$work/cuda" && grep -q -- '--seq-kv 70001' "$work/cuda"
    run ! grep -e 'strides far' -e 'heads 300' <(problems list --device emu --mode race --draws 20)
    [ -z "$(problems list --device cuda --mode sanitize)" ]
    [ "$(problems list --device cuda --mode sanitize --draws 4 | wc -l)" -eq 5 ]
    [ "$(problems list --mode memory | wc -l)" -eq 3 ]
    [ "$(problems list --mode undefined | grep -c -e 'strides far' -e 'strides odd')" -eq 4 ]
    for word in '--lse' '--heads 22 --kv-heads 2' '--seq 66000' '--batch 5' '--dist cliff' '--seed 43' \
        '--strides odd --seeds 1 --seed 4'; do
        grep -q -- "$word" "$work/emu"
    done
}

@test "a failing problem is shrunk to the smallest that fails in the same way" {
    executable "$work/bad" <<'END'
# Wrong with more than 100 keys and a causal mask; another code for dim 16; slow draws do not matter.
[[ "$*" == *"--fast"* && "$*" == *"--causal"* && "$*" =~ --seq-kv\ ([0-9]+) && ${BASH_REMATCH[1]} -gt 100 ]] || exit 0
[[ "$*" != *"--dim 16 "* ]] || exit 3
exit 1
END
    shape="--batch 3 --heads 12 --kv-heads 4 --seq 65 --seq-kv 799 --dim 72 --causal"
    run -0 problems shrink --problem "$shape --dist needle --strides padded --scale 0.5 --seed 9 --fast" -- "$work/bad"
    [ "$output" = "--fast --batch 1 --heads 1 --kv-heads 1 --seq 1 --seq-kv 101 --dim 32 --causal --seeds 1 --seed 9" ]
    run -1 problems shrink --problem "--seq 5" -- "$work/bad"
}

@test "--source: a file that serves none of the problems has not passed, and says why" {
    { printf '#include "fa_params.h"\nstatic_assert(FA_STAGES == 2, "mine: STAGES must be 2");\n'
        cat examples/plain.cu; } >"$work/k.cu"
    run -4 scripts/ci_gate.sh --source "$work/k.cu" --quick --draws 0 --out "$work/gate"
    [[ $output == *"NOT-RUN: no problem is served: infeasible: mine: STAGES must be 2"* ]]
}

@test "--source takes a file, and no kernel beside it" {
    refused 2 "--source or --kernel" scripts/ci_gate.sh --source examples/plain.cu --kernel mma
    refused 2 "a file that can be read" scripts/ci_gate.sh --source "$work/none.cu"
    (cd tests && ../scripts/ci_gate.sh --source features/plain.cu --draws 0 --dry-run) >"$work/runs"
    grep -q '^plain|' "$work/runs" # paths are below the caller's folder
}

@test "shared memory that is read before it is written does not repeat, where a comparison hides NaN" {
    python3 tests/wrong/make.py "$work/wrong" split_empty_parts_unwritten
    run -1 ./fa_bench --source "$work/wrong/split_empty_parts_unwritten.cu" --m 8 --device emu --batch 1 --heads 2 \
        --seq 9 --seq-kv 3 --dim 16 --seeds 1 --timing none --quiet
    [[ $output == *"wrong: seed 42: not deterministic: "* ]]
}

@test "--source: what no result shows fails the gate: races, reads outside, addresses, offsets beyond 32 bits" {
    command -v nvidia-smi >/dev/null && skip "there is a GPU"
    python3 tests/wrong/make.py "$work/wrong" >"$work/made"
    while IFS='|' read -r tool name tile word; do
        grep -q "^$name " "$work/made"
        scripts/ci_gate.sh --source "$work/wrong/$name.cu" --draws 0 --dry-run -- $tile |
            grep "^$name|$tool|" | cut -d'|' -f3 >"$work/lines"
        while read -r args; do
            run ./fa_bench --source "$work/wrong/$name.cu" $tile --device emu --no-ptxas --timing none --quiet $args
            [ "$status" -eq 0 ] || break
        done <"$work/lines"
        [ "$status" -eq 1 ]
        [[ $output == *"wrong: "*"$word"* ]] || { echo "$name: $output"; return 1; }
    done <<'END'
race|split_without_a_barrier|--m 8|race
address|reads_a_key_past_the_end|--m 64|AddressSanitizer
undefined|plain_int_row_offset|--m 64|signed integer overflow
undefined|scalar_aligned_by_k|--m 8 --n 1 --warps 8 --vec 2|misaligned address
END
}

@test "--source: the gate has a problem for finite masks, BF16, full tiles, keys and blocks beyond 16 bits" {
    command -v nvidia-smi >/dev/null && skip "there is a GPU"
    python3 tests/wrong/make.py "$work/wrong" >"$work/made"
    while IFS='|' read -r name tile problem; do
        scripts/ci_gate.sh --source "$work/wrong/$name.cu" --draws 0 --dry-run -- $tile >"$work/lines"
        args=$(grep -e "^$name||.*$problem" "$work/lines" | head -n 1 | cut -d'|' -f3)
        run -1 ./fa_bench --source "$work/wrong/$name.cu" $tile --device emu --no-ptxas --timing none --quiet $args
        [[ $output == *"wrong: "* ]] || { echo "$name: $args: $output"; return 1; }
    done <<'END'
mask_adds_minus_10000|--m 64|--causal --dist cliff
products_in_half|--m 64|--dist cliff
values_of_bf16_read_as_half|--m 64|--dtype bf16
tile_shift_in_whole_tiles|--m 32 --n 16 --vec 2 --stages 1 --swizzle 0 --splits 1|--seq 64 --seq-kv 73
keys_in_16_bits|--m 64|--seq-kv 66000
batch_and_head_in_16_bits|--m 64|--timeout 60
END
}

@test "a tile space: each value of each knob, one knob changed, then pairs of values; --quick: a value of each knob" {
    tiles() {
        scripts/ci_gate.sh --source tests/wrong/knobs.cu --draws 0 --dry-run "$@" | cut -d'|' -f2- | grep -e '--vec'
    }
    tiles --seed 7 >"$work/tiles"
    first="--m 32 --n 32 --vec 2 --stages 1 --swizzle 0 --splits 1"
    for value in m=64 n=16 n=64 vec=4 vec=8 stages=2 stages=3 swizzle=1 splits=2 splits=3 splits=8; do
        knob="--${value%=*} "
        changed=$(sed "s/$knob[0-9]*/$knob${value#*=}/" <<<"$first")
        [ "$(grep -c "^|$changed --batch" "$work/tiles")" -eq 4 ] # long and short, with a mask and without
        grep -q "^|$changed .*--causal" "$work/tiles"
        grep -q "^race|--race --schedule random $changed --batch" "$work/tiles"
    done
    run ! grep -e "^|$first" "$work/tiles"
    [ "$(grep -c '^|' "$work/tiles")" -gt $((11 * 4 + 10)) ] # and pairs
    tiles --seed 7 | diff - "$work/tiles"
    tiles --seed 8 | run ! diff - "$work/tiles"
    tiles --seed 8 --quick >"$work/quick"
    [ "$(wc -l <"$work/quick")" -eq 6 ]
    for knob in m n vec stages swizzle splits; do
        changed=$(sed "s/--$knob [0-9]*/--$knob [0-9]*/" <<<"$first")
        [ "$(grep -c "^|$changed --batch" "$work/quick")" -eq 1 ]
    done
    tiles --seed 7 -- --m 32 --stages 2 >"$work/pinned" # these two stay
    run ! grep -e '--m 64' -e '--stages [13]' "$work/pinned"
    # a row of the registry, with the variants that its rules take
    scripts/ci_gate.sh --kernel mma --draws 0 --dry-run >"$work/mma"
    grep -q '^mma||--m 128 --n 64 --warps 4 --stages 3 --swizzle 1 --splits 1 --batch' "$work/mma"
    grep -q '^mma_decode||--m 16 --n 16 --warps 2 --stages 2 --splits 32 --batch' "$work/mma"
}

@test "house: a ! command that fails no bats test is refused, over several lines too" {
    not='!'
    printf '%s\n' 'grep -q a b' "$not grep -q c d" "true && $not grep -q \\" '    c d' \
        "for x in 1; do $not true; done" >"$work/bad.bats"
    run -1 scripts/house/check_bats.sh "$work/bad.bats"
    [ "$(sed 's/.*bats:\([0-9]*\): .*/\1/' <<<"$output" | xargs)" = "2 3 5" ]
    printf '%s\n' 'run ! grep c d' '! type nvcc || skip' 'if ! true; then false; fi' '[[ ! -e b && ! -e c ]]' \
        '! grep c d |' '    wc || false' 'is_over() { ! grep c d; }' >"$work/good.bats"
    scripts/house/check_bats.sh "$work/good.bats"
}

@test "--source: problems are of the dims and the mask that the file serves" {
    problems list --dims 64,128 --mask causal --draws 12 >"$work/lines"
    run ! grep -v -e '--dim \(64\|128\) --causal' "$work/lines"
    [ "$(wc -l <"$work/lines")" -gt 50 ]
    sed 's/^FA_KERNEL_INFO/static_assert(FA_DIM % 32 == 0 \&\& !FA_CAUSAL, "dims 32, 64, ... without a mask");\n&/' \
        examples/plain.cu >"$work/some.cu"
    scripts/ci_gate.sh --source "$work/some.cu" --draws 0 --dry-run -- --m 64 >"$work/lines"
    run ! grep -e --causal "$work/lines"
    [ "$(grep -o -e '--dim [0-9]*' "$work/lines" | sort -u | xargs)" = \
        "--dim 128 --dim 224 --dim 256 --dim 32 --dim 64 --dim 96" ]
}

# bats file_tags=slow
@test "--source: a wrong file of one's own fails, with the smallest problem as a command" {
    command -v nvidia-smi >/dev/null && skip "there is a GPU"
    python3 tests/wrong/make.py "$work/wrong" nan_rows_without_keys
    run scripts/ci_gate.sh --source "$work/wrong/nan_rows_without_keys.cu" --draws 0 --jobs 1 --fail-fast --shrink 20 \
        --out "$work/gate" -- --m 32
    [ "$status" -eq 1 ]
    [[ $output == *"smallest that fails: ./fa_bench --source $work/wrong/nan_rows_without_keys.cu --m 32 "*--causal* ]]
}

@test "--source: a kernel that is wrong in some tiles of its space alone passes an ordinary run and fails the gate" {
    command -v nvidia-smi >/dev/null && skip "there is a GPU"
    python3 tests/wrong/make.py "$work/wrong" >"$work/made"
    while IFS='|' read -r name tool tile; do
        file=$work/wrong/$name.cu
        ./fa_bench --source "$file" --device emu --no-ptxas --batch 2 --heads 2 --seq 128 --timing none --quiet
        scripts/ci_gate.sh --source "$file" --draws 0 --seed 1 --dry-run >"$work/lines"
        cases=0
        while IFS='|' read -r _ _ args; do
            cases=$((cases + 1))
            run ./fa_bench --source "$file" --device emu --no-ptxas --timing none --quiet $args
            [ "$status" -eq 0 ] || break
        done < <(grep -e "^$name|$tool|.*$tile" "$work/lines")
        [[ $cases -gt 0 && $status -eq 1 && $output == *"wrong: "* ]] || { echo "$name: $output"; return 1; }
    done <<'END'
knobs_end_where_m_is_not_n||--m 64 --n 32 .*--splits 1 .*--causal
knobs_mask_where_n_is_above_m||--m 32 --n 64 .*--stages 1 .*--causal
knobs_step_of_32_keys||--n 16 .*--stages 1
knobs_rows_of_32_a_tile||--m 64 --n 32
knobs_stage_by_mask||--n 32 .*--stages 3 .*--splits 1
knobs_third_stage_not_filled||--n 32 .*--stages 3 .*--splits 1
knobs_load_before_the_barrier|race|--stages 2 .*--splits 1
knobs_parts_of_four_splits||--n 32 .*--stages 1 .*--splits 8
knobs_empty_parts_divide_by_0||--n 32 .*--stages 1 .*--splits 3
knobs_lse_of_the_first_part||--n 32 .*--stages 1 .*--splits 2 .*--lse
knobs_vec_pieces_in_pairs||--n 32 --vec 8 .*--lse
knobs_aligned_to_four_bytes|undefined|--vec 4
knobs_swizzle_of_k_alone||--n 32 --vec 2 --stages 1 --swizzle 1
knobs_swizzle_of_eight_rows||--n 32 --vec 2 --stages 1 --swizzle 1 .*--lse
knobs_rounds_of_m_and_vec||--m 64 .*--vec 8 .*--dim 40
END
    [ "$(grep -c '^knobs_' "$work/made")" -eq 15 ]
}

@test "no line of the gate is a usage error, in any type, on a GPU too" {
    export FA_BENCH=$work/bench # says that it has one
    printf '%s\n' 'case "$*" in' \
        "*'--check cpu'*) echo '{\"device\": {\"name\": \"H100\", \"arch\": \"sm_90\"}}' ;;" \
        '*) exec ./fa_bench "${@/#cuda/emu}" ;;' esac | executable "$FA_BENCH"
    while read -r gate; do
        scripts/ci_gate.sh $gate --dry-run | sed -E 's/^/--kernel /; s/\|[a-z]*\|/ /; s/ --(race|sanitize \w+) / /
            s/^--kernel \w+_backward /&--op backward /' >"$work/lines"
        [ "$(wc -l <"$work/lines")" -gt 40 ]
        ./fa_bench --runs "$work/lines" --select --quiet
    done <<'END'
--dtype e4m3 --kernel light,mma --draws 20
--dtype e4m3 --kernel wgmma --draws 4 --sanitize
--dtype bf16 --kernel light --draws 8
END
}
