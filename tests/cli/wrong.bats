#!/usr/bin/env bats
# The sets of wrong kernels: what a run that is cut off leaves, and how the next one goes on; mistakes by name.
load helper

# A bench for which every kernel is wrong. It waits at the second of three for as long as a file is there.
stub() {
    executable "$work/bench" <<END
[[ "\$*" != *scale_ignored* ]] || while [[ -e $work/wait ]]; do sleep 0.1; done
exit 1
END
    export FA_BENCH=$work/bench
    wrong=(tests/wrong/run.sh --ordinary --jobs 1 --only no_max --only scale_ignored --only gqa_modulo
        --json "$work/wrong.json")
}

@test "a run that is cut off says what it did not reach, and the next one goes on" {
    stub
    : >"$work/wait"
    "${wrong[@]}" >"$work/out" 2>&1 &
    local run=$!
    until [ -e "$work/wrong.json" ]; do sleep 0.1; done
    jq -e '.kernels == 1 and .not_reached == ["scale_ignored", "gqa_modulo"]' "$work/wrong.json"
    kill -TERM $run
    rm "$work/wait"
    exits 4 wait $run
    grep -q 'cut off: 1 kernels not reached: --resume goes on' "$work/out"
    jq -e '.kernels == 2 and .not_reached == ["gqa_modulo"]' "$work/wrong.json"
    run -0 "${wrong[@]}" --resume "$work/wrong.json"
    [[ $output == "gqa_modulo "*"3 wrong kernels: 3 caught by an ordinary run"* ]]
    # another text: tried again
    jq '.cases[0].sha256 = "another"' "$work/wrong.json" >"$work/other.json"
    run "${wrong[@]}" --resume "$work/other.json"
    [[ $output == "gqa_modulo "*"3 wrong kernels: 3 caught"* ]]
    refused 2 "--resume takes a summary" tests/wrong/run.sh --resume "$work/none.json"
}

@test "every wrong kernel is still made from its kernel's text, and no two are alike" {
    python3 tests/wrong/make.py "$work/all" >"$work/list"
    [ "$(wc -l <"$work/list")" -eq "$(wc -l <tests/wrong/wrong.tsv)" ]
    [ "$(cat "$work"/all/*.cu | wc -l)" -gt 3000 ]
    [ "$(sha256sum "$work"/all/*.cu | awk '{print $1}' | sort -u | wc -l)" -eq "$(wc -l <"$work/list")" ]
    run ! python3 tests/wrong/make.py "$work/all" no_such_kernel
    python3 tests/wrong/make.py "$work/named" --named >"$work/list"
    [ "$(wc -l <"$work/list")" -eq "$(grep -vc '^# ' tests/wrong/named.tsv)" ]
}

@test "a wrong kernel's message names the mistake: of masks, sums, lengths, windows, scores, head dimensions" {
    local name only=()
    for name in causal_one_too_many_light tail_unmasked_mma lengths_1_aligned_by_largest lengths_3_nan_without_keys \
        window_2_left_bound_not_shifted_light sink_2_scaled softcap_4_after_the_mask alibi_6_top_left \
        dim_v_1_scale_light; do only+=(--only "$name"); done
    run -0 tests/wrong/named.sh "${only[@]}"
    [[ $output == *"9 kernels, 0 not as they should be"* ]]
    # the kernels as they were pass
    run -0 tests/wrong/named.sh --control "${only[@]:0:4}"
    [[ $output == *"causal_one_too_many_light"*"passed"*"2 kernels, 0 not"* ]]
}

# bats test_tags=slow
@test "every wrong kernel of named.tsv is named, and its kernel passes as it was" {
    tests/wrong/named.sh
    tests/wrong/named.sh --control
}
