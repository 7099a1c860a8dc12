#!/usr/bin/env bats
# scripts/evaluate.sh: one score for one file; every way to fail is an answer of its own.
load half_gpu

# Small problems.
prepare() {
    cat >"$work/p" <<'END'
public emulator --batch 1 --heads 2 --seq 33 --dim 16
hidden emulator --batch 1 --heads 1 --seq 7 --seq-kv 50 --dim 16
public gpu --batch 2 --heads 2 --seq 64 --dim 16
hidden gpu --batch 1 --heads 2 --seq 100 --dim 16
END
}
edited() { # SED-PROGRAM: plain.cu, edited, in a folder of its own
    sed "$1" examples/plain.cu >"$work/k.cu"
    run ! cmp -s examples/plain.cu "$work/k.cu"
}
evaluate() { # OPTIONS...: the score in $work/score, valid
    scripts/evaluate.sh "$work/k.cu" --problems "$work/p" --fresh "$@" >"$work/score"
    keep_for_schema "$work/score"
}
score_holds() { # EXPRESSION...
    record_holds "$work/score" "$@"
}

@test "problems that the candidate's needs leave out do not count, and the score shows what it needs" {
    echo 'public emulator --batch 1 --heads 4 --kv-heads 2 --seq 20 --dim 16' >>"$work/p"
    edited '/^FA_KERNEL_INFO/i // FA_NEEDS: packed mha self'
    evaluate --stages emulator --score emulator
    score_holds '.status == "pass" and .combined_score == 1 and .needs == ["packed", "mha", "self"] and .serves == []' \
        '.stages.emulator | .runs == 5 and .asked == 5' '.public | .passed == 5 and .failed == 0 and .skipped == 5' \
        '.private | .passed == 0 and .skipped == 5' '.text_feedback | test("needs packed, mha, self, .* 10 runs")' \
        'all(.public.results[]; .status == "skipped" and (.reason | test("needs a K/V head")))' \
        '.text_feedback | test("as many keys") | not'
    grep -v -e '--seq 33' "$work/p" >"$work/q"
    evaluate --stages emulator --score emulator --problems "$work/q"
    score_holds '.status == "not_run" and .correct == null and .combined_score == null' \
        '.stages.emulator | .status == "not_run" and .reason == "the candidate needs other problems than these"'
    sed -i 's/s \*= p.scale;/s *= 0.5f;/' "$work/k.cu" # needs excuse nothing else
    evaluate --stages emulator --score emulator
    score_holds '.status == "wrong" and .combined_score == 0'
}

@test "inside the noise is not an improvement; too few samples for an interval say nothing of one" {
    make_half_gpu
    edited 's|^// fa_bench: .*|// fa_bench: --m 64 --warps 4|'
    echo 5 >"$STUB/noise"
    evaluate --stages compile,gpu
    score_holds '.status == "pass" and .improved == false and .aa_noise == 5' \
        '.text_feedback | test("Not an improvement")' '.stages.emulator.reason == "not asked for"'
    touch "$STUB/few"
    evaluate --incumbent light --stages compile,gpu
    score_holds '.status == "pass"' '(.combined_score - 5) * 1e6 | fabs < 1' \
        '.improved == null and .ratio_ci95 == null and .aa_noise == null' '.text_feedback | test("too few samples")'
}

@test "the second time it comes from the cache; another include, problem or option is another evaluation" {
    make_half_gpu
    cp tests/cheats/honest.cu "$work/k.cu"
    cp tests/cheats/honest.cuh "$work/"
    echo "// $work" >>"$work/k.cu" # no earlier run of this test has evaluated it
    evaluate --stages gpu
    [ "$(wc -l <"$STUB/commands")" -eq 1 ]
    again() { scripts/evaluate.sh "$work/k.cu" --problems "$work/p" --stages gpu "$@" >"$work/score"; }
    again
    score_holds '.cache == true and .status == "pass"'
    cp "$work/k.cu" "$work/other_name.cu" # drivers use temporary names
    scripts/evaluate.sh "$work/other_name.cu" --problems "$work/p" --stages gpu | jq -e .cache
    [ "$(wc -l <"$STUB/commands")" -eq 1 ]
    echo '// changed' >>"$work/honest.cuh"
    again
    score_holds '.cache == false'
    again --fresh -- --m 32
    score_holds '.cache == false'
    echo '# changed' >>"$work/p"
    again -- --m 32
    score_holds '.cache == false'
    [ "$(wc -l <"$STUB/commands")" -eq 4 ]
    mkdir "$work/tree" # a header of kernels/ changes in a tree of its own
    cp -r kernels include scripts "$work/tree"
    score_of() { "$work/tree/scripts/evaluate.sh" "$work/k.cu" --problems "$work/p" --stages gpu >"$work/score"; }
    score_of
    score_of
    score_holds '.cache == true'
    echo '// changed' >>"$work/tree/kernels/shared/prims.cuh"
    score_of
    score_holds '.cache == false'
}

@test "wrong: the first wrong element and its pattern; nothing is compiled or timed after that" {
    make_half_gpu
    edited 's/s \*= p.scale;/s *= p.scale * 1.02f;/'
    evaluate
    score_holds '.status == "wrong" and .correct == false and .combined_score == 0' '.stages.emulator.runs == 1' \
        '.stages.gpu == {status: "not_run", reason: "an earlier stage failed", runs: 0, asked: 0}' \
        '.text_feedback | test("Wrong on the emulator with --batch 1") and test("batch 0 head") and test("looks like")'
    score_holds '.public.results[0] | has("fault") | not'
    run ! grep -q -- '--vs' "$STUB/commands"
}

@test "wrong on a hidden problem: 0, and nothing of the problem is told" {
    edited 's/const int keys = /const int keys = p.seq_kv == 50 ? 49 : /'
    evaluate
    score_holds '.status == "wrong" and .combined_score == 0' '.stages.emulator.reason == "on a hidden problem"' \
        '.text_feedback | test("hidden problem") and (test("seq") | not)' \
        '.public | tostring | test("seq-kv 50") | not' '.private.results[0] | .options | test("seq-kv 50")'
}

@test "a race that does no harm is wrong, with the lines; compilers and GPU, at work beside, do not count then" {
    make_half_gpu
    sed -i '2r /dev/stdin' "$FA_BENCH" <<'END'
comes() { for ((i = 0; i < 400; i++)); do [[ ! -e $STUB/$1 ]] || return 0; sleep 0.05; done; exit 6; }
[[ $* != *--runs*--compile-only* ]] || touch "$STUB/compiles"
[[ $* != *"--vs light"* ]] || touch "$STUB/times"
[[ $* != *"--seeds 2 --device emu"* ]] || comes compiles
[[ $* != *--race* ]] || comes times
END
    cp tests/cheats/honest.cuh "$work/"
    cp tests/cheats/honest.cu "$work/k.cu"
    evaluate --incumbent light -- --m 32
    score_holds '.status == "pass"' '[.stages[] | .runs] == [10, 2, 2]'
    rm "$STUB"/{compiles,times}
    sed -i '/^    const place at/i\
    __shared__ float one_s[FA_M];\
    one_s[threadIdx.x] = 1.0f;\
    if (one_s[(threadIdx.x + FA_M - 1) % FA_M] == 2.0f)\
        return;' "$work/k.cu"
    evaluate --incumbent light -- --m 32
    score_holds '.status == "wrong"' '.text_feedback | test("race") and test("data race") and test("k.cu:[0-9]+")' \
        '[.stages[] | .asked] == [10, 0, 0]' '.stages.gpu.reason == "an earlier stage failed"'
}

@test "the score by the static bound needs no GPU" {
    make_half_gpu
    touch "$STUB/no_gpu"
    echo 8 >"$STUB/bound"
    edited 's|^// fa_bench: .*|// fa_bench: --m 64 --warps 2|'
    evaluate --score bound --stages compile --incumbent light:m=64,warps=4
    score_holds '.status == "pass" and (.combined_score - 2.5) * 1e6 < 1' '.public.results[0].bound_us == 8' \
        '.text_feedback | test("cannot be faster than 8 us: tensor binds")'
    grep -q -- '--kernel light --m 64 --warps 4 --compile-only' "$STUB/commands"
}

@test "without --incumbent a default that serves the problems' features" {
    echo 'public gpu --batch 1 --heads 2 --seq 64 --page-size 16' >"$work/p"
    cp tests/features/plain.cu "$work/k.cu"
    evaluate --stages emulator --score emulator
    score_holds '.incumbent == "mma"'
}

@test "the incumbent can be a file, which brings its tile; also where the bound is the score" {
    make_half_gpu
    edited 's|^// fa_bench: .*|// fa_bench: --m 32 --warps 4|'
    cp "$work/k.cu" "$work/old.cu"
    edited 's|^// fa_bench: .*|// fa_bench: --m 64 --warps 4|'
    evaluate --incumbent "$work/old.cu" --stages gpu
    score_holds '.status == "pass"' '.incumbent | endswith("/old.cu:m=32,warps=4")'
    grep -q -- "--vs source:$work/old.cu:m=32,warps=4 " "$STUB/commands"
    refused 2 "no file '$work/none.cu'" scripts/evaluate.sh "$work/k.cu" --incumbent "$work/none.cu"
    echo 10 >"$STUB/bound"
    evaluate --incumbent "$work/old.cu:m=16" --score bound --stages compile
    score_holds '.combined_score == 2'
    grep -q -- "--source $work/old.cu --m 16 --compile-only" "$STUB/commands"
}

@test "a failure on the GPU alone is a failure" {
    make_half_gpu
    echo error >"$STUB/status"
    edited 's|^// fa_bench: .*|// fa_bench: --m 64 --warps 2|'
    evaluate --stages gpu
    score_holds '.status == "error" and .combined_score == 0' '.text_feedback | test("Broken") and test("on the GPU")'
}

@test "a candidate sets its tile and nothing else" {
    edited 's|^// fa_bench: .*|// fa_bench: --m 64 --atol 2|'
    evaluate
    score_holds '.status == "infeasible"' '.text_feedback | test("takes tile options")'
    edited 's|^// fa_bench: .*|// fa_bench: --m 5000|'
    evaluate
    score_holds '.status == "infeasible"' '.text_feedback | test("1 to 1024") and (test("ended after") | not)'
}

@test "a compiler that quotes the list of problems says nothing of the hidden ones, nor colours a terminal" {
    printf '%s\n' 'hidden emulator --seq 7  --dim 16' 'public emulator --batch 1 --heads 2 --seq 33 --dim 16' >"$work/p"
    { printf '#include "p"\n'; cat examples/plain.cu; } >"$work/k.cu"
    evaluate
    score_holds '.status == "compile_error" and (.private.results == [])' \
        '.text_feedback | test("p.1.: error") and test("a line that names a hidden problem")'
    run ! grep -e '--seq 7' "$work/score"
    { printf '#error \033[31m\342\200\256%05000d\n' 0; cat examples/plain.cu; } >"$work/k.cu"
    evaluate
    score_holds '.text_feedback | test("k.cu.1.*#error directive: .31m0000") and
        (explode | all(. == 10 or . >= 32 and . != 8238))'
}

@test "two at once, and a cache that cannot be written: a score all the same; what is no score is not taken" {
    echo 'public emulator --batch 1 --heads 1 --seq 9 --dim 16' >"$work/p"
    sed 's|^// fa_bench: .*|&\r|' examples/plain.cu >"$work/k.cu" # of an editor that writes CR
    local command=(scripts/evaluate.sh "$work/k.cu" --problems "$work/p" --score emulator --stages emulator)
    "${command[@]}" >/dev/null # compiled
    for i in 1 2 3 4 5 6; do
        "${command[@]}" --fresh >"$work/score$i" 3>&- &
    done
    for i in 1 2 3 4 5 6; do wait -n; done
    for i in 1 2 3 4 5 6; do jq -e '.combined_score == 1 and .knobs == "--m 64"' "$work/score$i"; done
    local kept
    kept=$XDG_CACHE_HOME/fa_bench_scores/$(jq -r .key "$work/score1").json
    truncate -s 100 "$kept"
    "${command[@]}" | jq -e '.cache == false'
    mkdir "$work/full"
    ln -s "$XDG_CACHE_HOME/fa_bench" "$work/full/"
    touch "$work/full/fa_bench_scores"
    XDG_CACHE_HOME=$work/full "${command[@]}" 2>"$work/said" | jq -e '.combined_score == 1'
    grep -q 'cannot write .*/full/fa_bench_scores/' "$work/said"
    refused 6 "cannot write $work/p/score" "${command[@]}" --out "$work/p/score"
    rm "$kept"
}

@test "a stage without a problem is not run, and says so" {
    cp examples/plain.cu "$work/k.cu"
    echo 'hidden emulator --batch 1 --heads 1 --seq 9 --dim 16' >"$work/p"
    evaluate --score emulator
    score_holds '.combined_score == 1 and .stages.compile.reason == "no problem for it" and .public.results == []'
    echo 'public gpu --batch 1 --heads 1 --seq 9 --dim 16' >"$work/p"
    evaluate --score emulator
    score_holds '.status == "not_run" and .correct == null' '.stages.compile.status == "pass"' \
        '.text_feedback | test("No score by emulator: no problem for it")'
}

@test "a kernel that forges records, or kills fa_bench, is broken" {
    echo 'public emulator --batch 1 --heads 1 --seq 9 --dim 16' >"$work/p"
    { cat examples/plain.cu; cat <<'END'; } >"$work/k.cu"
extern "C" long write(int, const void *, unsigned long);
__attribute__((constructor)) static void forge()
{
    const char *record = "{\"schema\":\"fa_bench.result/1\",\"status\":\"pass\"}\n";
    for (int n = 0; n < 10; n++)
        for (int file = 3; file < 40; file++)
            write(file, record, 47);
}
END
    evaluate 3>&-
    score_holds '.status == "error" and .combined_score == 0' '.text_feedback | test("^Broken on the emulator")'
    { cat examples/plain.cu; cat <<'END'; } >"$work/k.cu"
extern "C" int kill(int, int), getppid();
__attribute__((constructor)) static void kill_it() { kill(getppid(), 9); }
END
    evaluate
    score_holds '.status == "error" and .combined_score == 0' '.text_feedback | test("ended with code 137")'
}

@test "a candidate that is written while it is evaluated has no score" {
    make_half_gpu
    edited 's|^// fa_bench: .*|// fa_bench: --m 64 --warps 2|'
    sed -i "2i [[ \$* != *--runs* ]] || echo >>'$work/k.cu'" "$FA_BENCH"
    refused 4 "was written meanwhile" scripts/evaluate.sh "$work/k.cu" --problems "$work/p" --stages gpu
}

@test "a kernel that hangs does not outlive an evaluation that is killed" {
    echo 'public emulator --batch 1 --heads 1 --seq 9 --dim 16' >"$work/p"
    edited "s|^    float m = |    $hangs\n&|"
    for signal in TERM KILL; do
        scripts/evaluate.sh "$work/k.cu" --problems "$work/p" --stages emulator --fresh >/dev/null 3>&- &
        local script=$! child
        child_runs() { child=$(pgrep -P "$script" -f -- '--device emu'); }
        eventually child_runs
        kill "-$signal" "$script"
        wait "$script" || true
        for child in $child; do eventually is_gone "$child"; done
    done
}

@test "a candidate that the emulator does not take has 0 in a search, with the words" {
    edited '1i #define fa_params other'
    evaluate
    score_holds '.status == "not_run" and .combined_score == null' \
        '.text_feedback | test("emulator does not take this")'
    mkdir "$work/openevolve"
    printf '%s\n' 'class EvaluationResult:' '    def __init__(self, metrics, artifacts):' \
        '        self.metrics, self.artifacts = metrics, artifacts' >"$work/openevolve/evaluation_result.py"
    export FA_EVALUATE="--problems $work/p"
    python3 examples/shinka/evaluate.py --program_path "$work/k.cu" --results_dir "$work/r"
    jq -e '.correct == false and (.error | test("emulator does not take this"))' "$work/r/correct.json"
    jq -e '.combined_score == 0 and (.text_feedback | test("emulator does not take this"))' "$work/r/metrics.json"
    PYTHONPATH=$work:examples/openevolve python3 -c 'import evaluator, sys
result = evaluator.evaluate(sys.argv[1])
assert result.metrics == {"combined_score": 0.0, "correct": 0.0}, result.metrics
assert "emulator does not take this" in result.artifacts["feedback"]' "$work/k.cu"
}

@test "without a home there is a score, and no cache" {
    printf 'public emulator --batch 1 --heads 1 --seq 9 --dim 16\n' >"$work/p"
    env -u HOME -u XDG_CACHE_HOME scripts/evaluate.sh examples/plain.cu --problems "$work/p" --stages emulator \
        --score emulator >"$work/score"
    score_holds '.combined_score == 1' '.cache | not'
}

@test "usage: what is missing or no problem is named" {
    refused 2 "takes one CANDIDATE" scripts/evaluate.sh
    refused 2 "no file 'nowhere.cu'" scripts/evaluate.sh nowhere.cu
    refused 2 "--score takes speed" scripts/evaluate.sh examples/plain.cu --score beauty
    echo 'secret gpu --dim 64' >>"$work/p"
    refused 2 "not a problem in line 5" scripts/evaluate.sh examples/plain.cu --problems "$work/p"
    : >"$work/empty"
    refused 2 "no problem in $work/empty" scripts/evaluate.sh examples/plain.cu --problems "$work/empty"
    printf '\377\0\n' >"$work/binary"
    refused 2 "not a problem in line 1" scripts/evaluate.sh examples/plain.cu --problems "$work/binary"
    refused 2 "--source is this script's own" scripts/evaluate.sh examples/plain.cu -- --m 32 --source "$work/k.cu"
    refused 2 "--help is this script's own" scripts/evaluate.sh examples/plain.cu -- --help
    refused 2 "no kernel 'nope'" scripts/evaluate.sh examples/plain.cu --problems "$work/p" --incumbent nope --fresh
    echo 'public gpu --seq 9 --dim 16' >"$work/p"
    refused 2 "--incumbent: m in --vs takes" scripts/evaluate.sh examples/plain.cu --problems "$work/p" \
        --stages emulator --incumbent light:m=abc --fresh
    printf 'public emulator --seq 9 --device=cuda\n' >"$work/p"
    refused 2 "--device is this script's own" scripts/evaluate.sh examples/plain.cu --problems "$work/p"
    printf 'public gpu --seq 9 --sanitize address\n' >"$work/p"
    make_half_gpu
    sed -i "2i [[ \$* != *--runs* ]] || { jq -nc '{status: \"usage\", reason: \"why\"}'; exit 2; }" "$FA_BENCH"
    refused 2 "fa_bench refuses a run: why" scripts/evaluate.sh examples/plain.cu --problems "$work/p" --stages gpu
    export FA_BENCH=./fa_bench
    printf 'public emulator --what 7\n' >"$work/p"
    refused 2 "a run of emulator: unknown option --what" scripts/evaluate.sh examples/plain.cu --problems "$work/p"
    refused 2 "--incumbent: no kernel 'nope'" scripts/evaluate.sh examples/plain.cu --incumbent nope:m=32 \
        --stages emulator
    printf 'public emulator --dim 7\n' >"$work/p"
    refused 2 "--dim takes" scripts/evaluate.sh examples/plain.cu --problems "$work/p" --stages emulator
}

@test "progress is shown on a terminal alone, and taken away" {
    local one=(scripts/evo_test_one.sh 16 4 8 --source examples/plain.cu -- "${small[@]}")
    "${one[@]}" 2>"$work/err"
    [ ! -s "$work/err" ]
    script -qec "${one[*]}" /dev/null >"$work/seen"
    grep -q $'\r\033\[Kevo_test_one.sh: compiling, checking and timing source:examples/plain.cu \r\033\[K' "$work/seen"
    [ "$(tail -n 1 "$work/seen" | tr -d '\r' | sed 's/.*\x1b\[K//' | cut -d' ' -f1)" = M=16 ]
}

# bats file_tags=slow
@test "a right kernel: proven, compiled, timed against the incumbent; the ratio with its interval and noise" {
    make_half_gpu
    edited 's|^// fa_bench: .*|// fa_bench: --m 64 --warps 4|'
    evaluate --incumbent light
    score_holds '.status == "pass" and .correct and .score_by == "speed" and .device.name == "NVIDIA Half"' \
        '(.combined_score - 5) * 1e6 | fabs < 1' '.improved' '.knobs == "--m 64 --warps 4"' '.incumbent == "light"' \
        '.ratio_ci95[0] > 4.9 and .ratio_ci95[1] < 5.1 and .aa_noise == 0.002' \
        '[.stages[] | .status] == ["pass", "pass", "pass"]' '.stages.emulator.runs == 10' \
        '.public.results | map(.stage) == ["compile", "gpu"]' '.private.results | map(.stage) == ["compile", "gpu"]' \
        '.text_feedback | test("ratio 5 ") and test("registers a thread") and test("race detector")' \
        '.text_feedback | test("seq 100") | not'
    grep -q -- '--vs light' "$STUB/commands"
}

@test "infeasible, broken, timed out and not run are different answers" {
    edited 's/FA_M <= 1024/FA_M <= 1/'
    evaluate
    score_holds '.status == "infeasible" and .combined_score == 0' \
        '.text_feedback | test("M is the threads of a block")'

    edited 's/float m = /float m = nonsense + /'
    evaluate
    score_holds '.status == "compile_error"' '.text_feedback | test("identifier \"nonsense\" is undefined")'

    edited 's|^    float m = |    *(volatile int *)8 = 1;\n&|'
    evaluate
    score_holds '.status == "wrong" and .correct == false' '.public.results[0].fault == "illegal address"'

    edited "s|^    float m = |    $hangs\n&|"
    evaluate -- --timeout 3
    score_holds '.status == "timeout" and .combined_score == 0' '.text_feedback | test("killed after 3 s")'

    make_half_gpu
    touch "$STUB/no_gpu"
    edited 's|^// fa_bench: .*|// fa_bench: --m 64 --warps 2|'
    evaluate
    score_holds '.status == "not_run" and .correct and .combined_score == null' '.text_feedback | test("no GPU")'
    evaluate --score emulator --stages emulator
    score_holds '.status == "pass" and .combined_score == 1 and .score_by == "emulator"'
}
