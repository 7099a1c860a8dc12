#!/usr/bin/env bats
# Bring your own kernel.
load helper

mma_plain=(--source examples/mma_plain.cu --m 64 --n 32 --warps 4 --stages 2)

@test "the forty-line example passes" {
    [ "$(wc -l <examples/plain.cu)" -le 45 ]
    ./fa_bench --source examples/plain.cu --m 32 "${small[@]}" --causal --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.status == "pass"' '.kernel == "plain"' '.config.m == 32'
}

@test "what is missing is said: entry point, constants" {
    sed 's/void fa_kernel/void my_kernel/' examples/plain.cu >"$work/k.cu"
    run -6 ./fa_bench --source "$work/k.cu" "${small[@]}"
    [[ $output == *"no entry point"*fa_kernel* ]]
    sed 's/^FA_KERNEL_INFO.*//' examples/plain.cu >"$work/k.cu"
    run -6 ./fa_bench --source "$work/k.cu" "${small[@]}"
    [[ $output == *FA_KERNEL_INFO* ]]
}

@test "a wrong kernel exits 1, says where, and is never timed" {
    sed 's/s \*= p.scale;/s *= p.scale * 1.02f;/' examples/plain.cu >"$work/k.cu"
    run -1 ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json"
    [[ $output == *batch*head*row* ]]
    record_holds "$work/r.json" '.status == "wrong"' '.check.passed == false' '.timing == null' \
        '.check.references[0].mismatches > 0 or (.check.references[0].failure | length > 0)'
}

@test "an output that was not written, or is NaN, fails" {
    sed 's/o\[d\] = /if (d != 3) o[d] = /' examples/plain.cu >"$work/k.cu"
    run -1 ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json"
    record_holds "$work/r.json" '.check.references[0].nonfinite == 66'
}

@test "an address finding names the tensor and the row; the sanitizer's whole report comes with --verbose, after it" {
    ! ldd ./fa_bench | grep -q libasan || skip "fa_bench is under AddressSanitizer itself"
    sed 's|k\[j \* p.k_stride_s + d\]|k[(j + 1) * p.k_stride_s + d]|' examples/plain.cu >"$work/k.cu"
    run -1 ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --sanitize address --json "$work/r.json"
    record_holds "$work/r.json" '.reason | test("K, 1 element past its end: batch 0, head 1, row 33 .rows 0 to 32.")' \
        '.reason | test("READ of size 2") and test("k.cu:32") and (test("0x") | not)'
    [[ $output != *"Shadow bytes"* && ${lines[-1]} == *"--verbose shows"* ]]
    sed 's|^        o\[d\] =|        o[d + p.o_stride_s] =|' examples/plain.cu >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --sanitize address --quiet --verbose
    [[ $output == "fa_bench: wrong: "*"O, 1 element past its end: batch 0, head 1, row 33"*"Shadow bytes"* ]]
}

# bats file_tags=slow
@test "the tensor-core example passes: tails, grouped heads, causal, any alignment" {
    local tile=("${mma_plain[@]}" --device emu --seeds 1 --check cpu --quiet)
    ./fa_bench "${tile[@]}" --batch 2 --heads 4 --kv-heads 2 --seq 65 --seq-kv 100 --dim 64 --causal --sanitize thread
    ./fa_bench "${tile[@]}" --batch 1 --heads 2 --seq 40 --seq-kv 17 --dim 24 --causal --sanitize address
    ./fa_bench "${tile[@]}" --batch 1 --heads 2 --seq 35 --seq-kv 66 --dim 72 --misalign 3 --schedule random
    ./fa_bench "${tile[@]}" --batch 1 --heads 1 --seq 70 --seq-kv 33 --dim 256
    refused 3 "M must be 16 * WARPS" ./fa_bench "${tile[@]}" --m 32
}

@test "the tensor-core example spills nothing on any architecture it serves" {
    for arch in sm_80 sm_89 sm_90a; do
        for dim in 64 128 256; do
            ./fa_bench "${mma_plain[@]}" --arch "$arch" --dim "$dim" --compile-only --json "$work/r.json" --quiet
            record_holds "$work/r.json" '.status == "pass"' '.ptxas.spill_store_bytes == 0' '.ptxas.stack_bytes == 0'
        done
    done
}
