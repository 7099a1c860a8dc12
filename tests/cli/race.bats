#!/usr/bin/env bats
# --race on one's own kernel: a missing barrier is named with both threads and lines, also where the result is right.
load helper

@test "a missing barrier is a wrong kernel under --race, with the class, the threads and the lines" {
    neighbours "// no barrier"
    ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --quiet # right, as it happens
    run -1 ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --schedule random --race --json "$work/r.json"
    local line
    line=$(grep -n 'one = one_s' "$work/k.cu" | cut -d: -f1)
    record_holds "$work/r.json" '.status == "wrong"' '.reason | test("data race")' \
        '.reason | test("CUDA thread [0-9]+")' ".reason | test(\"k.cu:$line\")"
}

@test "a race through an instruction of prims.cuh names the kernel's line, and the instruction's beside it" {
    sed 's|"../kernels/|"|; s|__syncthreads();|// no barrier|' examples/mma_plain.cu >"$work/k.cu"
    local read
    read=$(grep -n 'ldmatrix_x4(q_r' "$work/k.cu" | cut -d: -f1)
    run -1 ./fa_bench --source "$work/k.cu" --stages 2 "${small[@]}" --dim 64 --race --quiet
    grep -qE '^    at k\.cu:[0-9]+ \(prims\.cuh:[0-9]+\)$' <<<"$output"
    grep -qE "^    at k\.cu:$read \(prims\.cuh:[0-9]+\)\$" <<<"$output"
    sed 's|"../kernels/|"|; s|ldmatrix_x4(q_r, q_s|& + FA_M * STRIDE + 4 * TILE|' examples/mma_plain.cu >"$work/k.cu"
    run -1 ./fa_bench --source "$work/k.cu" --stages 2 "${small[@]}" --dim 64 --sanitize address --json "$work/r.json"
    record_holds "$work/r.json" ".reason | test(\"k.cu:$read\")" '.reason | test("prims.cuh") | not' \
        '.fault == .findings.list[0].class' '.fault | IN("heap-buffer-overflow", "SEGV")'
    sed 's|"../kernels/|"|; s|^\( *\)ldmatrix_x4(q_r|\1if (threadIdx.x != 3) &|' examples/mma_plain.cu >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" --stages 2 "${small[@]}" --dim 64 --json "$work/r.json"
    record_holds "$work/r.json" ".reason | test(\"partial warp(.|\\\\n)*k.cu:$read\")"
}

@test "with the barrier it is clean; the record says that races were looked for, and under which schedules" {
    neighbours "__syncthreads();"
    run -0 ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --schedule random --race --json "$work/r.json"
    record_holds "$work/r.json" '.status == "pass"'
    ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --race --quiet --json "$work/r.json"
    record_holds "$work/r.json" '.race.looked_for' '.race.schedules | index("ascending") != null' \
        '.race.schedules | length >= 1'
    ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --quiet --json "$work/r.json"
    record_holds "$work/r.json" '.race == {looked_for: false, all_calls: false, schedules: []}'
}

# plain.cu with CODE where the loop over keys begins, under --race.
raced() { # STATUS CODE OPTIONS...
    sed "s|^    float m = |    $2\n&|" examples/plain.cu >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" "${small[@]}" --race --json "$work/r.json" --quiet "${@:3}"
    [ "$status" -eq "$1" ] || { echo "exit $status: $output"; return 1; }
}

@test "all races are found, and stores of one value told apart: they hide none, and fail by themselves" {
    local declare='__shared__ int flag_s, id_s; __shared__ float x_s[64];'
    local read='if (x_s[63 - threadIdx.x] == 3)\n return;'
    raced 1 "$declare flag_s = 1;\n id_s = threadIdx.x;\n x_s[threadIdx.x] = 2;\n $read"
    record_holds "$work/r.json" '.fault == "data race"' '.findings.count == 3 and (.findings.more | not)' \
        '.findings.list | map(.class) == ["data race", "data race", "equal-value stores"]' \
        '.findings.list | map(.at | map(sub(".*:"; "") | tonumber - 28)) == [[1, 1], [2, 3], [0, 0]]'
    [[ $output == *"data race in static shared memory"*"and data race in static shared memory: k.cu:30 and k.cu:31"* ]]
    [[ $output == *"and equal-value stores in static shared memory: k.cu:28 and k.cu:28" ]]
    raced 1 "$declare flag_s = 1;"
    record_holds "$work/r.json" '.fault == "equal-value stores"' '.findings.count == 1' \
        '.check.references[0].passed' '.race.schedules | length == 4'
    # The last value of the first thread is not the first of the second.
    raced 1 "$declare id_s = 0; id_s = threadIdx.x + 1;"
    record_holds "$work/r.json" '.fault == "data race"'
    # A struct is announced as written before it is read.
    raced 1 "__shared__ float4 all_s[64], one_s; all_s[threadIdx.x].x = threadIdx.x;\n one_s = all_s[threadIdx.x];"
    record_holds "$work/r.json" '.findings.list | map(.class) == ["data race"]'
    raced 0 "$declare if (threadIdx.x == 0)\n flag_s = 1;"
}

@test "more than twenty races: the first twenty, and how many there are" {
    local i code='__shared__ int many_s[32];'
    for i in {0..29}; do code+="\n many_s[$i] = threadIdx.x;"; done
    raced 1 "$code"
    record_holds "$work/r.json" '.findings | .count == 30 and (.list | length) == 20 and (.more | not)'
    [[ $output == *"and 10 more" ]]
}

@test "a race before a deadlock or a loop without an end is reported" {
    local declare='__shared__ int id_s; id_s = threadIdx.x;'
    raced 1 "$declare if (threadIdx.x % 2) __syncthreads(); else __syncwarp();"
    record_holds "$work/r.json" '.findings.list | map(.class) == ["data race", "divergent barrier"]'
    raced 1 "$declare while (atomicAdd(\\&id_s, 0) >= 0);" --timeout 60
    record_holds "$work/r.json" '.fault == "data race"' '.findings.more'
    raced 1 "$declare while (true) { asm volatile(\"nanosleep.u32 100;\"); }" --timeout 4
    record_holds "$work/r.json" '.fault == "data race"'
}

@test "options of a sanitizer from the environment turn no race into a pass" {
    neighbours "// no barrier"
    echo 'race:*' >"$work/suppressions"
    run -1 env TSAN_OPTIONS="report_bugs=0:exitcode=0:suppressions=$work/suppressions" \
        ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --race --quiet
}

@test "a result that depends on the order of the threads is not deterministic: each launch has another schedule" {
    cp tests/cheats/honest.cuh "$work/"
    local first='    __shared__ unsigned order_s;\n    if (threadIdx.x == 0)\n        order_s = 0;\n'
    sed -e "s|^    const place at|$first    __syncthreads();\n&|" \
        -e 's|^    if (at.inside)|    const unsigned mine = atomicAdd(\&order_s, 1u);\n&|' \
        -e 's|at.o);|at.o), ((unsigned short *)at.o)[0] ^= mine == 0;|' tests/cheats/honest.cu >"$work/k.cu"
    run -1 ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --quiet --json "$work/r.json"
    record_holds "$work/r.json" '.reason | test("not deterministic: launch 3 .*schedule descending")'
}

@test "the line says how often the emulator launched again, greedy first" {
    run ./fa_bench --kernel light "${small[@]}" --heads 1 --seq 512 --dim 64 --json "$work/r.json"
    [[ $output == *"; 1 repeated launch under ascending, greedy"* ]]
    record_holds "$work/r.json" '.check.repeats == 1 and .check.unrepeated == null'
    run ./fa_bench --kernel light "${small[@]}" --schedule greedy
    [[ $output == *"; 5 repeated launches under ascending, descending, random, greedy"* ]]
    sed 's/^\(FA_KERNEL_INFO(.threads = FA_M,\)/\1 .nondeterministic = 1,/' examples/plain.cu >"$work/k.cu"
    ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json"
    record_holds "$work/r.json" '.check.repeats == 5 and .check.unrepeated == null'
}

@test "setmaxnreg.inc waits for ever when the launch bounds leave the block too few registers" {
    cp tests/cheats/honest.cuh "$work/"
    sed -e 's|void fa_kernel|void BOUNDS fa_kernel|' \
        -e 's|^    const place at|    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");\n&|' \
        tests/cheats/honest.cu >"$work/k.cu"
    local bounds bound=__launch_bounds__
    for bounds in "$bound(FA_M, 1)" "$bound(64 * 2, 3)" "$bound(FA_M)" '__maxnreg__(168)'; do
        ./fa_bench --source "$work/k.cu" --m 128 --arch sm_90a "${small[@]}" --quiet --define "BOUNDS=$bounds"
    done
    for bounds in "$bound(FA_M, 4)" "$bound(512, 1)" '__maxnreg__(128)'; do
        run ./fa_bench --source "$work/k.cu" --m 128 --arch sm_90a "${small[@]}" --quiet --define "BOUNDS=$bounds"
        [ "$status" -ne 0 ]
        grep -q 'deadlock' <<<"$output"
        grep -q 'setmaxnreg.inc.* at k.cu:6' <<<"$output"
    done
}
