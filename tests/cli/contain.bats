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
    run -5 timeout 300 ./fa_bench --source "$work/k.cu" "${small[@]}" --scale 10 --timeout 4 --json "$work/r.json"
    record_holds "$work/r.json" '.status == "timeout"' '.reason | test("4 s while checking")' '.kernel == "k"'
}

@test "too little dynamic shared memory is a verdict that says how much is needed" {
    local bytes
    for bytes in 'Q_BYTES + K_BYTES + V_BYTES' 1024 0; do
        sed "s/.smem_dynamic_bytes = Q_BYTES[^,]*/.smem_dynamic_bytes = $bytes/" kernels/light.cu >"$work/k.cu"
        run -1 ./fa_bench --source "$work/k.cu" --m 32 --n 64 --warps 8 --vec 8 --batch 1 --heads 1 --seq 64 --dim 64 \
            --seeds 1 --device emu --json "$work/r.json"
        record_holds "$work/r.json" '.fault == "shared memory overflow"' '.reason | test("at least 33792 are needed")'
    done
}

@test "what runs too long for its time is offered as a smaller run, which is never larger" {
    local one=(--source "$work/k.cu" --device emu --m 32 --batch 1 --heads 1 --seq 40 --dim 16 --seeds 1 --timeout 3)
    body "if (p.scale > 9) { $hangs }"
    ./fa_bench "${one[@]}" --timeout 100 --quiet # compiled, so that the time goes by while it hangs
    run -5 ./fa_bench "${one[@]}" --scale 10 --batch 2
    [[ $output == *"; smaller: fa_bench"*"--batch 2 --batch 1" ]]
    run -5 ./fa_bench "${one[@]}" --scale 10
    [[ $output == *"; with more time: fa_bench"*"--scale 10 --timeout 1200" ]]
}

@test "each class of fault is a verdict that a search can tell from the others" {
    local class code
    while IFS='|' read -r class code; do
        body "$code"
        run ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet --json "$work/r.json"
        [ "$status" -eq 1 ] || { echo "$class: exit $status: $output"; return 1; }
        record_holds "$work/r.json" '.status == "wrong"' ".fault == \"$class\"" '.check.references == []' \
            '.findings | .count == 1 and (.list[0].text | test("block [(]"))' '.findings.list[0].class == .fault' \
            '.reason | test("k.cu:[0-9]+|--sanitize address names the line")' '.check.passed == false'
    done <<'END'
illegal address|*(volatile int *)8 = 1;
divergent barrier|if (threadIdx.x % 2) __syncthreads(); else __syncwarp();
bad barrier|asm volatile("bar.sync 0, %0;" :: "r"(p.batch * 48));
deadlock|asm volatile("bar.sync 1, 256;");
bad mask|__shfl_sync(1u << (threadIdx.x + 1) % 32, 1.0f, 0);
absent lane|if (threadIdx.x == 5) return; __shfl_sync(~0u, 1.0f, 5);
partial warp|if (threadIdx.x % 2) asm volatile("{ .reg .b32 a; movmatrix.sync.aligned.m8n8.trans.b16 a, a; }");
misaligned|asm volatile("{ .reg .b32 a; ld.global.b32 a, [%0]; }" :: "l"((const char *)p.q + 1));
division by zero|asm volatile("{ .reg .s32 a; div.s32 a, 1, %0; }" :: "r"(p.batch - 1));
trap|__trap();
END
}

@test "the numbers alone are wrong: no class" {
    sed 's/float m = /float m = 1 + /; s/s \*= p.scale/s *= -p.scale/' examples/plain.cu >"$work/k.cu"
    run -1 ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet --json "$work/r.json"
    record_holds "$work/r.json" '.status == "wrong"' '.fault == null' '.findings.list == []'
}

@test "a launch that no GPU makes is infeasible" {
    sed 's/^FA_KERNEL_INFO(.threads = [^,]*,/FA_KERNEL_INFO(.threads = 2048,/' examples/plain.cu >"$work/k.cu"
    run ./fa_bench --source "$work/k.cu" "${small[@]}" --quiet --json "$work/r.json"
    echo "$output"
    [ "$status" -eq 3 ]
}

@test "killing the parent leaves no child behind and no half record" {
    body "$hangs"
    ./fa_bench --source "$work/k.cu" "${small[@]}" --json "$work/r.json" >/dev/null 2>&1 3>&- &
    parent=$!
    eventually child_runs $parent "nanosleep(day"
    child=$(pgrep -P "$parent")
    [ -n "$child" ]
    kill -9 "$parent"
    wait "$parent" || true
    eventually is_gone "$child"
    [ ! -e "$work/r.json" ]
}
