#!/usr/bin/env bats
# Bring your own kernel.
load helper

@test "the forty-line example passes" {
    [ "$(wc -l <examples/plain.cu)" -le 45 ]
    ./fa_bench --source examples/plain.cu --m 32 "${small[@]}" --causal --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.status == "pass"' '.kernel == "plain"' '.config.m == 32'
}

@test "a compile error prints the compiler's lines and exits 6" {
    sed 's/float m = /float m = nonsense + /' examples/plain.cu >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json"
    [ "$status" -eq 6 ]
    [[ $output == *nonsense* ]]
    record_holds "$work/r.json" '.status == "compile_error"'
}

@test "what is missing is said: entry point, constants" {
    sed 's/void fa_kernel/void my_kernel/' examples/plain.cu >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" "${small[@]}"
    [ "$status" -eq 6 ]
    [[ $output == *"no entry point"*fa_kernel* ]]
    sed 's/^FA_KERNEL_INFO.*//' examples/plain.cu >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" "${small[@]}"
    [ "$status" -eq 6 ]
    [[ $output == *FA_KERNEL_INFO* ]]
}

@test "a wrong kernel exits 1, says where, and is never timed" {
    sed 's/s \*= p.scale;/s *= p.scale * 1.02f;/' examples/plain.cu >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json"
    [ "$status" -eq 1 ]
    [[ $output == *batch*head*row* ]]
    record_holds "$work/r.json" '.status == "wrong"' '.check.passed == false' '.timing == null' \
        '.check.references[0].mismatches > 0 or (.check.references[0].failure | length > 0)'
}

@test "an output that was not written, or is NaN, fails" {
    sed 's/o\[d\] = /if (d != 3) o[d] = /' examples/plain.cu >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json"
    [ "$status" -eq 1 ]
    record_holds "$work/r.json" '.check.references[0].nonfinite == 66'
}

@test "an input that was overwritten, or a write outside the output, fails" {
    sed 's/o\[d\] = /((half *)q)[d] = __float2half(0.0f), o[d] = /' examples/plain.cu >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" "${small[@]}"
    [ "$status" -eq 1 ]
    sed 's/o\[d\] = /((half *)p.o)[-1] = __float2half(1.0f), o[d] = /' examples/plain.cu >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" "${small[@]}"
    [ "$status" -eq 1 ]
}
