#!/usr/bin/env bats
# The plain reference (src/cuda/plain.cu) on the emulator, against FP64 on the CPU: it is a reference only where all
# rows agree to 1e-9, so its verdict in a record says that they do.
load helper

problem=(--device emu --source tests/features/plain.cu --check "cpu,plain" --batch 2 --heads 4 --kv-heads 2 --seq 24
    --seq-kv 40 --dim 16)

agrees() { # FILE: every record has the plain reference's verdict, over the rows of the CPU's
    jq -es 'all(.[]; .status == "pass" and .check.missing == null and
        (.check.references | map(.name) == ["cpu", "plain"] and all(.[]; .passed) and
            .[0].rows_checked == .[1].rows_checked and .[0].mismatches == .[1].mismatches and
            (.[0].max_abs_err - .[1].max_abs_err | fabs) < 1e-9))' "$1"
}

@test "each feature alone, and pairs, in both types and every layout" {
    printf '%s\n' "--lse" "--causal" "--window 9,4" "--window 5,-1 --causal" "--chunk 16" "--softcap 2" \
        "--sinks --lse" "--alibi" "--bias" "--mask tree" "--dim-v 40" "--lengths 0:40,17:3,24:24,1:0" \
        "--lengths 7,33 --strides padded" "--seq 40 --seq-kv 24 --causal --lse" \
        "--window 3,0 --sinks --softcap 5 --lse --dtype bf16" "--mask tree --lengths 5:30,8:8 --sinks --lse" \
        "--lengths 3:40,17:9 --bias --alibi --strides padded --dtype bf16" \
        "--page-size 16 --causal" "--page-size 8 --lengths 5:30,17:9 --window 9,2 --dim-v 24" \
        "--chunk 7 --window 5,1 --strides bshd --misalign 3" "--bias --strides odd --dim-v 24" "--dist cliff --causal" \
        "--dim 576 --dim-v 512 --seq 4 --seq-kv 36 --heads 2" >"$work/runs"
    ./fa_bench "${problem[@]}" --seeds 3 --runs "$work/runs" --json "$work/r.jsonl" --quiet
    [ "$(wc -l <"$work/r.jsonl")" -eq "$(wc -l <"$work/runs")" ]
    agrees "$work/r.jsonl"
}

@test "under the emulator's tools, which look at the kernel alone" {
    ./fa_bench "${problem[@]}" --seeds 1 --causal --race --json "$work/r.json" --quiet
    agrees "$work/r.json"
    ./fa_bench "${problem[@]}" --seeds 1 --sinks --sanitize address --json "$work/r.json" --quiet
    agrees "$work/r.json"
}

@test "only where it is asked for on the emulator; alone it is enough" {
    ./fa_bench "${problem[@]}" --check cpu,cublas --window 3,3 --seeds 1 --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.check.references | map(.name) == ["cpu"]' \
        '.check.missing == "cublas: does not serve --window"'
    ./fa_bench "${problem[@]}" --check plain --window 3,3 --seeds 2 --json "$work/r.json" --quiet
    record_holds "$work/r.json" '.check.references | map(.name) == ["plain"]'
}

# The bench's own files, but for what sed makes of the plain reference.
with_plain() { # SED
    rm -r "$work/home" 2>/dev/null || true
    mkdir -p "$work/home/src/cuda"
    ln -s "$PWD"/{include,kernels,build} "$work/home/"
    ln -s "$PWD/src/emu" "$work/home/src/"
    sed "$1" src/cuda/plain.cu >"$work/home/src/cuda/plain.cu"
    run ! cmp -s src/cuda/plain.cu "$work/home/src/cuda/plain.cu"
    FA_HOME="$work/home" ./fa_bench "${problem[@]}" --seeds 1 --json "$work/r.json" --quiet "${@:2}"
}

@test "a plain reference with a fault is dropped, with the place" {
    local wrong=(--window 9,4 --softcap 2 --sinks --alibi --lse --causal)
    with_plain 's/at.position - p.window_left)/at.position - p.window_left + 1)/' "${wrong[@]}"
    record_holds "$work/r.json" '.status == "pass"' '.check.references | map(.name) == ["cpu"]' \
        '.check.missing | test("^plain: its own result is wrong here, so no reference: batch [01] head . row .* col ")'
    for fault in 's/tanh(score/sin(score/' 's/exp(sink - largest)/0.0/' 's/static_cast<double>(p.slopes/0.999 * \0/' \
        's/log(total)/log2(total)/'; do
        with_plain "$fault" "${wrong[@]}"
        record_holds "$work/r.json" '.check.missing | test("plain: its own result is wrong here")'
    done
    with_plain 's/for (int c = 0/for (int c : 0/'
    record_holds "$work/r.json" '.status == "pass"' '.check.missing | test("^plain: .*plain.cu")'
}
