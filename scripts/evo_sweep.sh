#!/usr/bin/env bash
# Searches a kernel's tile space: every candidate compiled, proven, timed; only a paired comparison beats the leader.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/evo_sweep.sh [options] [-- fa_bench options, e.g. --seq 4096 --causal --acc fp16]
  --kernel NAME            default FA_KERNEL, else the bench's default
  --source FILE.cu         a file of your own, whose FA_SPACE states its knobs and their values
  --strategy grid|random|evo|tpe   default evo; tpe is Optuna's tree-structured Parzen estimator
  --budget N               candidates at most (default 64, the whole space with --minutes)
  --minutes M              minutes at most
  --seed N                 default 1
  --out DIR                default evidence/<gpu>; holds leaderboard.jsonl (append-only; a .gz of it is
                           unpacked), leaderboard.json and micro_best.json
  --pool N                 candidates being compiled and checked while one is timed (default: three quarters of the
                           cores, 2 to 12 for each GPU)
  --jobs N                 GPUs of this machine at once: the first N, or of CUDA_VISIBLE_DEVICES (default 1)
  --sshloginfile FILE      hosts for GNU parallel, with the same GPU, --jobs of them each; the repository at the same
                           path there
  --prune BY               do not run a candidate that is slower than the fastest so far by its bound, which loses no
                           winner, or by the low end of its estimate, which skips far more and can lose one:
                           none (default), bound or estimate; needs nvdisasm (docs/profiling.md)
  --dry-run                print the first candidates, run nothing
A knob among the fa_bench options (--warps 8) stays at that value. Candidates are explored with --seeds 1 --check cpu
(FP64 attention, before and after the timing) --warmup-ms 60 --max-time 0.1 unless these are given. Before one leads it
passes five fresh seeds (or --seeds) against every reference and beats the incumbent by --vs, with the whole protocol,
in two fresh processes.
A result is keyed by content (source, options, compiler, driver, GPU, problem, protocol): what is there is not measured
again, and a sweep that was killed goes on where it was. FA_BENCH names the binary (default ./fa_bench).
Without a GPU a sweep is not run, but for -- --device emu, which compiles and checks candidates and times none.
Exit: 0, 2 usage, 4 not run (no GPU, fa_bench, jq, parallel or optuna; a host that is dead), 6 the results cannot be
written.
USAGE
}

caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
. scripts/lib/gpu.sh
export FA_BENCH=${FA_BENCH:-./fa_bench}
protocol=fa_bench.sweep/3

die() { # CODE TEXT: below the progress line of a terminal
    [[ ! -t 2 ]] || echo >&2
    echo "evo_sweep.sh: $2" >&2
    exit "$1"
}

. scripts/lib/evo/workers.sh

if [[ ${1:-} == --measure ]]; then # KERNEL KNOBS LOG OPTIONS...: one candidate, on a host of GNU parallel
    kernel=$2 knobs=$3 log=$4 explore=()
    problem_options=("${@:5}")
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    exec 7>&1
    read -r knobs key compiled < <(compile_candidate "$knobs") && run_candidate "$knobs" "$key" "$compiled"
    close_bench
    exit 0
fi

opt=([kernel]=${FA_KERNEL:-} [source]=''
    [strategy]=evo [budget]=none [minutes]='' [seed]=1 [out]='' [jobs]=1 [sshloginfile]=''
    [pool]=none [prune]=none)
flag=([dry-run]=0)
arguments=words
parse_options "$@"
[[ ${#words[@]} -eq 0 ]] || die 2 "unknown option ${words[0]} (see --help)"
kernel=${opt[kernel]} strategy=${opt[strategy]} budget=${opt[budget]} minutes=${opt[minutes]} seed=${opt[seed]}
out=${opt[out]} pool=${opt[pool]} jobs=${opt[jobs]} hosts=${opt[sshloginfile]} dry_run=${flag[dry-run]}
given=("${more[@]}")
[[ $budget != none ]] || budget=$([[ -z $minutes ]] && echo 64 || echo 9999999)
[[ $strategy =~ ^(grid|random|evo|tpe)$ ]] || die 2 "--strategy takes grid, random, evo or tpe, not '$strategy'"
[[ ${opt[prune]} =~ ^(none|bound|estimate)$ ]] ||
    die 2 "--prune takes none, bound or estimate, not '${opt[prune]}'"
[[ ${opt[prune]} == none || -z $hosts ]] || die 2 "--prune knows the candidates of this machine: no --sshloginfile"
if [[ $pool == none && $jobs =~ ^[1-9][0-9]{0,6}$ ]]; then
    pool=$(($(nproc) * 3 / 4))
    pool=$((pool < 2 * jobs ? 2 * jobs : pool > 12 * jobs ? 12 * jobs : pool))
fi
for number in "budget=$budget" "pool=$pool" "jobs=$jobs"; do
    [[ ${number#*=} =~ ^[1-9][0-9]{0,6}$ ]] || die 2 "--${number%%=*} takes a whole number from 1, not '${number#*=}'"
done
[[ $seed =~ ^[0-9]{1,9}$ ]] || die 2 "--seed takes a whole number, not '$seed'"
[[ -z $minutes || ($minutes =~ ^[0-9]+([.][0-9]+)?$ && $minutes =~ [1-9]) ]] ||
    die 2 "--minutes takes a number above 0, not '$minutes'"
[[ -z $hosts ]] || is_input "$hosts" || die 2 "--sshloginfile takes a file that can be read, not '$hosts'"
[[ -x $FA_BENCH ]] || die 4 "no $FA_BENCH: run make"
command -v jq >/dev/null || die 4 "no jq: run scripts/setup.sh"
if [[ -n $hosts ]]; then
    command -v parallel >/dev/null || die 4 "no GNU parallel: run scripts/setup.sh"
    . scripts/lib/evo/hosts.sh
    check_hosts "$hosts"
fi
if [[ $strategy == tpe ]]; then
    export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$PWD/build/tools/optuna
    python3 -c 'import optuna' 2>/dev/null || die 4 "no Python package optuna: run scripts/setup.sh"
fi

if [[ -n ${opt[source]} ]]; then
    kernel=source:$(cd "$caller" && realpath -- "${opt[source]}")
    row=$("$FA_BENCH" --list-kernels --source "${kernel#source:}" --json - | jq -c '.[0]') || exit 2 # fa_bench said why
fi
registry=$("$FA_BENCH" --list-kernels --json -)
kernel=${kernel:-$(jq -r '.[] | select(.default) | .name' <<<"$registry")}
[[ $kernel == source:* ]] ||
    row=$(jq -c --arg k "$kernel" '.[] | select(.name == $k and .kind == "hand")' <<<"$registry")
[[ -n $row ]] || die 2 "no kernel '$kernel' with a tile space (fa_bench --list-kernels)"
[[ $kernel != source:* ]] || jq -e 'any(.values[]; length > 1)' <<<"$row" >/dev/null ||
    die 2 "${opt[source]} states no knobs: // FA_SPACE: m=16,32 warps=4,8"
space=$(jq -c '.values | del(.acc, .maxreg) | with_entries(select(.value | length > 1))' <<<"$row")

# Of the options, knobs pin the space; what changes a time without being part of the problem names a leaderboard of
# its own.
problem_options=() device_options=() conditions='' explore=()
set -- "${given[@]}"
while [[ $# -gt 0 ]]; do
    if [[ $# -ge 2 ]] && jq -e --arg k "${1#--}" 'has($k)' <<<"$space" >/dev/null; then
        [[ $2 =~ ^[0-9]+$ ]] || die 2 "$1 takes a number, not '$2'"
        space=$(jq -c --arg k "${1#--}" --argjson v "$2" '.[$k] = [$v]' <<<"$space")
        shift 2
        continue
    fi
    case $1 in
        --l2 | --dist | --misalign | --timing | --compiler) [[ $# -lt 2 ]] || conditions+="|$1 $2" ;;
        --device | --gpu) [[ $# -lt 2 ]] || device_options+=("$1" "$2") ;;
        --kernel | --vs | --json | --compile-only | --source | --arch | --seed | --dump)
            die 2 "$1 is this script's own (see --help)"
            ;;
    esac
    problem_options+=("$1")
    shift
done
for default in "--seeds 1" "--check cpu" "--warmup-ms 60" "--max-time 0.1"; do
    [[ " ${problem_options[*]} " == *" ${default% *} "* ]] || explore+=("${default% *}" "${default#* }")
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tried=$work/tried # a line per candidate when it is handed out, another with its result
: >"$tried"
# A model is asked and told by one process as long as the sweep lasts.
open_model() {
    mkfifo "$work/model.in" "$work/model.out"
    scripts/lib/evo/tpe.py --space "$space" --seed "$seed" --tried "$tried" <"$work/model.in" >"$work/model.out" &
    exec {model_in}>"$work/model.in" {model_out}<"$work/model.out"
}
ask_model() { # COUNT
    local line
    echo "$1" >&"$model_in"
    while IFS= read -r line <&"$model_out"; do
        [[ -n $line ]] || return 0
        echo "$line"
    done
    echo "evo_sweep.sh: the process of --strategy tpe has ended" >&2
}
next() { # COUNT
    if [[ $strategy == tpe ]]; then
        ask_model "$1"
        return
    fi
    jqf evo/next -rs --argjson space "$space" --arg strategy "$strategy" --argjson seed "$seed" --argjson count "$1" \
        "$tried"
}
[[ $strategy != tpe ]] || open_model
if [[ $dry_run -eq 1 ]]; then
    next "$budget"
    exit 0
fi

probe_kernel=$(jq -r '[.[] | select(.kind == "hand")][0].name' <<<"$registry")
probe_options=(--batch 1 --heads 1 --kv-heads 1 --seq 16 --seq-kv 16 --dim 64 --seeds 1 --check cpu --timing none)
probe() { # which device, by the record of a run that any device does at once: sets SWEEP_GPU and what goes with it
    "$FA_BENCH" --kernel "$probe_kernel" "${device_options[@]}" "${probe_options[@]}" --quiet --json "$work/probe" \
        2>"$work/err" || true
    IFS=$'\t' read -r SWEEP_GPU SWEEP_DRIVER SWEEP_ARCH gpu_facts < <(jqf evo/probed -rs "$work/probe" 2>/dev/null) ||
        die 4 "no whole record of a first run: $(cat "$work/err")"
    [[ $SWEEP_GPU != not_run ]] || die 4 "not run: $SWEEP_DRIVER"
}

# The GPUs of --jobs, each the same kind as the first.
choose_gpus() {
    local gpu first=$SWEEP_GPU
    [[ " ${device_options[*]} " != *" --gpu "* ]] ||
        die 2 "--gpu names one GPU, --jobs $jobs takes more: one of the two"
    # shellcheck disable=SC2031 # what is set for a probe is not meant to last
    IFS=, read -ra gpus <<<"${CUDA_VISIBLE_DEVICES:-$(seq -s, 0 $((jobs - 1)))}"
    [[ ${#gpus[@]} -ge $jobs ]] || die 2 "--jobs $jobs, but CUDA_VISIBLE_DEVICES names ${#gpus[@]}"
    for gpu in "${gpus[@]:0:jobs}"; do
        CUDA_VISIBLE_DEVICES=$gpu probe
        [[ $SWEEP_GPU == "$first" ]] || die 4 "GPU $gpu is no $first"
    done
}

probe
slug=$(gpu_folder "$SWEEP_GPU")
gpus=()
if [[ $jobs -gt 1 && -z $hosts && $SWEEP_GPU != 'CPU emulator' ]]; then
    choose_gpus
fi
[[ $SWEEP_ARCH != sm_9? && $SWEEP_ARCH != sm_1?? ]] || SWEEP_ARCH+=a

points=$(jq '[.[] | length] | reduce .[] as $n (1; . * $n)' <<<"$space")
budget=$((budget < points ? budget : points))

# What is compared with what: GPU, target, problem, class, conditions. The kernel comes on top for its own best tile.
code=0
"$FA_BENCH" "$(kernel_flag "$kernel")" "${kernel#source:}" "${problem_options[@]}" --compile-only \
    --arch "$SWEEP_ARCH" --quiet --json "$work/probe" 2>"$work/err" || code=$?
[[ $code -ne 2 ]] || die 2 "$(cat "$work/err")"
[[ $SWEEP_GPU != 'CPU emulator' || "${device_options[*]} " == *"--device emu "* ]] ||
    die 4 "NOT-RUN: no GPU here, and a sweep needs times (-- --device emu compiles and checks the candidates alone)"
{ read -r SWEEP_GROUP && read -r git && IFS= read -r default_tile; } < <(jqf evo/group -rs --arg gpu "$SWEEP_GPU" \
    --arg arch "$SWEEP_ARCH" --arg conditions "$conditions" --argjson space "$space" "$work/probe" 2>/dev/null) ||
    die 6 "no whole record of the problem: $(cat "$work/err")"
export SWEEP_GPU SWEEP_DRIVER SWEEP_ARCH SWEEP_GROUP

out=${out:-evidence/$slug}
mkdir -p "$out" 2>/dev/null || die 6 "cannot make $out"
log=$out/leaderboard.jsonl
[[ -e $log || ! -e $log.gz ]] || gunzip "$log.gz" 2>/dev/null || die 6 "cannot unpack $log.gz"
. scripts/lib/evo/board.sh
open_board

# One set of workers for the whole sweep, fed as results come, so that the next variants are compiled and checked while
# one is timed. GNU parallel holds the last lines of an open input back: there, a set per generation.
streaming=1
[[ -z $hosts ]] || streaming=0
workers() { # candidates on stdin, log lines on stdout
    local far=() name
    if [[ $streaming -eq 1 ]]; then
        local_workers
        return
    fi
    cp "$log" "$work/known"
    for name in FA_BENCH SWEEP_GPU SWEEP_DRIVER SWEEP_ARCH SWEEP_GROUP; do far+=(--env "$name"); done
    # shellcheck disable=SC2016 # parallel's own replacement strings
    parallel --will-cite --line-buffer --retries 2 --jobs "$jobs" --sshloginfile "$hosts" --workdir "$PWD" \
        --basefile "$work/known" "${far[@]}" --joblog +"$out/joblog" 'CUDA_VISIBLE_DEVICES=$(({%} - 1))' \
        scripts/evo_sweep.sh --measure "$kernel" {} "$work/known" "${problem_options[@]}" "${explore[@]}"
}

start=$(date +%s) started=$EPOCHREALTIME
handed=0 done_count=0 measured=0 cold=0 best_so_far=null feed='' exhausted=0
declare -A unanswered=() # by knobs
: >"$work/lost"
mkfifo "$work/feed" "$work/results"

open_workers() {
    workers <"$work/feed" >"$work/results" 9>&- &
    workers_pid=$!
    # Before the feed is open, which this process would hold open.
    exec {results}< <(jqf evo/taken --unbuffered -nrcR --argjson best "$best_so_far" "$work/results" 9>&-)
    exec {feed}>"$work/feed"
}

close_feed() {
    [[ -z $feed ]] || exec {feed}>&-
    feed=
}

time_is_up() {
    [[ -n $minutes ]] && awk -v m="$minutes" -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN {exit !(b - a >= m * 60)}'
}

hand_out() { # COUNT
    local candidate batch=() count=$((budget - handed < $1 ? budget - handed : $1))
    mapfile -t batch < <(next "$count")
    # A search starts beside the tile that the registry would take.
    if [[ $handed -eq 0 && $strategy =~ ^(evo|tpe)$ && -n $default_tile ]]; then
        mapfile -t batch < <(printf '%s\n' "$default_tile" "${batch[@]}" | awk '!seen[$0]++' | head -n "$count")
    fi
    if [[ ${#batch[@]} -gt 0 ]]; then
        printf '{"knobs":"%s","status":"pending","p50_us":null}\n' "${batch[@]}" >>"$tried"
        printf '%s\n' "${batch[@]}" >&"$feed"
        for candidate in "${batch[@]}"; do unanswered[$candidate]=1; done
        handed=$((handed + ${#batch[@]}))
    fi
    [[ ${#batch[@]} -eq $count ]] || exhausted=1
    if [[ $streaming -eq 0 || $exhausted -eq 1 || $handed -ge $budget ]]; then
        close_feed
    fi
}

progress() {
    local now elapsed eta best_line='no time yet'
    now=$(date +%s)
    elapsed=$((now - start + 1))
    eta=$(((budget - done_count) * elapsed / (done_count > 0 ? done_count : 1)))
    [[ -z $minutes ]] || eta=$(awk -v m="$minutes" -v e="$elapsed" -v n="$eta" \
        'BEGIN {left = m * 60 - e; print int(left < 0 ? 0 : left < n ? left : n)}')
    [[ ! $best_so_far =~ \"said\":\"([^\"]+)\" ]] || best_line="best ${BASH_REMATCH[1]}"
    if [[ -t 2 ]]; then
        local width=$((done_count * 30 / budget))
        printf '\r\033[K[%-30s] %d/%d  %d measured  %s  ETA %d:%02d' \
            "$(printf '%*s' "$width" '' | tr ' ' '#')" "$done_count" "$budget" "$measured" "$best_line" \
            $((eta / 60)) $((eta % 60)) >&2
    else
        echo "$done_count/$budget candidates, $measured measured, $best_line, $elapsed s" >&2
    fi
}

take() { # KIND CANDIDATE LINE
    local kind=$1 candidate=$2 knobs=''
    [[ ! $candidate =~ \"knobs\":\"([^\"]+)\" ]] || knobs=${BASH_REMATCH[1]}
    [[ -n $knobs && -n ${unanswered[$knobs]:-} ]] || return 0 # its first worker had answered before it was killed
    unset "unanswered[$knobs]"
    [[ ${opt[prune]} == none ]] || jq '.p50_us // empty' <<<"$best_so_far" | replace_file "$work/incumbent"
    case $kind in
        lost*)
            echo "evo_sweep.sh: left out: ${kind#lost }" >&2
            echo "$knobs" >>"$work/lost"
            ;;
        known | pruned) ;;
        *)
            append "$3"
            measured=$((measured + 1))
            [[ $kind != cold ]] || cold=$((cold + 1))
            ;;
    esac
    echo "$candidate" >>"$tried"
    done_count=$((done_count + 1))
    if [[ -t 2 || $((done_count % pool)) -eq 0 || $done_count -eq $budget ]]; then
        progress
    fi
}

# Whoever had these is gone, whole hosts perhaps.
take_unanswered() {
    local knobs
    for knobs in "${!unanswered[@]}"; do
        take "lost no worker answered for $knobs" "{\"knobs\":\"$knobs\",\"status\":\"not_run\",\"p50_us\":null}" ''
    done
}

search() {
    local kind candidate best line
    while [[ $handed -lt $budget && $exhausted -eq 0 ]] && ! time_is_up; do
        open_workers
        hand_out $((pool * 2))
        while read -r kind && read -r candidate && read -r best && IFS= read -r line; do
            best_so_far=$best
            take "$kind" "$candidate" "$line"
            [[ -n $feed ]] || continue
            if time_is_up; then
                close_feed
            elif [[ $((handed - done_count)) -le $((pool + pool / 2)) ]]; then
                hand_out $(((pool + 1) / 2))
            fi
        done <&"$results"
        exec {results}<&-
        wait "$workers_pid" || true
        take_unanswered
    done
}

# What the sweep did, once however it ends: the rate is of the search alone, first candidate to last result.
told=0
tell() {
    [[ $told -eq 0 && $done_count -gt 0 ]] || return 0
    told=1
    local IFS=' ' # a trap may come in the middle of a read
    jqf evo/told -nc --arg kernel "$kernel" --arg group "$SWEEP_GROUP" --arg strategy "$strategy" \
        --argjson seed "$seed" --argjson pool "$pool" --arg options "${problem_options[*]} ${explore[*]}" \
        --argjson candidates "$done_count" --argjson budget "$budget" --argjson measured "$measured" \
        --argjson cold "$cold" --argjson a "$started" --argjson b "$searched" --slurpfile tried "$tried" \
        --rawfile lost "$work/lost" --arg git "$git" --arg time "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$work/told"
    { cat "$work/told" >>"$out/sweeps.jsonl"; } 2>/dev/null ||
        echo "evo_sweep.sh: cannot append to $out/sweeps.jsonl" >&2
}
trap 'searched=${searched:-$EPOCHREALTIME}; tell; rm -rf "$work"' EXIT
# timeout(1) sends its signal twice.
trap 'trap "" TERM INT; exit 143' TERM
trap 'trap "" TERM INT; exit 130' INT

search
searched=$EPOCHREALTIME
[[ ! -t 2 ]] || echo >&2
tell
jq -s 'map(select(.status != "pending"))' "$tried" >"$tried.done" # the board's scripts read one array
mv "$tried.done" "$tried"

if [[ $SWEEP_GPU == 'CPU emulator' ]]; then
    echo "NOT-RUN: times (no GPU here); $measured candidates compiled and checked on the emulator"
else
    update_board
fi
jqf evo/said -r "$work/told"
print_best
