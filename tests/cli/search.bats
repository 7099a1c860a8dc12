#!/usr/bin/env bats
# Searches that others wrote drive scripts/evaluate.sh: a server proposes a list of good and bad edits in place
# of a model.
# bats file_tags=slow
load half_gpu
load ../search/packages

# The task: plain.cu from a bad tile, two small problems, a GPU that is made up, and the model.
start() {
    needs_packages
    make_half_gpu
    printf '%s\n' 'public emulator --batch 1 --heads 2 --seq 33 --dim 16' \
        'public gpu --batch 2 --heads 2 --seq 64 --dim 16' >"$work/p"
    sed 's|^// fa_bench: .*|// fa_bench: --m 16 --warps 1|' examples/plain.cu >"$work/initial.cu"
    export FA_EVALUATE="--problems $work/p --incumbent light" OPENAI_API_KEY=none
    python3 tests/search/proposer.py "$work/prompts" >"$work/port" 3>&- &
    model=$!
    eventually test -s "$work/port"
    url=http://127.0.0.1:$(<"$work/port")/v1
}
teardown() {
    [[ -z ${model:-} ]] || kill "$model" || true
    [[ -z ${FA_TEST_OUT:-} ]] || note_times "$FA_TEST_OUT/times.tsv"
    rm -rf "$work"
}

# The score, the tile and the feedback of every program: the best is the best, the bad ones have 0.
right_end() { # JSON-LINES of {tile, score, words}
    jq -es 'max_by(.score) | .tile == "--m 64 --warps 4" and (.score - 5 | fabs) < 1e-9' "$1"
    jq -es '[.[] | select(.tile == "--m 16 --warps 1").score][0] == 1' "$1"
    jq -es 'any(.[]; .score == 0 and (.words | test("^Wrong on the emulator") and test("expected")))' "$1"
    jq -es 'any(.[]; .score == 0 and (.words | test("^Does not compile") and test("\"lowest\" is undefined")))' "$1"
    jq -es 'any(.[]; .score == 0 and .tile == "--m 4096 --warps 2" and (.words | test("^Infeasible")))' "$1"
    jq -es '[.[] | select(.score == 0)] | length == 3' "$1"
}

@test "OpenEvolve ends with the best of ten candidates" {
    start
    sed 's/^checkpoint_interval: .*/checkpoint_interval: 9/' examples/openevolve/config.yaml >"$work/config.yaml"
    "$python" -m openevolve.cli "$work/initial.cu" examples/openevolve/evaluator.py --config "$work/config.yaml" \
        --iterations 9 --api-base "$url" --primary-model list --output "$work/out" >"$work/log" 2>&1 ||
        { tail -n 30 "$work/log"; return 1; }
    jq -c '{tile: (.code | capture("// fa_bench: (?<tile>.*)").tile), score: .metrics.combined_score,
        words: (.artifacts_json // "{}" | fromjson | .feedback // "")}' \
        "$work"/out/checkpoints/checkpoint_9/programs/*.json >"$work/all"
    right_end "$work/all"
    grep -q '^// fa_bench: --m 64 --warps 4$' "$work/out/best/best_program.cu"
    grep -q 'Right on the emulator' "$work/prompts" # the words reach the model
}

@test "ShinkaEvolve ends with the best of ten candidates, and the model never reads what is private" {
    start
    echo 'hidden gpu --batch 1 --heads 3 --seq 37 --dim 16' >>"$work/p"
    mkdir "$work/task"
    cp examples/shinka/{evaluate.py,config.yaml} "$work/initial.cu" "$work/task/"
    "$python" -m shinka.cli.run --task-dir "$work/task" --config-fname config.yaml --results_dir "$work/out" \
        --num_generations 10 --set 'evo.llm_models=["local/list@'"$url"'"]' >"$work/log" 2>&1 ||
        { tail -n 30 "$work/log"; return 1; }
    local generation
    for generation in "$work"/out/gen_*; do
        jq -c --rawfile code "$generation/main.cu" '{score: .combined_score, words: .text_feedback,
            tile: ($code | capture("// fa_bench: (?<tile>.*)").tile)}' "$generation/results/metrics.json"
    done >"$work/all"
    right_end "$work/all"
    grep -q '^// fa_bench: --m 64 --warps 4$' "$work/out/best/main.cu"
    grep -q 'Right on the emulator' "$work/prompts"
    grep -q 'seq 64' "$work/prompts"
    run ! grep -q 'seq 37' "$work/prompts"
}

@test "a search by rules: right edits score, bad ones have 0, each with its words; the curve never falls" {
    [ "$(studies/search_by_rules.py --make '')" = "$(<examples/plain.cu)" ]
    studies/search_by_rules.py --seconds 30 --jobs 2 --seed 2 --json "$work/curve" -- --stages emulator --score emulator
    jq -e '(.curve | map(.best)) as $best | $best == ($best | sort) and .curve[0].edits == "m=64 lanes=1" and
        .first == 1 and .best == 1 and (.curve | length == (unique_by(.edits) | length))' "$work/curve"
    jq -e '[.curve[] | select(.edits | test("bad|4096")) | .score] | length >= 1 and all(. == 0)' "$work/curve"
    jq -e '[.curve[] | select(.edits | test("bad|4096") | not) | .score] | length >= 2 and all(. == 1)' "$work/curve"
    echo 'public emulator --batch 1 --heads 2 --seq 33 --dim 64' >"$work/p"
    local edits
    for edits in 'lanes=4 registers vector skip fast_exp unroll' 'lanes=8 m=32'; do
        studies/search_by_rules.py --make "$edits" >"$work/k.cu"
        scripts/evaluate.sh "$work/k.cu" --problems "$work/p" --stages emulator --score emulator >"$work/score"
        jq -e .correct "$work/score"
    done
}
