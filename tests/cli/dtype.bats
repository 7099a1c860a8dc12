#!/usr/bin/env bats
# --dtype bf16 and e4m3: kernels, references, rules and files in these types; what does not serve them says so.
load helper

# A problem with grouped heads and tails; causal, the first 13 of its rows see no key.
odd=(--device emu --dtype bf16 --batch 1 --heads 2 --kv-heads 1 --seq 33 --seq-kv 20 --dim 24 --check cpu --quiet)
bf16='.problem.dtype == "bf16" and .check.atol == 8e-3 and .check.rtol == 8e-3 and (.check.loosened | not)'

passes() { # OPTIONS...
    exits 0 ./fa_bench "${odd[@]}" --seeds 1 "$@" --json "$work/r.json"
    record_holds "$work/r.json" '.status == "pass"' "$bf16" '.provenance.options | index("-DFA_BF16=1") != null'
}

@test "mma, wgmma and the example serve it, the log-sum-exp too" {
    passes --source examples/plain.cu --m 32 --causal --lse
    passes --kernel mma --m 16 --n 16 --warps 1 --stages 2 --splits 1 --causal --lse --seeds 3
    passes --kernel wgmma --m 64 --n 64 --warps 4 --stages 2 --splits 1 --causal --lse
}

@test "FP16 stays the default, and its code knows nothing of BF16" {
    ./fa_bench "${small[@]}" --kernel scalar --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.problem.dtype == "fp16"' '.check.atol == 1e-3' \
        '.provenance.options | all(contains("BF16") | not)'
    ./fa_bench "${small[@]}" --kernel scalar --dtype bf16 >"$work/out"
    grep -q "D=16 BF16 full" "$work/out"
}

@test "what does not serve it is infeasible, with a sentence" {
    local run=(./fa_bench "${small[@]}" --dtype bf16 --quiet)
    refused 3 "--acc fp16 needs --dtype fp16" "${run[@]}" --kernel wmma --acc fp16
    refused 4 "cublas is a GPU library" "${run[@]}" --kernel cublas
    sed 's/, \.serves_bf16 = 1//' examples/plain.cu >"$work/old.cu"
    refused 3 "old does not serve the BF16 tensors that --dtype asks for: its FA_KERNEL_INFO has no .serves_bf16" \
        "${run[@]}" --source "$work/old.cu" --m 32
    refused 3 "has no .serves_bf16" ./fa_bench --source "$work/old.cu" --m 32 --dtype bf16 --compile-only --quiet
    refused 2 "--define FA_BF16: the tile and problem options set this macro" \
        ./fa_bench --source "$work/old.cu" --define FA_BF16=1 --quiet
    refused 2 "--dtype takes one of fp16|bf16|e4m3, not 'fp32'" ./fa_bench --dtype fp32
}

@test "a kernel that takes BF16 for FP16 is wrong" {
    sed 's/fa_element/half/g' examples/plain.cu >"$work/k.cu"
    run -1 ./fa_bench --source "$work/k.cu" --m 32 "${small[@]}" --dtype bf16 --quiet --json "$work/r.json"
    record_holds "$work/r.json" '.status == "wrong"' '.reason | contains("|O-R| > 0.008 + 0.008 |R|")'
}

@test "--dump and --load keep BF16 as ml_dtypes does, and take it as NumPy and torch may write it" {
    local run=(./fa_bench "${small[@]}" --dtype bf16 --kernel scalar --check cpu --quiet) descr name
    "${run[@]}" --dump "$work/d"
    head -c 128 "$work/d/o.npy" | grep -aqF "'descr': '<V2', 'fortran_order': False, 'shape': (1, 2, 33, 16)"
    for descr in '<V2' '|V2' '<u2'; do
        mkdir -p "$work/e"
        for name in q k v; do
            LC_ALL=C sed "1s/<V2/$descr/" "$work/d/$name.npy" >"$work/e/$name.npy"
        done
        "${run[@]}" --load "$work/e" --dump "$work/same" --json "$work/r.json"
        record_holds "$work/r.json" '.status == "pass"' "$bf16"
        cmp "$work/d/q.npy" "$work/same/q.npy"
        refused 2 "q.npy holds $descr, want <f2 for --dtype fp16" "${run[@]}" --dtype fp16 --load "$work/e"
    done
    "${run[@]}" --dtype fp16 --dump "$work/h"
    refused 2 "want <V2, |V2 or <u2 for --dtype bf16" "${run[@]}" --load "$work/h"
}

@test "sums in FP16 that overflow are wrong: V near 900, and every key counts alike" {
    local run=(./fa_bench "${small[@]}" --batch 1 --heads 1 --seq 160 --dim 64 --kernel wmma --m 32 --n 64 --warps 2)
    "${run[@]}" --dump "$work/d" --quiet
    for name in q v; do head -c 128 "$work/d/$name.npy" >"$work/$name"; done
    { cat "$work/q"; head -c 20480 /dev/zero; } >"$work/d/q.npy"
    { cat "$work/v"; printf '\x08\x63%.0s' {1..10240}; } >"$work/d/v.npy"
    "${run[@]}" --load "$work/d" --quiet
    run -1 "${run[@]}" --load "$work/d" --quiet --acc fp16
    [[ $output == *"outputs are not finite"* ]]
}

@test "results of one type are not compared with the other's" {
    local type
    for type in fp16 bf16; do
        ./fa_bench --kernel scalar "${small[@]}" --dtype $type --quiet --json "$work/$type.json"
        PYTHONPATH=scripts/lib/evo python3 -c 'import json, sys; from subject import group_of
print(group_of(json.load(sys.stdin), "G", "sm_90a"))' <"$work/$type.json" >"$work/$type.group"
        jq -L scripts/lib -s 'import "ladder" as m; m::table[0].problem' "$work/$type.json" >"$work/$type.key"
    done
    [ "$(cat "$work/fp16.group")" = "G|sm_90a|1,2,2,33,33,16,full|fp32" ]
    [ "$(cat "$work/bf16.group")" = "G|sm_90a|1,2,2,33,33,16,full bf16|fp32" ]
    [ "$(cat "$work/fp16.key" "$work/bf16.key")" = '"1,2,33,16"
"1,2,33,16 bf16"' ]
}

@test "the gate goes over the kernels that serve the type, and its cases name it" {
    refused 2 "--dtype takes fp16, bf16 or e4m3, not 'half'" scripts/ci_gate.sh --dtype half
    scripts/ci_gate.sh --dtype bf16 --kernel scalar --dry-run --draws 2 --quick >"$work/list"
    [ "$(wc -l <"$work/list")" -ge 4 ]
    run ! grep -v '^scalar|[a-z]*|--dtype bf16 ' "$work/list"
    scripts/ci_gate.sh --kernel scalar --dry-run --draws 2 --quick | grep -q '^scalar||--batch'
    sed 's/, \.serves_bf16 = 1//' examples/plain.cu >"$work/old.cu"
    refused 4 "old does not serve the BF16 tensors" scripts/ci_gate.sh --dtype bf16 --source "$work/old.cu" -- --m 32
}

# ---- FP8 ----

fp8=(--kernel light --device emu --batch 2 --heads 4 --kv-heads 2 --dim 32 --seq 70 --no-ptxas --quiet)

@test "light serves e4m3 and a cache of it, with features, layouts and the plain reference" {
    cat >"$work/fp8.runs" <<'EOT'
--dtype e4m3 --causal --sinks --softcap 20 --bias --alibi --lse --seeds 3
--dtype e4m3 --lengths 20,0:9,33:5 --strides padded --window 9,0 --dim-v 48 --seeds 3 --check cpu,plain
--dtype e4m3 --page-size 8 --page-layout hnd --misalign 3 --seeds 5
--dtype e4m3 --strides far --seeds 1
--dtype e4m3 --strides odd --dist mean --seeds 1 --mask tree
--kv-dtype e4m3 --dtype bf16 --page-size 16 --seq 3 --lse --seeds 3 --check cpu,plain
--kv-dtype e4m3 --strides bshd --dim 40 --v-in-k --dim-v 24 --seeds 3
--kernel mma --dtype e4m3 --sinks --batch 1 --heads 1 --kv-heads 1 --seq 2 --seq-kv 3 --dim 16 --seed 72 --seeds 1
EOT
    run -0 ./fa_bench "${fp8[@]}" --runs "$work/fp8.runs" --json "$work/fp8.jsonl"
    [ "$(jq -s 'map(select(.status == "pass")) | length' "$work/fp8.jsonl")" -eq 8 ] # the last: six weights
    run -0 ./fa_bench "${fp8[@]}" --dtype e4m3 --sanitize address --seq 33 --seeds 1
    [ "$(jq -sc '[.[0, 5].problem | .dtype, .kv_dtype]' "$work/fp8.jsonl")" = '["e4m3","e4m3","bf16","e4m3"]' ]
    [ "$(jq -s '.[3].problem | .bytes == 2 * 70 * (4 * 32 * 3 + 2 * 2 * 32)' "$work/fp8.jsonl")" = true ]
}

@test "a right FP8 kernel passes where every score is large, so that products lose most, in long rows" {
    run -0 ./fa_bench --kernel wgmma_fp8 --arch sm_90a --device emu --dtype e4m3 --batch 1 --heads 1 --dim 64 \
        --seq 192 --seq-kv 8192 --dist low --lse --seed 44 --seeds 1 --timing none --no-ptxas --quiet
}

@test "the decode kernels serve an e4m3 cache, in pages of any size and rows off 16 bytes, without a race" {
    local pages='--page-size 1 --lengths 3:90,1:33,2:0 --causal --lse'
    printf '%s\n' "--arch sm_80 $pages" "--arch sm_80 --dtype bf16 --seq 3 --seq-kv 200 --splits 3" \
        "--dim 24 --misalign 3 --page-size 16 --m 64 --n 32 --warps 4" "--dim 40 --dim-v 24 --softcap 3 --mask tree" \
        >"$work/mma.runs"
    printf -- '--arch sm_90a --n 64 --warps 4 %s\n' "--dim 64 $pages --splits 2" \
        "--m 64 --stages 1 --dtype bf16 --strides padded --seq 3 --seq-kv 200 --window 90,0 --sinks" >"$work/wgmma.runs"
    for name in mma wgmma; do
        run -0 ./fa_bench "${fp8[@]}" --kernel "${name}_decode" --kv-dtype e4m3 --race --seeds 1 \
            --runs "$work/$name.runs"
    done
}

@test "what does not serve FP8, or cannot have it, says so by name" {
    refused 3 "scalar does not serve --dtype e4m3" ./fa_bench --kernel scalar --dtype e4m3 --compile-only --quiet
    refused 3 "scalar does not serve --kv-dtype e4m3" ./fa_bench --kernel scalar --kv-dtype e4m3 --compile-only --quiet
    refused 3 "n: a multiple of 32 with an FP8 cache" ./fa_bench --kernel wgmma_decode --n 80 --arch sm_90a --dim 128 \
        --kv-dtype e4m3 --compile-only --quiet
    refused 3 "mma does not serve --dtype e4m3: mma_fp8 does, up to dim 256, by its own tiles, from sm_89 on" \
        ./fa_bench --kernel mma --dtype e4m3 --arch sm_80 --compile-only --quiet
    # by name also where code for it does not compile or fit
    refused 3 "wgmma_small does not serve --dtype e4m3" \
        ./fa_bench --kernel wgmma_small --dtype e4m3 --dim 256 --arch sm_90a --device emu --no-ptxas --quiet
    refused 3 "wmma does not serve --alibi" ./fa_bench --kernel wmma --alibi --dim 256 --device emu --no-ptxas --quiet
    local type mla=(--kernel mma_mla --dim 576 --dim-v 512 --v-in-k --compile-only --quiet)
    for type in --dtype --kv-dtype; do
        refused 3 "mma_mla does not serve $type e4m3" ./fa_bench "${mla[@]}" $type e4m3
    done
    refused 2 "--dtype e4m3 takes multiples of 16" ./fa_bench --dtype e4m3 --dim 40
    refused 2 "--kv-dtype takes one of same|e4m3, not 'fp8'" ./fa_bench --kv-dtype fp8
    refused 2 "does not go with e4m3" ./fa_bench --op backward --dtype e4m3
    refused 2 "multiples of 16" ./fa_bench --kernel light --dim 24 --vs light:dtype=e4m3 --quiet
    refused 3 "products of E4M3 are summed in FP32 only" \
        ./fa_bench --kernel wmma --dtype e4m3 --acc fp16 --device emu --quiet
}

@test "right kernels with P in E4M3 pass, whatever their reference is" {
    python3 tests/wrong/make.py "$work/bases" --bases >/dev/null
    local m='m_r[r]' top='warp_max(m_tile)' to_fp8='static_cast<float>(__nv_fp8_e4m3(' kernel
    local lazy="($m == NO_MAX ? $top : $top - $m > 4.0f ? $m + ceilf($top - $m) : $m)" # at most 2^4 above
    awk -v p="${to_fp8}256.0f * weight)) / 256.0f;" '/ = weight;/ { sub(/weight;/, p) } 1' "$work/bases/light.cu" \
        >"$work/exact.cu"
    awk -v p="${to_fp8}16.0f * weight)) / 16.0f;" -v m="$lazy" '/ = weight;/ { sub(/weight;/, p) }
        { sub(/fmaxf\(m_r\[r\], warp_max\(m_tile\)\)/, m) } 1' "$work/bases/light.cu" >"$work/lazy.cu"
    for kernel in exact lazy; do
        grep -q __nv_fp8_e4m3 "$work/$kernel.cu"
        printf -- "--dtype e4m3 --source $work/$kernel.cu %s\n" "--seq 80" "--seq 300 --sinks --causal" \
            "--seq 1 --seq-kv 700" "--dist needle" "--dist outlier" "--dist cliff" "--dist rising --lse" \
            "--seq 16 --seq-kv 4000 --dist mean --seeds 1"
    done >"$work/right.runs"
    run -0 ./fa_bench "${fp8[@]:2}" "${tile[@]}" --runs "$work/right.runs" --json "$work/right.jsonl"
    [ "$(jq -s 'map(select(.status == "pass")) | length' "$work/right.jsonl")" -eq 16 ]
}

@test "--dump and --load have E4M3 as uint8, and its descales" {
    run -0 ./fa_bench "${fp8[@]}" --dtype e4m3 --seeds 1 --dump "$work/e4m3"
    for name in q k v; do
        [ "$(head -c 30 "$work/e4m3/$name.npy" | tr -d '\0' | grep -c "'|u1'")" -eq 1 ]
        grep -aq "'<f4'.*'shape': (2, [24])" "$work/e4m3/${name}_descale.npy"
    done
    grep -aq "'<V2'" "$work/e4m3/o.npy"
    run -0 ./fa_bench "${fp8[@]}" --dtype e4m3 --load "$work/e4m3" --dump "$work/again"
    cmp "$work/e4m3/o.npy" "$work/again/o.npy"
    rm "$work/e4m3/v_descale.npy" # then it is 1
    run -0 ./fa_bench "${fp8[@]}" --dtype e4m3 --load "$work/e4m3" --dump "$work/again"
    run ! cmp "$work/e4m3/o.npy" "$work/again/o.npy"
    refused 2 "holds |u1, want <f2 for --dtype fp16" ./fa_bench "${fp8[@]}" --load "$work/e4m3"
    head -c 100 "$work/e4m3/k_descale.npy" >"$work/cut"
    mv "$work/cut" "$work/e4m3/k_descale.npy"
    refused 2 "k_descale.npy is cut off in its header" ./fa_bench "${fp8[@]}" --dtype e4m3 --load "$work/e4m3"
}

# bats file_tags=slow
@test "the other kernels serve BF16, too, in larger problems, tiles and strides" {
    odd+=(--batch 2 --heads 4 --kv-heads 2 --seq 70 --seq-kv 45 --dim 40)
    passes --kernel scalar --causal
    passes --kernel light --lse --strides padded
    passes --kernel wmma_qk --m 32 --n 64 --warps 8 --causal
    passes --kernel wmma --m 32 --n 64 --warps 8 --lse --seeds 3
    passes --kernel mma --m 32 --n 32 --warps 4 --stages 2 --splits 1 --causal --lse --seeds 3
    passes --kernel mma_decode --m 16 --n 16 --warps 4 --splits 2 --lse --misalign 1
    passes --kernel wgmma --m 128 --n 128 --warps 8 --stages 2 --splits 1 --causal --lse
    passes --kernel wgmma_small --m 64 --n 64 --warps 8 --seq-kv 150
}

@test "mma and wgmma serve every distribution in BF16, in tiles of every kind" {
    odd+=(--batch 2 --heads 4 --kv-heads 2 --seq 70 --dim 40)
    local dist
    for dist in rising falling needle sharp outlier low coded; do
        passes --kernel mma --m 32 --n 16 --warps 8 --dist $dist --seq-kv 200
        passes --kernel mma_decode --dist $dist --seq-kv 200
        passes --kernel wgmma --m 128 --n 128 --warps 8 --splits 1 --dist $dist --seq-kv 300 --lse
        passes --kernel wgmma_small --dist $dist --seq-kv 300
    done
    passes --kernel mma --m 128 --n 64 --warps 4 --dim 64 --seq 200 --seq-kv 300 --seeds 3 --lse
    passes --kernel mma --m 64 --n 32 --warps 4 --dim 256 --causal --lse
    passes --kernel wgmma --m 128 --n 128 --warps 8 --splits 1 --dim 128 --seq 200 --seq-kv 300 --causal --seeds 3
    passes --kernel wgmma --m 128 --n 64 --warps 8 --splits 2 --dim 136 --seq-kv 300 --lse
}

@test "the tensor-core example serves BF16, and nvcc compiles it as NVRTC does" {
    passes --source examples/mma_plain.cu --m 64 --n 32 --warps 4 --stages 2 --vec 8 --misalign 3
    local compiler
    for compiler in nvrtc nvcc; do
        ./fa_bench --source examples/plain.cu --m 32 --dtype bf16 --compile-only --compiler $compiler --quiet --json - |
            jq -r '.problem.dtype, .provenance.code_sha256' >"$work/$compiler"
    done
    cmp "$work/nvrtc" "$work/nvcc"
    run ! diff -q "$work/nvrtc" <(./fa_bench --source examples/plain.cu --m 32 --compile-only --quiet --json - |
        jq -r '.problem.dtype, .provenance.code_sha256')
}

@test "the gate runs the kernels that serve BF16" {
    scripts/ci_gate.sh --dtype bf16 --kernel scalar --out "$work/gate" --draws 0 --quick
    jq -e '.dtype == "bf16" and .kernels[0].failed == 0 and .kernels[0].passed > 2' "$work/gate/summary.json"
    jq -e '.problem.dtype == "bf16" and (.args | startswith("--dtype bf16 "))' "$work/gate/cases.jsonl"
}
