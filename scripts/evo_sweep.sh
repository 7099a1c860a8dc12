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
                           cores, 2 to 12 for each GPU; on hosts 12)
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
Exit: 0, 2 usage, 4 not run (no GPU, fa_bench, jq, python3, parallel or optuna; a host that is dead), 6 the results
cannot be written.
USAGE
}

caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/lib/common.sh
. scripts/lib/gpu.sh
export FA_BENCH=${FA_BENCH:-./fa_bench}

die() { # CODE TEXT: below the progress line of a terminal
    [[ ! -t 2 ]] || echo >&2
    echo "evo_sweep.sh: $2" >&2
    exit "$1"
}

engine=(python3 scripts/lib/evo/sweep.py)
if [[ ${1:-} == --measure ]]; then # KERNEL KNOBS LOG OPTIONS...: candidates, on a host of GNU parallel
    exec "${engine[@]}" measure "${@:2}"
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
for number in "budget=$budget" "pool=${pool/none/1}" "jobs=$jobs"; do
    [[ ${number#*=} =~ ^[1-9][0-9]{0,6}$ ]] || die 2 "--${number%%=*} takes a whole number from 1, not '${number#*=}'"
done
[[ $seed =~ ^[0-9]{1,9}$ ]] || die 2 "--seed takes a whole number, not '$seed'"
[[ -z $minutes || ($minutes =~ ^[0-9]+([.][0-9]+)?$ && $minutes =~ [1-9]) ]] ||
    die 2 "--minutes takes a number above 0, not '$minutes'"
[[ -z $hosts ]] || is_input "$hosts" || die 2 "--sshloginfile takes a file that can be read, not '$hosts'"
every=$jobs # GPU
[[ -z $hosts ]] || every=$((jobs * $(grep -cE '^[[:space:]]*[^#[:space:]]' "$hosts")))
[[ $every -gt 0 ]] || die 2 "--sshloginfile: no host in $hosts"
if [[ $pool == none ]]; then
    pool=$(($(nproc) * 3 / 4))
    [[ -z $hosts ]] || pool=$((12 * every)) # of other machines' cores
    pool=$((pool < 2 * every ? 2 * every : pool > 12 * every ? 12 * every : pool))
fi
each=$((pool < 2 * every ? 1 : pool / (2 * every))) # candidates that a host takes at once, for each GPU
[[ -x $FA_BENCH ]] || die 4 "no $FA_BENCH: run make"
for tool in jq python3; do command -v "$tool" >/dev/null || die 4 "no $tool: run scripts/setup.sh"; done
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
refuse_own "kernel source library vs compile-only arch seed dump" "${given[@]}"
problem_options=() device_options=() conditions=''
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
    esac
    problem_options+=("$1")
    shift
done
explore=("${problem_options[@]}")
for default in "--seeds 1" "--check cpu" "--warmup-ms 60" "--max-time 0.1"; do
    [[ " ${problem_options[*]} " == *" ${default% *} "* ]] || explore+=("${default% *}" "${default#* }")
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tried=$work/tried # what became of the candidates
search=(--kernel "$kernel" --space "$space" --strategy "$strategy" --seed "$seed")
if [[ $dry_run -eq 1 ]]; then
    "${engine[@]}" propose "${search[@]}" --budget "$budget"
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

probe
slug=$(gpu_folder "$SWEEP_GPU")
SWEEP_ARCH=$(gpu_target "$SWEEP_ARCH")
gpus='' # of --jobs; each runner sees for itself that its GPU is the same kind as the first
if [[ $jobs -gt 1 && -z $hosts && $SWEEP_GPU != 'CPU emulator' ]]; then
    [[ " ${device_options[*]} " != *" --gpu "* ]] ||
        die 2 "--gpu names one GPU, --jobs $jobs takes more: one of the two"
    IFS=, read -ra named <<<"${CUDA_VISIBLE_DEVICES:-$(seq -s, 0 $((jobs - 1)))}"
    [[ ${#named[@]} -ge $jobs ]] || die 2 "--jobs $jobs, but CUDA_VISIBLE_DEVICES names ${#named[@]}"
    gpus=$(IFS=,; echo "${named[*]:0:jobs}")
fi

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

# A runner's first line, for its context. A file of one's own takes no --kernel beside it.
[[ $kernel == source:* ]] || probe_options=(--kernel "$probe_kernel" "${probe_options[@]}")
start=$(date +%s)
"${engine[@]}" search "${search[@]}" --budget "$budget" --pool "$pool" --jobs "$jobs" --each "$each" \
    --prune "${opt[prune]}" --gpus "$gpus" --gpu-facts "$gpu_facts" --default-tile "$default_tile" \
    --probe="${probe_options[*]}" --hosts "$hosts" ${minutes:+--minutes "$minutes"} --git "$git" --out "$out" \
    --work "$work" -- "${explore[@]}" &
engine_pid=$!
trap 'kill "$engine_pid" 2>/dev/null; wait "$engine_pid"; exit 143' TERM
trap 'kill "$engine_pid" 2>/dev/null; wait "$engine_pid"; exit 130' INT
wait "$engine_pid"
trap - TERM INT

[[ $SWEEP_GPU == 'CPU emulator' ]] || update_board
print_best
