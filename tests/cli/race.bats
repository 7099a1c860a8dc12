#!/usr/bin/env bats
# --race on a kernel of one's own: a missing barrier is named with both threads and lines, also where the result happens
# to be right.
load helper

# Each thread reads its neighbour's word from shared memory; $1: what stands between.
neighbours() {
    cp tests/cheats/honest.cuh "$work/"
    sed "/^    const place at/ {
        i \    __shared__ float one_s[FA_M];
        i \    one_s[threadIdx.x] = 1.0f;
        i \    $1
        i \    const float one = one_s[(threadIdx.x + FA_M - 1) % FA_M];
        i \    if (one == 2.0f)
        i \        return;
    }" tests/cheats/honest.cu >"$work/k.cu"
}

@test "a missing barrier is a wrong kernel under --race, with the class, the threads and the lines" {
    neighbours "// no barrier"
    ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --quiet # right, as it happens
    run ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --schedule random --race --json "$work/r.json"
    [ "$status" -eq 1 ]
    local line
    line=$(grep -n 'one = one_s' "$work/k.cu" | cut -d: -f1)
    record_holds "$work/r.json" '.status == "wrong"' '.reason | test("data race")' \
        '.reason | test("CUDA thread [0-9]+")' ".reason | test(\"k.cu:$line\")"
}

@test "with the barrier it is clean" {
    neighbours "__syncthreads();"
    run ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --schedule random --race --json "$work/r.json"
    [ "$status" -eq 0 ]
    record_holds "$work/r.json" '.status == "pass"'
}
