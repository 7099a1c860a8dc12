#!/usr/bin/env bats
# Hangs and crashes end in a record.
load helper

body() { # CODE: a kernel with CODE where the loop over keys begins
    sed "s|^    float m = |    $1\n&|" examples/plain.cu >"$work/k.cu"
}

@test "a hang is killed at the timeout, exit 5" {
    # Hangs with a large --scale alone. It is compiled before, so that the time goes by while it hangs.
    body "if (p.scale > 9) { $hangs }"
    ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet
    run timeout 300 ./fa_bench --source "$work/k.cu" "${small[@]}" --scale 10 --timeout 4 --json "$work/r.json"
    [ "$status" -eq 5 ]
    record_holds "$work/r.json" '.status == "timeout"' '.reason | test("4 s while checking")' '.kernel == "k"'
}

@test "a crash is an error with the signal, exit 6" {
    body '*(volatile int *)8 = 1;'
    run ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json"
    [ "$status" -eq 6 ]
    record_holds "$work/r.json" '.status == "error"' '.reason | test("signal 11|address")'
}

@test "a deadlock at a barrier is reported with its place" {
    body 'if (threadIdx.x % 2) __syncthreads(); else __syncwarp();'
    run ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json"
    [ "$status" -eq 6 ]
    record_holds "$work/r.json" '.status == "error"' '.reason | test("k.cu:[0-9]+")'
}

@test "killing the parent leaves no child behind and no half record" {
    body "$hangs"
    ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json" >/dev/null 2>&1 3>&- &
    parent=$!
    eventually child_runs $parent "nanosleep(day"
    child_dies_with "$parent"
    [ ! -e "$work/r.json" ]
}
