#!/usr/bin/env bats
# --op backward: what is refused, the rule, the record, files, fa_before and fa_after, mistakes by name.
load helper

tiny=(--op backward --device emu --batch 1 --heads 4 --kv-heads 2 --seq 20 --seq-kv 30 --dim 16 --quiet)
light() { # the row that computes gradients under that name
    ./fa_bench --list-kernels --json - | jq -r '.[] | select(.op == "backward" and .variant_of == "light").name'
}

@test "what there are no gradients of, or no rule for, is refused at once" {
    local with
    for with in "--page-size 16" --v-in-k --bias "--mask tree" --lse "--atol 1" "--rtol 1"; do
        refused 2 "--op backward does not go with" ./fa_bench --op backward $with
    done
    refused 2 "--deterministic asks for gradients" ./fa_bench --deterministic
    refused 2 "--op takes" ./fa_bench --op sideways
}

@test "a kernel serves one operator, and a rule takes the row that serves this one" {
    local name
    name=$(light)
    refused 3 "scalar does not serve --op backward" ./fa_bench "${tiny[@]}" --kernel scalar
    refused 3 "$name computes gradients: it serves --op backward alone" ./fa_bench --device emu --kernel "$name" --quiet
    ./fa_bench --op backward --kernel light --select --json "$work/r.json" --quiet
    record_holds "$work/r.json" ".variant == \"$name\""
    ./fa_bench --kernel light --select --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.variant == "light"'
    refused 3 "needs tensors and rows on 16-byte boundaries" ./fa_bench "${tiny[@]}" --kernel wgmma --strides odd
    # with a tile option the row that is named runs
    refused 3 "light does not serve --op backward" ./fa_bench "${tiny[@]}" --kernel light --m 32
    # without a kernel one that computes gradients
    ./fa_bench --op backward --select --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.reason == null'
}

@test "the record has a verdict for each gradient, and 2.5 times the operations" {
    ./fa_bench "${tiny[@]}" --kernel light --causal --sinks --check cpu,plain --seeds 3 --json "$work/r.json"
    record_holds "$work/r.json" '.status == "pass"' '.problem.flop == 2.5 * 2 * 32 * .problem.pairs' \
        '[.check.gradients[].tensor] | unique == ["dk", "dq", "dsinks", "dv"]' '.check.gradients | length == 8' \
        'all(.check.gradients[]; .passed and .nrmse < .nrmse_limit and .rms > 0 and .repeats_max_abs == 0)' \
        '[.check.draws[].dist] | unique == ["normal", "sharp"]' '.check.references == []' \
        '.launch.steps | map(.entry) == ["fa_before", "fa_kernel", "fa_after"]'
    ./fa_bench "${tiny[@]}" --kernel light --deterministic --seeds 1 --json "$work/r.json"
    record_holds "$work/r.json" '.problem.deterministic' '.check.repeats == 5' '.launch.steps | length == 2'
}

@test "every feature, alone and together, in both types and all layouts" {
    cat >"$work/runs" <<'END'
--causal --dtype bf16 --strides bshd
--seq 40 --window 9,3 --strides padded
--softcap 2 --sinks --dim-v 24 --strides odd
--lengths 17,0,33:5,5:33,1,0:7,3:0 --causal --strides padded
--lengths 20,30:9 --chunk 8 --alibi --softcap 3 --sinks --dtype bf16
--dim 192 --dim-v 128 --misalign 3 --deterministic
END
    # logits of 20000: P is e to the difference of two FP32 numbers, as every kernel has them
    printf '%s --check cpu,plain --causal --dim 64 --dist cliff\n' '' '--kernel mma' >>"$work/runs"
    # one pair of a row and a key: how its two sums are rounded decides over all errors
    printf -- '--kv-heads 1 --heads 1 --seq 1 --seq-kv 1 --dim 32 %s\n' '--sinks --seed 6' \
        '--dtype bf16 --sinks --seed 122' '--seq 20 --seq-kv 2 --causal --dtype bf16 --dist low --seed 76' \
        >>"$work/runs"
    ./fa_bench "${tiny[@]}" --kernel light --runs "$work/runs" --seeds 4 --no-ptxas --json "$work/r.jsonl"
    [ "$(jq -s 'map(select(.status == "pass" and .check.missing == null)) | length' "$work/r.jsonl")" -eq 11 ]
}

@test "dQ that is added out of turn is not deterministic: the race detector varies the order of blocks" {
    sed 's/ wait_for_turn(turn_g, .*/ ;/' kernels/mma_backward.cu >"$work/turn.cu"
    run ! cmp -s kernels/mma_backward.cu "$work/turn.cu"
    refused 1 "dq: not deterministic" ./fa_bench "${tiny[@]}" --source "$work/turn.cu" --include kernels --race \
        --no-ptxas --deterministic --seq-kv 400 --dim 32 --seeds 3 --m 32 --n 64 --warps 8 --stages 2 --swizzle 1
}

@test "a cluster of eight blocks: no schedule makes a deadlock, and the report of a real one has an end" {
    local size=(--device emu --arch sm_90a --op backward --batch 1 --heads 2 --seq 5 --seq-kv 512 --dim 64 --seeds 1
        --m 64 --n 128 --warps 12 --stages 2 --swizzle 1 --splits 8 --no-ptxas --quiet)
    exits 0 ./fa_bench "${size[@]}" --kernel wgmma_backward --schedule ascending --seed 44
    mkdir "$work/wgmma"
    cp kernels/wgmma_backward.cu "$work"
    sed 's/"barrier.cluster.arrive/"bar.sync 15, 384;\\n\\tbarrier.cluster.arrive/' \
        kernels/wgmma/backward_store.cuh >"$work/wgmma/backward_store.cuh"
    run ! cmp -s kernels/wgmma/backward_store.cuh "$work/wgmma/backward_store.cuh"
    exits 1 ./fa_bench "${size[@]}" --source "$work/wgmma_backward.cu" --include kernels 2>"$work/err"
    grep -q "emulator: deadlock: block" "$work/err"
}

@test "gradients of files are what plain arithmetic gives" {
    mkdir "$work/a" "$work/b"
    local size=(--op backward --device emu --kernel light --batch 1 --heads 2 --kv-heads 1 --seq 5 --seq-kv 7 --dim 16
        --causal --seeds 1 --quiet)
    ./fa_bench "${size[@]}" --dump "$work/a"
    ./fa_bench "${size[@]}" --load "$work/a" --dump "$work/b"
    cmp "$work/a/dk.npy" "$work/b/dk.npy"
    python3 - "$work/a" <<'END'
import math, struct, sys
def read(name, kind="e"):
    data = open(f"{sys.argv[1]}/{name}.npy", "rb").read()
    at = 10 + struct.unpack_from("<H", data, 8)[0]
    return struct.unpack_from(f"<{(len(data) - at) // struct.calcsize(kind)}{kind}", data, at)
def rows(name, n): return [read(name)[i * 16:i * 16 + 16] for i in range(n)]
q, dout, dq, k, v, dk, dv = (rows(*of) for of in (("q", 10), ("dout", 10), ("dq", 10), ("k", 7), ("v", 7), ("dk", 7),
                                                  ("dv", 7)))
dot = lambda a, b: math.fsum(x * y for x, y in zip(a, b))
want = {"dq": [[0] * 16 for _ in q], "dk": [[0] * 16 for _ in k], "dv": [[0] * 16 for _ in k]}
for i in range(10):
    keys = range(i % 5 + 3)
    e = [math.exp(dot(q[i], k[j]) / 4) for j in keys]
    p = [x / sum(e) for x in e]
    dp = [dot(dout[i], v[j]) for j in keys]
    delta = sum(x * y for x, y in zip(p, dp))
    for j in keys:
        ds = p[j] * (dp[j] - delta) / 4
        for d in range(16):
            want["dq"][i][d] += ds * k[j][d]
            want["dk"][j][d] += ds * q[i][d]
            want["dv"][j][d] += p[j] * dout[i][d]
for name, got in (("dq", dq), ("dk", dk), ("dv", dv)):
    for a, b in zip(got, want[name]):
        assert all(abs(x - y) <= 2e-3 * (1 + abs(y)) for x, y in zip(a, b)), (name, a, b)
assert abs(read("lse", "f")[0] - math.log(sum(math.exp(dot(q[0], k[j]) / 4) for j in range(3)))) < 1e-5
END
    rm "$work/a/dout.npy"
    refused 2 "dout.npy" ./fa_bench "${size[@]}" --load "$work/a"
}

@test "mistakes of a backward are named" {
    local name only=()
    for name in 1_scale_not_in_dk 2_delta_missing 3_workspace_not_zeroed 4_head_of_a_group_lost 9_not_deterministic \
        8_slope_of_the_softcap_missing; do only+=(--only "backward_$name"); done
    run -0 tests/wrong/named.sh "${only[@]}"
    [[ $output == *"6 kernels, 0 not as they should be"* ]]
}

@test "exports keep gradients apart from dense attention" {
    ./fa_bench "${tiny[@]}" --kernel light --seeds 1 --no-ptxas --json "$work/r.json"
    scripts/export.sh --format csv "$work/r.json" | tail -n 1 | grep -q ',"backward"$'
    run -2 scripts/export.sh --format kernelbench --out "$work/folder" "$work/r.json"
    [[ $output == *"no result of a problem that it can hold"* ]]
}
