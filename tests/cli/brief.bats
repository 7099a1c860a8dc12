#!/usr/bin/env bats
# scripts/brief.sh: what is known before the next kernel, in a bounded page, with nothing of the hidden problems.
load stub_bench

# A sweep's folder: two kernels on the leaderboard, a failure, a tile that spills, a profile; and two scores.
known() {
    make_stub
    local from=$work/from group='NVIDIA Stub|sm_89|2,8,8,512,512,64,full|fp32'
    mkdir "$from"
    jq -nc --arg g "$group" '[{group: $g, leader: "two", kernels: {
        one: {kernel: "one", knobs: "m=16,warps=8", p50_us: 40, registers: 64, smem_bytes: 10, over: null},
        two: {kernel: "two", knobs: "m=32,warps=4", p50_us: 30, registers: 64, smem_bytes: 10,
              over: {kernel: "one", config: {m: 16}, ratio: 1.333, ratio_ci95: [1.32, 1.34]}}}}]' \
        >"$from/leaderboard.json"
    jq -nc --arg g "$group" '{key: "a", group: $g, kernel: "one", status: "pass"} + (
        {knobs: "m=16,warps=4", p50_us: 50, spill_bytes: 8}, {knobs: "m=16,warps=8", p50_us: 40},
        {knobs: "m=64,warps=4", status: "infeasible", reason: "one: M is too large"},
        {knobs: "m=64,warps=8", status: "infeasible", reason: "one: M is too large"})' >"$from/leaderboard.jsonl"
    jq -n '{kernel: "one", problem: {batch: 2, heads: 8, seq_q: 512, dim: 64}, gates: [
        {gate: "bank conflicts", measured: 12.5, unit: "%", rule: "<= 5", applies: true, verdict: "FAIL"},
        {gate: "tensor pipe active", measured: 50, unit: "%", rule: ">= 40", applies: true, verdict: "PASS"}]}' \
        >"$from/ncu.jsonl"
    jq -nc '{schema: "fa_bench.score/1", candidate: "new.cu", knobs: "--m 64", incumbent: "two", score_by: "speed",
        private: {results: [{options: "--seq 999"}]}, ratio_ci95: [1.1, 1.2], improved: true} + (
        {combined_score: 1.15, text_feedback: "Right."},
        {combined_score: 0, text_feedback: "Wrong on the emulator with --seq 33:\nworst at batch 0 head 1"})' \
        >"$work/scores"
}

@test "the task, the best with their ratios, what failed, what the profile advises" {
    known
    scripts/brief.sh --from "$work/from" --scores "$work/scores" >"$work/page"
    local line
    for line in '# Task' '# Limits of sm_89' 'typedef struct fa_params {' \
        '- `--batch 2 --heads 8 --seq 512 --dim 64` (gpu)' \
        '- `one` m=16,warps=8: 40 us, 64 registers, 10 bytes shared' \
        '- new.cu `--m 64`: score 1.15 by speed against `two` (1.1 to 1.2)' \
        '- infeasible: one: M is too large (2 times)' '- Wrong on the emulator with --seq 33: worst at batch 0 head 1' \
        '- `one` on 2,8,512,64: bank conflicts 12.5 %, should be <= 5' \
        '- `one`: 1 tiles spill registers to local memory: fewer rows a thread, or more warps'; do
        grep -qxF -- "$line" "$work/page" || { echo "no line: $line"; cat "$work/page"; return 1; }
    done
    grep -q 'warps 4: 50 us, 8: 40 us' "$work/page"
    grep -q "^- .two. m=32,warps=4: 30 us.* (the fastest, the leader), 1.333 times as fast as one m=16 (1.32.*" \
        "$work/page"
    { jq -s . "$work/scores"; cat "$work/scores"; } >"$work/twice" # a list, and the same again
    scripts/brief.sh --from "$work/from" --scores "$work/scores" --scores "$work/twice" | cmp - "$work/page"
    run ! grep -qE 'seq 999|seed 1009|tensor pipe' "$work/page" # hidden, hidden, passed
}

# bats test_tags=slow
@test "the whole contract: layout, alignment, heads, bottom-right, features, what a kernel needs" {
    known
    scripts/brief.sh --from "$work/from" >"$work/page"
    local words word
    for words in '`[batch, kv_heads, seq_kv, dim]`' 'h / (heads / kv_heads)' 'j <= i + seq_kv - seq_q' \
        'multiples of one element'; do
        grep -qF -- "$words" "$work/page" || { echo "no: $words"; return 1; }
    done
    # Every word of the header's lists, also those of other lines.
    for word in $(grep -A2 -E 'define FA_(NEEDS|FEATURES)_WORDS' include/fa_params.h | grep -oE '"[a-z_0-9|]+"' |
        tr -d '"' | tr '|' ' '); do
        grep -qE "(FA_NEEDS: |Features \().*\<$word\>|(FA_NEEDS: |Features \()$word" "$work/page" ||
            { echo "no: $word"; return 1; }
    done
    grep -q '^    fa_f32 \*lse;$' "$work/page"
    run ! grep -q 'mask_keys' "$work/page" # fields of features: docs/features.md
}

@test "the fastest is named, though another leads the sweeps, or no sweep knows it" {
    known
    jq '.[0].leader = "one"' "$work/from/leaderboard.json" >"$work/board"
    mv "$work/board" "$work/from/leaderboard.json"
    scripts/brief.sh --from "$work/from" >"$work/page"
    grep -q '`two` m=32,warps=4: 30 us.* (the fastest; `one` leads until it is beaten in a pair)' "$work/page"
    run ! grep -q '`one` m=16,warps=8.*leader' "$work/page"
    jq -c 'select(.kernel == "wgmma" and .problem.seq_q == 512)' evidence/h200/ladder.jsonl >"$work/from/ladder.jsonl"
    scripts/brief.sh --from "$work/from" >"$work/page"
    grep -qxF -- '- 2,8,512,64: `wgmma` 4.88 us, the fastest' "$work/page"
    grep -q '`one` m=16,warps=8: 40 us.* (leads the sweeps; `wgmma` is faster)' "$work/page"
    run ! grep -q 'the fastest;' "$work/page"
}

@test "bounded: every section stays, the longest lists are cut" {
    known
    for i in {1..400}; do
        jq -nc --arg i "$i" '{key: $i, group: "g", kernel: "one", knobs: "m=1", status: "error", reason: "why \($i)"}'
    done >>"$work/from/leaderboard.jsonl"
    scripts/brief.sh --from "$work/from" --chars 5000 --out "$work/page"
    [ "$(wc -c <"$work/page")" -le 5000 ]
    grep -qxF -- '- ...' "$work/page"
    [ "$(grep -c '^# ' "$work/page")" -eq 7 ]
    seq 300 | sed 's/.*/public gpu --batch 1 --seq &/' >"$work/p"
    [ "$(scripts/brief.sh --from "$work/from" --problems "$work/p" --chars 4000 | wc -c)" -le 4000 ]
    grep -q 'M is too large' "$work/page" # the most frequent first
}

@test "nothing known yet: the task and the limits alone; usage errors are named" {
    make_stub
    mkdir "$work/empty"
    scripts/brief.sh --from "$work/empty" --arch sm_90a >"$work/page"
    grep -qxF '# Limits of sm_90a' "$work/page"
    run ! grep -q 'tried and failed' "$work/page"
    refused 2 "no folder '$work/none'" scripts/brief.sh --from "$work/none"
    refused 2 "--chars takes a whole number from 4000" scripts/brief.sh --chars 10
    refused 2 "no file '$work/none'" scripts/brief.sh --from "$work/empty" --scores "$work/none"
}
