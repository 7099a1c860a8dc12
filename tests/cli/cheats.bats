#!/usr/bin/env bats
# Ways to fool the bench (tests/cheats): a gate catches every one; what needs a GPU is skipped without.
load helper

# Sweeps, gates, and of each way to fool a bench what repeats another cheat.
long=(lower_class loosened_leaderboard knows_the_problems knows_the_seeds cached_in_device_variable constant_zero
    edited_system_header edited_nested_header)

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.." || exit 1
    export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$PWD/build/test-cache}
    local name only=()
    for name in $(tests/cheats/run.sh --list | awk '{print $2}'); do
        [[ " ${long[*]} " == *" $name "* ]] || only+=(--only "$name")
    done
    tests/cheats/run.sh "${only[@]}" --json "$BATS_FILE_TMPDIR/cheats.json" >"$BATS_FILE_TMPDIR/out" 2>&1 || true
}

judged() { # NAME...: each CAUGHT; skipped when one is NOT-RUN
    local name verdict
    for name in "$@"; do
        verdict=$(awk -v n="$name" '$2 == n {$2 = ""; print}' "${said:-$BATS_FILE_TMPDIR/out}")
        [[ $verdict != NOT-RUN* ]] || skip "$name: ${verdict#NOT-RUN }"
        [[ $verdict == CAUGHT* ]] || {
            echo "$name: ${verdict:-nothing}"
            cat "${said:-$BATS_FILE_TMPDIR/out}"
            return 1
        }
    done
}

@test "a result kept by pointer in the workspace" { judged cached_by_pointer; }
@test "only the first launch computes" { judged first_launch_only; }
@test "nothing is written" { judged writes_nothing; }
@test "an input is overwritten, a write behind the output" { judged overwrites_input strays_behind_output; }
@test "the mean of V, with tolerances that accept anything" { judged mean_of_v; }
@test "lower precision inside" { judged half_sums; }
@test "K and V swapped; loaded inputs that would hide it" { judged kv_swap equal_inputs; }
@test "tolerance edits: still wrong, marked" { judged wrong_scale loosened_tolerance; }
@test "a knob that does nothing, a tile that is not the one asked for" { judged idle_knob hidden_tile; }
@test "a stale cache after an edit of the kernel or of a header" {
    judged edited_kernel edited_header include_by_macro
}
@test "another kernel's code under this kernel's key" { judged corrupt_cache; }
@test "a missing profiler, sanitizer or GPU is no pass" { judged no_profiler no_sanitizer no_gpu no_reference; }
@test "a result kept by contents is not a time" { judged cached_by_contents; }
@test "nothing to do when the output is there is not a time" { judged skips_written_output; }
@test "launches that stop computing after the check" { judged stops_after_the_check wrong_after_a_while; }
@test "a time below the roofline" { judged below_roofline; }
@test "work on another stream" { judged other_stream; }
@test "a persisting share of the L2" { judged persisting_l2; }
@test "a kernel that is right in one stride pattern alone" { judged one_stride_pattern; }
# bats test_tags=slow
@test "sweeps and gates; what repeats another cheat" {
    said=$work/said
    tests/cheats/run.sh $(printf -- '--only %s ' "${long[@]}") --json "$work/long.json" >"$said" 2>&1 || true
    judged "${long[@]}"
}
@test "a kernel does not beat itself" { judged same_code_vs; }

@test "every cheat of the script is judged here, and none is missed" {
    local name
    jq -e '.missed == 0' "$BATS_FILE_TMPDIR/cheats.json"
    for name in $(tests/cheats/run.sh --list | awk '{print $2}'); do
        [[ " ${long[*]} " == *" $name "* ]] || grep -q "judged.* $name\b" "$BATS_TEST_FILENAME"
    done
    # Every way has a cheat that tries it, and every cheat is of a known way.
    jq -e '[.cheats[].way] - [.ways[].way] == [] and [.ways[].way] - [.cheats[].way] == []' \
        "$BATS_FILE_TMPDIR/cheats.json"
}

@test "a run that is cut off counts what it did not reach as not run, and the next one goes on" {
    executable "$work/bench" <<END
while [[ "\$*" == *mean_of_v* && -e $work/wait ]]; do sleep 0.1; done
exec ./fa_bench "\$@"
END
    : >"$work/wait"
    local cheats=(env FA_BENCH="$work/bench" tests/cheats/run.sh --device emu --json "$work/c.json" --only mean_of_v
        --only writes_nothing --only kv_swap)
    "${cheats[@]}" >"$work/out" 2>&1 &
    local run=$!
    until grep -q '^CAUGHT *writes_nothing' "$work/out"; do sleep 0.1; done
    kill -TERM $run
    rm "$work/wait"
    exits 143 wait $run
    grep -q '^1 caught, 0 missed, 2 not run on emu$' "$work/out"
    jq -e '.not_run == 2 and .not_reached == ["mean_of_v", "kv_swap"]' "$work/c.json"
    run -0 "${cheats[@]}" --resume "$work/c.json"
    [[ $output != *"CAUGHT   writes_nothing"* && $output == *"3 caught, 0 missed, 0 not run on emu" ]]
    jq -e '.not_reached == [] and (.cheats | length) == 3' "$work/c.json"
}
