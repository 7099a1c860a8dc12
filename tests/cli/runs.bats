#!/usr/bin/env bats
# --runs: many runs in one process, a record for each as if it had been alone.
load helper

one=("${small[@]}" --check cpu)

# NAME CODE: a kernel with CODE where the loop over keys begins; the cache knows it by its contents, so they are its own
body() {
    sed "s|^    float m = |    /* $1 of runs.bats */ $2\n&|" examples/plain.cu >"$work/$1.cu"
}

# One kernel for every bad end, by its scale: compiled once. With no such scale it is right.
bad_kernel() {
    local dies='if (p.scale == 20) *(volatile int *)8 = 1;'
    local waits='if (p.scale == 30) { if (threadIdx.x % 2) __syncthreads(); else __syncwarp(); }'
    body bad "if (p.scale == 10) { $hangs } $dies $waits"
    hang="--source $work/bad.cu --scale 10" crash="--source $work/bad.cu --scale 20"
    dead="--source $work/bad.cu --scale 30"
}

# The child that has loaded a kernel of bad_kernel.
hanging_child() { # PID
    local child
    for child in $(pgrep -P "$1"); do
        grep -qF 'bad of runs.bats' "$(loaded_source "$child")" && echo "$child" && return
    done
    return 1
}

has_children() { # PID COUNT
    [[ $(pgrep -c -P "$1") -eq $2 ]]
}

# Every line a record that the schema takes, and the jq expression true of all of them.
records_hold() { # FILE COUNT EXPRESSION...
    local file=$1 count=$2 line
    shift 2
    [[ $(wc -l <"$file") -eq $count ]] || { echo "$(wc -l <"$file") lines, not $count"; cat "$file"; return 1; }
    keep_for_schema "$file"
    for line in "$@"; do
        jq -es "$line" "$file" >/dev/null || {
            echo "not true of $file: $line"; jq -c '[.status, .kernel, .reason]' "$file"
            return 1
        }
    done
}

@test "several lines, comments and blanks between: a record each, in order" {
    printf '%s\n' '# a list' '' '--kernel light' '  --kernel scalar --causal ' "--source 'examples/plain.cu' --m 16" \
        >"$work/list"
    run -0 ./fa_bench --runs "$work/list" "${one[@]}" --json "$work/r.jsonl"
    [ "$(grep -c '^check     PASS' <<<"$output")" -eq 3 ]
    records_hold "$work/r.jsonl" 3 'all(.[]; .status == "pass" and .device.backend == "emu")' \
        'map(.kernel) == ["light", "scalar", "plain"]' 'map(.provenance.line) == [3, 4, 5]' \
        'map(.problem.causal) == [false, true, false]' '.[2].config.m == 16'
}

@test "a record is the single run's" {
    printf -- '--kernel scalar --causal\n--kernel light\n' >"$work/list"
    ./fa_bench --runs "$work/list" "${one[@]}" --json "$work/r.jsonl" --quiet
    ./fa_bench --kernel light "${one[@]}" --json "$work/r.json" --quiet
    local same='del(.provenance | .time, .line, .command, .stage_s, .compile_s, .cache_hit)'
    diff <(tail -n 1 "$work/r.jsonl" | jq "$same") <(jq "$same" "$work/r.json")
    # The command of the record does the run alone.
    [ "$(tail -n 1 "$work/r.jsonl" | jq -r .provenance.command)" = "fa_bench ${one[*]} --quiet --kernel light" ]
}

@test "infeasible, crashing, hanging and deadlocked runs in the middle: the others go on, nothing twice" {
    bad_kernel
    ./fa_bench --source "$work/bad.cu" "${one[@]}" --quiet # compiled, so that the time goes by while it hangs
    printf '%s\n' '--kernel light' '--kernel light --stages 7' "$crash" '--kernel light --seed 1' \
        "$hang --timeout 3" '--kernel light --seed 2' "$dead" '--kernel light --vs scalar' \
        '--kernel light --compile-only' '--kernel light --seed 3' >"$work/list"
    run -3 ./fa_bench --runs "$work/list" "${one[@]}" --json "$work/r.jsonl" --quiet
    records_hold "$work/r.jsonl" 10 \
        'map(.status) | join(" ") == "pass infeasible wrong pass timeout pass wrong not_run pass pass"' \
        '.[1] | .check == null and (.reason | test("STAGES"))' '.[2].reason | test("signal 11|address")' \
        '.[4].reason | test("3 s while checking")' 'map(.provenance.line) == [range(1; 11)]' \
        'map(select(.status == "pass") | .provenance.seed) == [42, 1, 2, 42, 3]'
}

@test "a child that is killed costs the run in flight alone" {
    bad_kernel
    printf '%s\n' '--kernel light' "$hang --timeout 600" '--kernel scalar' >"$work/list"
    ./fa_bench --runs "$work/list" --jobs 3 "${one[@]}" --json "$work/r.jsonl" --quiet 2>"$work/err" 3>&- &
    parent=$!
    eventually hanging_child $parent
    kill -9 "$(hanging_child $parent)"
    exits 6 wait $parent
    records_hold "$work/r.jsonl" 3 'map(.status) == ["pass", "error", "pass"]' '.[1].reason | test("signal 9")'
}

# Several at a time: nothing of a record but its times, and what was in the cache, depends on --jobs.
@test "--jobs: records and text in the order of the list, the same as one by one" {
    bad_kernel
    printf '%s\n' "--source $work/bad.cu --seq 200" '--kernel light' "$crash" '--kernel light --stages 7' \
        "$hang --timeout 5" '--kernel scalar --causal' '--kernel wmma --compile-only' '--kernel light --select' \
        '--kernel scalar --seed 7' >"$work/list"
    local times='del(.provenance | .time, .stage_s, .compile_s, .cache_hit)'
    for jobs in 1 4; do
        exits 1 ./fa_bench --runs "$work/list" --jobs $jobs "${one[@]}" --json "$work/$jobs.jsonl" \
            >"$work/$jobs.out" 2>"$work/$jobs.err" # of the first that did not pass
        jq -c "$times" "$work/$jobs.jsonl" >"$work/$jobs.bare"
        sed -i 's/, [0-9.]* s\( (cached)\)*;/;/' "$work/$jobs.out"
    done
    keep_for_schema "$work/4.jsonl"
    diff "$work/1.bare" "$work/4.bare"
    diff "$work/1.out" "$work/4.out"
    diff "$work/1.err" "$work/4.err"
    jq -es 'map(.status) == ["pass", "pass", "wrong", "infeasible", "timeout", "pass", "pass", "pass", "pass"]' \
        "$work/4.jsonl"
    refused 2 "--jobs goes with --runs" ./fa_bench --jobs 2 "${one[@]}"
    refused 2 "--jobs on a line: it is about the whole list" ./fa_bench --runs - <<<'--jobs 2'
}

@test "--jobs: without it as many as there are cores; Ctrl-C, a signal and kill -9 leave no process" {
    bad_kernel
    ./fa_bench --source "$work/bad.cu" "${one[@]}" --quiet
    for ((i = 0; i < 8; i++)); do echo "$hang --timeout 600 --seed $i"; done >"$work/list"
    for signal in INT TERM KILL; do
        # bash starts what runs in the background with SIGINT ignored
        python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' ./fa_bench --runs "$work/list" "${one[@]}" --quiet 2>/dev/null 3>&- &
        parent=$!
        cores=$(nproc)
        eventually has_children $parent $((cores < 8 ? cores : 8))
        mapfile -t children < <(pgrep -P $parent)
        kill -$signal $parent
        wait $parent || true
        for child in "${children[@]}"; do eventually is_gone "$child"; done
    done
}

@test "--stream --jobs: a line that comes is begun beside the others, its record waits for theirs" {
    bad_kernel
    ./fa_bench --source "$work/bad.cu" "${one[@]}" --quiet
    mkfifo "$work/feed"
    exec {feed}<>"$work/feed"
    ./fa_bench --runs "$work/feed" --stream --jobs 2 "${one[@]}" --quiet --json "$work/r.jsonl" 2>"$work/err" 3>&- &
    parent=$!
    echo "$hang --timeout 600" >&"$feed"
    eventually hanging_child $parent
    printf '%s\n' '--kernel light' '--kernel scalar' '--m 0' >&"$feed"
    eventually has_children $parent 2
    [ ! -s "$work/r.jsonl" ]
    kill -9 "$(hanging_child $parent)"
    exits 2 wait $parent # the refused line ends the list
    grep -q "feed line 4: --m takes a whole number" "$work/err"
    records_hold "$work/r.jsonl" 3 'map(.status) == ["error", "pass", "pass"]' 'map(.provenance.line) == [1, 2, 3]'
}

@test "a bad line is refused with its number before anything runs or is written" {
    echo old >"$work/r.jsonl"
    printf '%s\n' '--kernel light' '' '--m 0' >"$work/list"
    refused 2 "$work/list line 3: --m takes a whole number from 1 to 1024" ./fa_bench --runs "$work/list" "${one[@]}" \
        --json "$work/r.jsonl"
    printf '%s\n' '--kernel light' '--kernel nope' >"$work/list"
    refused 2 "$work/list line 2: " ./fa_bench --runs "$work/list" "${one[@]}" --json "$work/r.jsonl"
    refused 2 "standard input line 1: --device on a line: the device is opened once" ./fa_bench --runs - \
        --json "$work/r.jsonl" <<<'--device emu'
    refused 2 "--runs takes - or a file that can be read" ./fa_bench --runs "$work/none" --json "$work/r.jsonl"
    [ "$(cat "$work/r.jsonl")" = old ]
}

@test "lines from standard input, records alone on standard output" {
    printf '%s\n' '--kernel light' '--kernel scalar' | ./fa_bench --runs - "${one[@]}" --json - >"$work/r.jsonl" \
        2>"$work/err"
    records_hold "$work/r.jsonl" 2 'map(.kernel) == ["light", "scalar"]'
    [ "$(grep -c '^check     PASS' "$work/err")" -eq 2 ]
}

@test "a list that grows: a run begins when its line has come, and the next line may depend on its record" {
    mkfifo "$work/feed" "$work/records"
    exec {records}<>"$work/records" {feed}<>"$work/feed" # both ends: if it fails, nothing here waits for ever
    ./fa_bench --runs "$work/feed" --stream "${one[@]}" --quiet --json - <&- >"$work/records" 2>"$work/err" 3>&- &
    bench=$!
    echo '--kernel light' >&"$feed"
    read -r -t 300 first <&"$records"
    jq -e '.kernel == "light" and .status == "pass"' <<<"$first"
    echo "--source examples/plain.cu --define WORD=1 --seed $(jq .check.seeds <<<"$first")" >&"$feed"
    read -r -t 300 second <&"$records"
    jq -e '.kernel == "plain" and (.provenance.command | test("--define WORD=1 --seed 1"))' <<<"$second"
    jq -e '.provenance.command | test("--stream|--runs") | not' <<<"$second"
    echo '--m 0' >&"$feed"
    exits 2 wait "$bench"
    grep -q "feed line 3: --m takes a whole number" "$work/err"
    refused 2 "--stream goes with --runs" ./fa_bench --stream "${one[@]}"
}

# The bench sleeps, here until its list can be read, or has ended.
waits() { # PID
    is_gone "$1" || [[ $(cut -d' ' -f2,3 "/proc/$1/stat") == "(fa_bench) S" ]]
}

@test "a list that grows: the pipe's writer is waited for" {
    mkfifo "$work/feed"
    ./fa_bench --runs "$work/feed" --stream "${one[@]}" --quiet --json "$work/r.jsonl" 2>"$work/err" 3>&- &
    bench=$!
    eventually waits "$bench"
    ! is_gone "$bench" || { cat "$work/err"; return 1; }
    printf '%s\n' '--kernel light' '--kernel scalar' >"$work/feed"
    wait "$bench"
    records_hold "$work/r.jsonl" 2 'map(.kernel) == ["light", "scalar"]'
}

@test "a record that cannot be written ends it" {
    code=0
    printf '%s\n' '--kernel light' '--kernel light' | ./fa_bench --runs - "${one[@]}" --quiet --json /dev/full \
        2>"$work/err" || code=$?
    [ "$code" -eq 6 ]
    [ "$(grep -c 'cannot write the record: No space left' "$work/err")" -eq 1 ]
}

@test "several values: a run for each combination, each as if it had been alone; on a line, too" {
    ./fa_bench --kernel light,scalar --seq 16:32:x2 --dim=16,32 --device emu --batch 1 --heads 1 --seeds 1 --check cpu \
        --quiet --jobs 3 --json "$work/r.jsonl"
    records_hold "$work/r.jsonl" 8 'map([.kernel, .problem.seq_q, .problem.dim]) ==
        [["light", "scalar"] as $k | $k[] as $n | (16, 32) as $s | (16, 32) as $d | [$n, $s, $d]]' \
        'all(.[]; .status == "pass")' 'map(.provenance.line) == [range(1; 9)]' \
        '.[7].provenance.command == "fa_bench --kernel scalar --seq 32 --dim=32 --device emu --batch 1 --heads 1 " +
            "--seeds 1 --check cpu --quiet"'
    ./fa_bench --seq 16:16 --select --quiet --json "$work/r.jsonl" # one run, JSON Lines all the same
    [ "$(wc -l <"$work/r.jsonl")" -eq 1 ]
    [ "$(./fa_bench --softcap 0:1:0.25 --seq 1:100:x3.5,7 --select | grep -c '^problem ')" -eq 25 ] # 1 3 12 42, 7
    printf '%s\n' "--seq 16,24 --define \"AA_OF_TEST='b c'\"" '--seq 8' |
        ./fa_bench --runs - "${one[@]}" --stream --quiet --json - >"$work/r.jsonl"
    records_hold "$work/r.jsonl" 3 'map([.problem.seq_q, .provenance.line]) == [[16, 1], [24, 1], [8, 2]]' \
        '.[1].provenance.command | contains("b c")'
}

@test "several values: what cannot be is refused before anything runs" {
    refused 2 "with --seq 3 --dim 20: --dim takes a multiple of 8" ./fa_bench --seq 3,5 --dim 16,20 --json "$work/no"
    [ ! -e "$work/no" ]
    refused 2 "--device takes one value for all runs" ./fa_bench --device emu,cuda
    refused 2 "--jobs takes one value for all runs" ./fa_bench --jobs 1,2 --seq 1,2
    refused 2 "more than 10000 runs" ./fa_bench --seq 1:200 --heads 1:100
    refused 2 "--cubin with several values" ./fa_bench --seq 1,2 --cubin "$work/no"
    refused 2 "with --runs, belong on its lines" ./fa_bench --seq 1,2 --runs - <<<'--dim 32'
    refused 2 "standard input line 1: --seq takes values and ranges" ./fa_bench --runs - <<<'--seq 5:1'
    refused 2 "'light:m=3'" ./fa_bench --kernel light:m=3
}

# Every preset is a problem that the bench can say, and what is given beside it wins, before it or after.
@test "presets: each is a problem; an option beside it wins; on a line of --runs" {
    names=$(sed -n 's/^FA_PRESET("\([^"]*\)".*/\1/p' src/input/presets.def | paste -sd,)
    ./fa_bench --preset "$names" --select --arch sm_90a >"$work/out"
    [ "$(grep -c '^problem ' "$work/out")" -eq "$(tr , '\n' <<<"$names" | wc -l)" ]
    [ "$(grep -c '^kernel    wmma ' "$work/out")" -eq 5 ] # the default, of dense problems alone
    [ "$(grep -c '^kernel    mma ' "$work/out")" -eq $(($(tr , '\n' <<<"$names" | wc -l) - 5)) ]
    grep -qF 'B=1 H=64 (K/V 8) S=8192 D=64 BF16 causal, window 127,0, sinks;' "$work/out"
    grep -qF 'B=64 H=128 (K/V 1) S=1 (K/V 4096) D=576/512 BF16 full, V in K, pages of 64 nhd' "$work/out"
    ./fa_bench --seq 40 --preset gpt-oss --heads 16 --select | grep -F "B=1 H=16 (K/V 8) S=40 D=64 BF16 causal, window"
    ./fa_bench --runs - --dim 32 --select <<<'--preset bert-large --seq 9' | grep -F "B=32 H=16 S=9 D=64 FP16 full"
    refused 2 "--preset takes one of llama-3-8b-prefill, " ./fa_bench --preset none
    refused 2 "--preset is given twice" ./fa_bench --preset bert-large --runs - <<<'--preset gpt-oss'
}

# Most memory, in KiB, of any process of a list of so many rounds (@: the round). The kernel counts it: no peak is lost.
peak_of() { # ROUNDS OPTION LINE...
    local i each=("${@:3}")
    for ((i = 1; i <= $1; i++)); do
        printf '%s\n' "${each[@]//@/$i}"
    done >"$work/list"
    python3 -c 'import resource, subprocess, sys
subprocess.call(sys.argv[2:], stderr=open(sys.argv[1], "w"))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$work/err" ./fa_bench --runs "$work/list" \
        "${one[@]}" --seq 9 --seq-kv 512 --dim 64 --quiet --json "$work/r.jsonl" "$2"
}

# More rounds hold at most 6 MiB more than fewer.
peak_stays() { # FEWER MORE OPTION LINE...
    local few many
    peak_of 1 "${@:3}" >/dev/null # compiles; the compiler holds more than any run
    few=$(peak_of "$1" "${@:3}")
    many=$(peak_of "$2" "${@:3}")
    lines "$work/r.jsonl" $(($2 * ($# - 3)))
    echo "$few KiB after $1 rounds, $many after $2"
    [ "$few" -gt 0 ]
    [ "$many" -le $((few + 6144)) ]
}

# bats file_tags=slow
@test "a sanitizer's finding is its run's alone" {
    body race 'p.tiles < 0 ? void() : void(); *(volatile float *)p.o = threadIdx.x;'
    printf '%s\n' '--kernel scalar' "--source $work/race.cu" '--kernel scalar --causal' >"$work/list"
    run -1 ./fa_bench --runs "$work/list" "${one[@]}" --race --quiet --json "$work/r.jsonl"
    records_hold "$work/r.jsonl" 3 'map(.status) == ["pass", "wrong", "pass"]' '.[1].reason | test("race")'
}

@test "the memory of a run is given back" {
    # Under AddressSanitizer: freed memory is kept back no longer than elsewhere.
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=1
    refused='--kernel light --vs scalar --seed @'
    # In one process: it decides what a process holds which runs it gets. 4 MiB of inputs and references are kept.
    peak_stays 5 35 --jobs=1 '--kernel light --seed @' '--kernel light --stages 7' "$refused"
    peak_stays 100 4000 --stream "$refused"
}

@test "without a cache: what a run builds is gone when it ends" {
    body hang "$hangs"
    mkdir "$work/tmp"
    : >"$work/cache"
    printf '%s\n' '--kernel light' '--kernel scalar' "--source $work/hang.cu --timeout 600" >"$work/list"
    XDG_CACHE_HOME=$work/cache TMPDIR=$work/tmp ./fa_bench --runs "$work/list" "${one[@]}" \
        --jobs 1 --quiet --json "$work/r.jsonl" 2>/dev/null 3>&- &
    parent=$!
    eventually child_runs $parent 'hang of runs.bats'
    lines "$work/r.jsonl" 2
    run grep -L "hang of runs.bats" "$work"/tmp/*/source.cu
    kill $parent
    wait $parent || true
    [ -z "$output" ]
    XDG_CACHE_HOME=$work/cache TMPDIR=$work/tmp2 bash -c 'mkdir "$TMPDIR"; ./fa_bench --kernel light "$@" --quiet' _ \
        "${one[@]}"
    [ -z "$(ls "$work/tmp2")" ]
}
