# shellcheck shell=bash disable=SC2154 # the names that evo_sweep.sh sets
# The workers of a sweep. Candidates come in on a pipe; a compiler takes one after the other, drops what is known or
# does not compile, and hands the rest to the runners of the GPUs. Each holds one fa_bench for as long as it lives
# (--runs - --stream): a process, and on a GPU a context, for every candidate would cost more than its measurement.
# Sourced by evo_sweep.sh: $kernel, $problem_options, $explore, $log, $work, $pool, $jobs, SWEEP_*, $protocol.

runners_per_gpu=3 # one is timed while the others load and check

# The bench of this worker: started when it is first asked, and again when it has died.
open_bench() { # OPTIONS...
    local name=$work/bench.$BASHPID
    rm -f "$name.in" "$name.out"
    mkfifo "$name.in" "$name.out"
    "$FA_BENCH" "$(kernel_flag "$kernel")" "${kernel#source:}" "${problem_options[@]}" "${explore[@]}" --no-bound "$@" \
        --runs - --stream --quiet --json - <"$name.in" >"$name.out" 2>/dev/null 7>&- 8>&- &
    exec {bench_in}>"$name.in" {bench_out}<"$name.out"
}
close_bench() {
    [[ -z ${bench_in:-} ]] || exec {bench_in}>&- {bench_out}<&-
    bench_in=''
}
ask_bench() { # KNOBS OPTIONS...: its record in $record; fails when the bench died over it
    local knobs=$1
    shift
    [[ -n ${bench_in:-} ]] || open_bench "$@"
    { knob_options "$knobs" >&"$bench_in"; } 2>/dev/null && IFS= read -r record <&"$bench_out" && return
    close_bench
    return 1
}
ask_twice() { # the same, and once more when the bench died: its death may have been no fault of the candidate
    ask_bench "$@" || ask_bench "$@"
}

lose() { # KNOBS WHY: an answer, too
    jq -nc --arg knobs "$1" --arg lost "$2" '{$knobs, $lost}' >&7
}

# The next line of a pipe that several workers read.
take_line() { # NAME OF THE LOCK
    local got=0
    flock 8
    IFS= read -r line || got=1
    flock -u 8
    return "$got"
} 8>>"$work/$1.lock"

# With --prune: whether the record of compiling says that the candidate is slower than the fastest so far.
is_pruned() { # RECORD
    [[ ${opt[prune]:-none} != none && -s $work/incumbent ]] &&
        jqf evo/pruned -e --arg by "${opt[prune]}" --argjson gpu "$gpu_facts" --slurpfile best "$work/incumbent" \
            <<<"$1" >/dev/null 2>&1
}

# Prints the line of a candidate that is known or does not run; the others go to the runners, with what compiling said.
compile_candidate() { # KNOBS
    local record text compiled status key known bound=()
    [[ ${opt[prune]:-none} == none ]] || bound=(--bound)
    ask_twice "$1" --compile-only --arch "$SWEEP_ARCH" "${bound[@]}" ||
        { lose "$1" "the worker of $1 died twice"; return; }
    { read -r text && read -r compiled && read -r status; } < <(jqf evo/compiled -rc \
        --arg more "$SWEEP_GPU $SWEEP_DRIVER $protocol $kernel $1 ${problem_options[*]} ${explore[*]}" \
        <<<"$record" 2>/dev/null) || { lose "$1" "no whole record of compiling $1"; return; }
    key=$(sha256sum <<<"$text")
    key=${key%% *}
    known=$(grep -F "\"key\":\"$key\"" "$log" 2>/dev/null | tail -n 1) || known=
    [[ -z $known ]] || known=$(jq -c '. + {known: true}' <<<"$known" 2>/dev/null) || known=
    if [[ -n $known ]]; then
        echo "$known" >&7
    elif [[ $status == pass ]] && is_pruned "$record"; then
        jq -nc --arg knobs "$1" '{$knobs, status: "pruned"}' >&7
    elif [[ $status == pass ]]; then
        echo "$1 $key $compiled"
    else
        answer "$1" "$key" "$compiled" "$record"
    fi
}

run_candidate() { # KNOBS KEY COMPILED
    local record
    ask_twice "$1" || { lose "$1" "the worker of $1 died twice"; return; }
    answer "$1" "$2" "$3" "$record"
}

# The line of the log. A time below the roofline is no result, and one from another kind of GPU is not ours.
answer() { # KNOBS KEY COMPILED RECORD
    local text
    text=$(jqf evo/result -c --arg kernel "$kernel" --arg key "$2" --arg knobs "$1" --arg gpu "$SWEEP_GPU" \
        --arg group "$SWEEP_GROUP" --argjson compiled "$3" <<<"$4" 2>/dev/null) || text=
    if [[ -n $text ]]; then
        echo "$text" >&7
    else
        lose "$1" "no whole record of $1 from this GPU"
    fi
}

# The first use of a GPU by a process takes up to a second. A runner has it behind it, with the probe's run, while the
# first candidates compile.
warm_up() {
    local record
    [[ $SWEEP_GPU != 'CPU emulator' && $kernel != source:* ]] || return 0
    open_bench
    { echo "--kernel $probe_kernel ${probe_options[*]}" >&"$bench_in" && IFS= read -r record <&"$bench_out"; } \
        2>/dev/null || close_bench
}

# A worker: each line of the pipe is the function's arguments, which hold no blanks.
serve() { # PIPE FUNCTION FIRST: a line to begin with, or nothing
    local line=$3 call
    [[ $2 != run_candidate ]] || warm_up
    while [[ -n $line ]] || take_line "$1"; do
        echo "$line" >"$work/held.$slot"
        read -ra call <<<"$line"
        "$2" "${call[@]}"
        rm -f "$work/held.$slot"
        line=''
    done
}

# A worker that is killed: another takes its place, and the candidate it held is tried once more.
keep_alive() { # SLOT PIPE FUNCTION
    local slot=$1 held again=''
    until (serve "$2" "$3" "$again"); do
        held=$(cat "$work/held.$slot" 2>/dev/null) || held=
        rm -f "$work/held.$slot"
        if [[ -n $held && $held == "$again" ]]; then
            lose "${held%% *}" "the worker of ${held%% *} died twice"
            held=''
        fi
        again=$held
    done
}

# Candidates on stdin, log lines on stdout (7 for the workers, whose own stdout goes from compilers to runners).
local_workers() {
    local i
    trap '' PIPE
    local each=$(((pool + jobs - 1) / jobs)) runners compilers=()
    runners=$((jobs * (each < runners_per_gpu ? each : runners_per_gpu)))
    [[ $SWEEP_GPU != 'CPU emulator' ]] || runners=$pool
    # Each check gets its share of the cores: threads of several checks that spin for one another only take turns.
    export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((($(nproc) + runners - 1) / runners))}
    export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
    rm -f "$work/ready"
    mkfifo "$work/ready"
    for ((i = 0; i < runners; i++)); do
        (
            [[ ${#gpus[@]} -eq 0 ]] || export CUDA_VISIBLE_DEVICES=${gpus[i % jobs]}
            keep_alive "runner$i" ready run_candidate
        ) <"$work/ready" 7>&1 &
    done
    {
        for ((i = 0; i < pool; i++)); do
            keep_alive "compiler$i" feed compile_candidate <&0 &
            compilers+=("$!")
        done
        wait "${compilers[@]}"
    } 7>&1 >"$work/ready"
    wait
}
