#!/usr/bin/env bash
# Searches a kernel's tile space: every candidate compiled, proven, timed; the leader is beaten only by a paired comparison.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: scripts/evo_sweep.sh [options] [-- fa_bench options, e.g. --seq 4096 --causal --acc fp16]
  --kernel NAME            default FA_KERNEL, else wmma
  --strategy grid|random|evo   default evo
  --budget N               candidates at most (default 64)
  --minutes M              minutes at most
  --seed N                 default 1
  --out DIR                default evidence/<gpu>; holds leaderboard.jsonl (append-only), leaderboard.json, micro_best.json
  --pool N                 candidates being compiled and checked while one is timed (default: half the cores, 2 to 8)
  --jobs N                 GPUs at once, through GNU parallel, one CUDA_VISIBLE_DEVICES each
  --sshloginfile FILE      hosts for GNU parallel, with the same GPU; the repository lies at the same path there
  --dry-run                print the first candidates, run nothing
A knob among the fa_bench options (--warps 8) stays at that value. Candidates are explored with --seeds 1 --warmup-ms 200 --max-time 0.3
unless these are given; before one leads it passes five fresh seeds (or --seeds) and beats the incumbent by --vs in two fresh processes.
A result is keyed by content (source, options, compiler, driver, GPU, problem, protocol): what is there is not measured again,
and a sweep that was killed goes on where it was. FA_BENCH names the binary (default ./fa_bench).
Exit: 0, 2 usage, 4 not run (no fa_bench, no jq, no parallel), 6 the results cannot be written.
USAGE
}

die() { # CODE TEXT
    [[ ! -t 2 ]] || echo >&2
    echo "evo_sweep.sh: $2" >&2
    exit "$1"
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/gpu.sh
. scripts/gpu.sh
export FA_BENCH=${FA_BENCH:-./fa_bench}
protocol=fa_bench.sweep/2

# The knobs of "m=32,n=64" as options.
knob_options() {
    sed -E 's/(^|,)([a-z]+)=/ --\2 /g' <<<"$1"
}

is_record() { # FILE
    jq -es -f scripts/record.jq "$1" >/dev/null 2>&1
}

# Measures one candidate and prints its log line; when its key is known, only which key that is.
measure() { # KERNEL KNOBS KNOWN_KEYS_FILE OPTIONS...
    local kernel=$1 knobs=$2 known=$3 work record key compiled code=0
    shift 3
    work=$(mktemp -d)
    record=$work/record.json
    # shellcheck disable=SC2046
    "$FA_BENCH" --kernel "$kernel" $(knob_options "$knobs") "$@" --compile-only --arch "$SWEEP_ARCH" --quiet --json "$record" 2>/dev/null || true
    is_record "$record" || { echo "evo_sweep.sh: no whole record of compiling $knobs: left out" >&2; rm -rf "$work"; return 0; }
    key=$(jq -r --arg more "$SWEEP_GPU $SWEEP_DRIVER $protocol $kernel $knobs $*" \
        '"\(.provenance.source_sha256) \(.provenance.options) \(.provenance.compiler) \(.problem) \($more)"' "$record" | sha256sum | cut -d' ' -f1)
    compiled=$(jq -c '{cache_hit: .provenance.cache_hit, compile_s: .provenance.compile_s}' "$record")
    if grep -qF "$key" "$known" 2>/dev/null; then
        jq -nc --arg key "$key" --arg knobs "$knobs" '{key: $key, knobs: $knobs, known: true}'
    else
        if [[ $(jq -r .status "$record") == pass ]]; then
            # shellcheck disable=SC2046
            "$FA_BENCH" --kernel "$kernel" $(knob_options "$knobs") "$@" --quiet --json "$record" 2>/dev/null || code=$?
        fi
        is_record "$record" || { echo "evo_sweep.sh: no whole record of $knobs: left out" >&2; rm -rf "$work"; return 0; }
        # A time below the roofline is no result, and one from another kind of GPU is not ours.
        jq -c --arg key "$key" --arg knobs "$knobs" --arg gpu "$SWEEP_GPU" --arg group "$SWEEP_GROUP" --argjson code "$code" --argjson compiled "$compiled" '
            select($gpu == "CPU emulator" or .device == null or .device.name == $gpu) |
            {key: $key, group: $group, gpu: $gpu, kernel, knobs: $knobs, class: (.config.acc // "fp32"), problem, status, reason, code: $code,
            p50_us: (if .timing.impossible then null else .timing.p50_us end), p90_us: .timing.p90_us, loosened: (.check.loosened // false),
            registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes, spill_bytes: .ptxas.spill_store_bytes,
            code_sha256: .provenance.code_sha256, source_sha256: .provenance.source_sha256, git: .provenance.git, time: .provenance.time,
            stage_s: .provenance.stage_s} + $compiled' "$record"
    fi
    rm -rf "$work"
}

if [[ ${1:-} == --measure ]]; then # one worker's part, also on another host
    shift
    measure "$@"
    exit 0
fi

kernel=${FA_KERNEL:-wmma} strategy=evo budget=64 minutes='' seed=1 out='' jobs=1 hosts='' dry_run=0
pool=$(($(nproc) / 2))
pool=$((pool < 2 ? 2 : pool > 8 ? 8 : pool))
given=()
while [[ $# -gt 0 ]]; do
    case $1 in
        --kernel | --strategy | --budget | --minutes | --seed | --out | --pool | --jobs | --sshloginfile)
            [[ $# -ge 2 ]] || die 2 "$1 needs a value"
            case $1 in
                --kernel) kernel=$2 ;; --strategy) strategy=$2 ;; --budget) budget=$2 ;; --minutes) minutes=$2 ;; --seed) seed=$2 ;;
                --out) out=$2 ;; --pool) pool=$2 ;; --jobs) jobs=$2 ;; --sshloginfile) hosts=$2 ;;
            esac
            shift
            ;;
        --dry-run) dry_run=1 ;;
        --help) usage; exit 0 ;;
        --) shift; given=("$@"); break ;;
        *) die 2 "unknown option $1 (see --help)" ;;
    esac
    shift
done
[[ $strategy =~ ^(grid|random|evo)$ ]] || die 2 "--strategy takes grid, random or evo, not '$strategy'"
for number in "budget=$budget" "pool=$pool" "jobs=$jobs"; do
    [[ ${number#*=} =~ ^[1-9][0-9]{0,6}$ ]] || die 2 "--${number%%=*} takes a whole number from 1, not '${number#*=}'"
done
[[ $seed =~ ^[0-9]{1,9}$ ]] || die 2 "--seed takes a whole number, not '$seed'"
[[ -z $minutes || ($minutes =~ ^[0-9]+([.][0-9]+)?$ && $minutes =~ [1-9]) ]] || die 2 "--minutes takes a number above 0, not '$minutes'"
[[ -z $hosts || -r $hosts ]] || die 2 "--sshloginfile takes a file that can be read, not '$hosts'"
[[ -x $FA_BENCH ]] || die 4 "no $FA_BENCH: run make"
command -v jq >/dev/null || die 4 "no jq: run scripts/setup.sh"
[[ $jobs -eq 1 && -z $hosts ]] || command -v parallel >/dev/null || die 4 "no GNU parallel: run scripts/setup.sh"

registry=$("$FA_BENCH" --list-kernels --json -)
row=$(jq -c --arg k "$kernel" '.[] | select(.name == $k and .kind == "hand")' <<<"$registry")
[[ -n $row ]] || die 2 "no kernel '$kernel' with a tile space (fa_bench --list-kernels)"
space=$(jq -c '.values | del(.acc, .maxreg) | with_entries(select(.value | length > 1))' <<<"$row")

# Of the options, knobs pin the space; what changes a time without being part of the problem names a leaderboard of its own.
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
        --kernel | --vs | --json | --compile-only | --source | --arch | --seed | --dump) die 2 "$1 is this script's own (see --help)" ;;
    esac
    problem_options+=("$1")
    shift
done
for default in "--seeds 1" "--warmup-ms 200" "--max-time 0.3"; do
    [[ " ${problem_options[*]} " == *" ${default% *} "* ]] || explore+=("${default% *}" "${default#* }")
done

work=$(mktemp -d)
known=$work/known tried=$work/tried
trap 'rm -rf "$work"' EXIT
echo '[]' >"$tried"
next() { # COUNT
    jq -r --argjson space "$space" --arg strategy "$strategy" --argjson seed "$seed" --argjson count "$1" -f scripts/evo_next.jq "$tried"
}
if [[ $dry_run -eq 1 ]]; then
    next "$budget"
    exit 0
fi

# Which device, by the record of a run that any device does at once.
"$FA_BENCH" --kernel "$(jq -r '[.[] | select(.kind == "hand")][0].name' <<<"$registry")" "${device_options[@]}" --batch 1 --heads 1 --seq 16 --dim 64 \
    --seeds 1 --check cpu --timing none --quiet --json "$work/probe" 2>"$work/err" || true
is_record "$work/probe" || die 4 "no whole record of a first run: $(cat "$work/err")"
[[ $(jq -r .status "$work/probe") != not_run ]] || die 4 "not run: $(jq -r .reason "$work/probe")"
SWEEP_GPU=$(jq -r 'if .device.backend == "cuda" then .device.name else "CPU emulator" end' "$work/probe")
SWEEP_DRIVER=$(jq -r '.provenance.driver // "none"' "$work/probe")
SWEEP_ARCH=$(jq -r '.device.arch' "$work/probe")
[[ $SWEEP_ARCH != sm_9? && $SWEEP_ARCH != sm_1?? ]] || SWEEP_ARCH+=a
slug=$(gpu_folder "$SWEEP_GPU")

# What is compared with what: GPU, target, problem, class, conditions. The kernel comes on top for its own best tile.
code=0
"$FA_BENCH" --kernel "$kernel" "${problem_options[@]}" --compile-only --arch "$SWEEP_ARCH" --quiet --json "$work/probe" 2>"$work/err" || code=$?
[[ $code -ne 2 ]] || die 2 "$(cat "$work/err")"
is_record "$work/probe" || die 6 "no whole record of the problem: $(cat "$work/err")"
SWEEP_GROUP=$(jq -r --arg gpu "$SWEEP_GPU" --arg arch "$SWEEP_ARCH" --arg conditions "$conditions" '.problem as $p | "\($gpu)|\($arch)|" +
    "\($p.batch),\($p.heads),\($p.kv_heads),\($p.seq_q),\($p.seq_kv),\($p.dim),\(if $p.causal then "causal" else "full" end)|\(.config.acc // "fp32")\($conditions)"' "$work/probe")
export SWEEP_GPU SWEEP_DRIVER SWEEP_ARCH SWEEP_GROUP

out=${out:-evidence/$slug}
mkdir -p "$out" 2>/dev/null || die 6 "cannot make $out"
log=$out/leaderboard.jsonl
# shellcheck source=/dev/null
. scripts/evo_board.sh
open_board

start=$(date +%s)
measured=0 done_count=0
progress() {
    local now elapsed best_line eta
    now=$(date +%s)
    elapsed=$((now - start + 1))
    eta=$(((budget - done_count) * elapsed / (done_count > 0 ? done_count : 1)))
    best_line=$(jq -r 'map(select(.status == "pass" and .p50_us != null)) | min_by(.p50_us) | if . then "best \(.p50_us * 100 | round / 100) us \(.knobs)" else "no time yet" end' "$tried")
    if [[ -t 2 ]]; then
        local width=$((done_count * 30 / budget))
        printf '\r\033[K[%-30s] %d/%d  %d measured  %s  ETA %d:%02d' "$(printf '%*s' "$width" '' | tr ' ' '#')" "$done_count" "$budget" "$measured" "$best_line" $((eta / 60)) $((eta % 60)) >&2
    else
        echo "$done_count/$budget candidates, $measured measured, $best_line, $elapsed s" >&2
    fi
}

run_batch() { # configurations on stdin, log lines on stdout
    if [[ $jobs -gt 1 || -n $hosts ]]; then
        # shellcheck disable=SC2016 # parallel's own replacement strings
        parallel --will-cite --line-buffer --jobs "$jobs" \
            ${hosts:+--sshloginfile "$hosts" --workdir "$PWD" --basefile "$known" --env FA_BENCH --env SWEEP_GPU --env SWEEP_DRIVER --env SWEEP_ARCH --env SWEEP_GROUP} \
            --joblog +"$out/joblog" 'CUDA_VISIBLE_DEVICES=$(({%} - 1))' scripts/evo_sweep.sh --measure "$kernel" {} "$known" "${problem_options[@]}" "${explore[@]}"
    else
        xargs -r -d '\n' -P "$pool" -I{} scripts/evo_sweep.sh --measure "$kernel" {} "$known" "${problem_options[@]}" "${explore[@]}"
    fi
}

generation=$((pool * 2))
while [[ $done_count -lt $budget ]]; do
    if [[ -n $minutes ]] && awk -v m="$minutes" -v s="$(($(date +%s) - start))" 'BEGIN {exit !(s >= m * 60)}'; then
        break
    fi
    mapfile -t batch < <(next $((budget - done_count < generation ? budget - done_count : generation)))
    [[ ${#batch[@]} -gt 0 ]] || break
    jq -r .key "$log" >"$known"
    : >"$work/batch"
    while IFS= read -r line; do
        echo "$line" >>"$work/batch"
        [[ $line != *'"known":true}' ]] || continue
        append "$line"
        measured=$((measured + 1))
    done < <(printf '%s\n' "${batch[@]}" | run_batch 9>&-)
    done_count=$((done_count + ${#batch[@]}))
    # Each candidate's result is the line with its key, whatever an older or newer source did with the same tile.
    jq -nc --args --slurpfile before "$tried" --slurpfile lines "$work/batch" --slurpfile log "$log" '
        (reduce $log[] as $l ({}; .[$l.key] = $l)) as $by_key |
        $before[0] + [$ARGS.positional[] as $knobs | ([$lines[] | select(.knobs == $knobs)][0] | if . then $by_key[.key] else null end) //
            {knobs: $knobs, status: "not_run", p50_us: null}] | map({key, knobs, status, p50_us, loosened, source_sha256})' "${batch[@]}" >"$tried.new"
    mv "$tried.new" "$tried"
    progress
done
[[ ! -t 2 ]] || echo >&2
elapsed=$(($(date +%s) - start + 1))

if [[ $SWEEP_GPU == 'CPU emulator' ]]; then
    echo "NOT-RUN: times (no GPU here); $measured candidates compiled and checked on the emulator"
else
    update_board
fi
jq -r --arg e "$elapsed" --arg m "$measured" 'group_by(.status) | map("\(.[0].status) \(length)") | join(", ") + "; \($m) measured in \($e) s"' "$tried"
print_best
