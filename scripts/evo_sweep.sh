#!/usr/bin/env bash
# Searches a kernel's tile space: every candidate compiled, proven, timed; the leader is beaten only by a paired comparison.
set -euo pipefail

usage() {
    cat <<'EOF'
usage: scripts/evo_sweep.sh [options] [-- fa_bench options of the problem, e.g. --seq 4096 --causal --acc fp16]
  --kernel NAME            default FA_KERNEL, else wmma
  --strategy grid|random|evo   default evo
  --budget N               candidates at most (default 64)
  --minutes M              minutes at most
  --seed N                 default 1
  --out DIR                default evidence/<gpu>; holds leaderboard.jsonl (append-only), leaderboard.json, micro_best.json
  --pool N                 candidates being compiled and checked while one is timed (default: half the cores, 2 to 8)
  --jobs N                 GPUs at once, through GNU parallel, one CUDA_VISIBLE_DEVICES each
  --sshloginfile FILE      hosts for GNU parallel; the repository lies at the same path there
  --dry-run                print the first candidates, run nothing
A result is keyed by content (source, options, compiler, driver, GPU, problem, protocol): what is there is not measured again,
and a sweep that was killed goes on where it was. FA_BENCH names the binary (default ./fa_bench).
Exit: 0, 2 usage, 4 not run (no fa_bench, no jq), 6 the results cannot be written.
EOF
}

die() { # CODE TEXT
    echo "evo_sweep.sh: $2" >&2
    exit "$1"
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export FA_BENCH=${FA_BENCH:-./fa_bench}
protocol=fa_bench.sweep/1
log_fields='knobs, status, p50_us'

# The knobs of "m=32,n=64" as options.
knob_options() {
    sed -E 's/(^|,)([a-z]+)=/ --\2 /g' <<<"$1"
}

# Measures one candidate and prints its log line; nothing when its key is known.
measure() { # KERNEL KNOBS KNOWN_KEYS_FILE OPTIONS...
    local kernel=$1 knobs=$2 known=$3 work key code=0
    shift 3
    work=$(mktemp -d)
    # shellcheck disable=SC2046
    "$FA_BENCH" --kernel "$kernel" $(knob_options "$knobs") "$@" --compile-only --arch "$SWEEP_ARCH" --quiet --json "$work/c.json" 2>/dev/null || true
    [[ -s $work/c.json ]] || { rm -rf "$work"; return 0; }
    key=$(jq -r --arg more "$SWEEP_GPU $SWEEP_DRIVER $protocol $kernel $knobs $*" \
        '"\(.provenance.source_sha256) \(.provenance.options) \(.provenance.compiler) \(.problem) \($more)"' "$work/c.json" | sha256sum | cut -d' ' -f1)
    if ! grep -qF "$key" "$known" 2>/dev/null; then
        if [[ $(jq -r .status "$work/c.json") == pass ]]; then
            # shellcheck disable=SC2046
            "$FA_BENCH" --kernel "$kernel" $(knob_options "$knobs") "$@" --quiet --json "$work/c.json" 2>/dev/null || code=$?
        fi
        jq -c --arg key "$key" --arg knobs "$knobs" --arg gpu "$SWEEP_GPU" --arg group "$SWEEP_GROUP" --argjson code "$code" '{key: $key, group: $group,
            gpu: $gpu, kernel, knobs: $knobs, class: (.config.acc // "fp32"), problem, status, reason, code: $code, p50_us: .timing.p50_us, p90_us: .timing.p90_us,
            registers: .ptxas.registers, smem_bytes: .ptxas.smem_total_bytes, spill_bytes: .ptxas.spill_store_bytes,
            code_sha256: .provenance.code_sha256, source_sha256: .provenance.source_sha256, git: .provenance.git, time: .provenance.time}' "$work/c.json"
    fi
    rm -rf "$work"
}

if [[ ${1:-} == --measure ]]; then # one worker's part, also on another host
    shift
    measure "$@"
    exit 0
fi

kernel=${FA_KERNEL:-wmma} strategy=evo budget=64 minutes=0 seed=1 out='' jobs=1 hosts='' dry_run=0
pool=$(($(nproc) / 2))
pool=$((pool < 2 ? 2 : pool > 8 ? 8 : pool))
problem_options=()
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
        --) shift; problem_options=("$@"); break ;;
        *) die 2 "unknown option $1 (see --help)" ;;
    esac
    shift
done
[[ $strategy =~ ^(grid|random|evo)$ ]] || die 2 "--strategy takes grid, random or evo, not '$strategy'"
for number in "budget=$budget" "pool=$pool" "jobs=$jobs"; do
    [[ ${number#*=} =~ ^[1-9][0-9]*$ ]] || die 2 "--${number%%=*} takes a whole number from 1, not '${number#*=}'"
done
[[ $seed =~ ^[0-9]+$ && $minutes =~ ^[0-9]+([.][0-9]+)?$ ]] || die 2 "--seed and --minutes take numbers"
[[ -z $hosts || -r $hosts ]] || die 2 "--sshloginfile takes a file that can be read, not '$hosts'"
[[ -x $FA_BENCH ]] || die 4 "no $FA_BENCH: run make"
command -v jq >/dev/null || die 4 "no jq: run scripts/setup.sh"
[[ $jobs -eq 1 && -z $hosts ]] || command -v parallel >/dev/null || die 4 "no GNU parallel: run scripts/setup.sh"

row=$("$FA_BENCH" --list-kernels --json - | jq -c --arg k "$kernel" '.[] | select(.name == $k and .kind == "hand")')
[[ -n $row ]] || die 2 "no kernel '$kernel' with a tile space (fa_bench --list-kernels)"
space=$(jq -c '.values | del(.acc, .maxreg) | with_entries(select(.value | length > 1))' <<<"$row")
SWEEP_GPU=$("$FA_BENCH" --version | sed -n 's/^gpu 0 *\(.*\) (sm_.*/\1/p')
SWEEP_DRIVER=$("$FA_BENCH" --version | sed -n 's/^gpu 0 .*driver //p')
SWEEP_ARCH=$("$FA_BENCH" --version | sed -n 's/^gpu 0 .*(\(sm_[0-9a-f]*\)).*/\1/p')
[[ $SWEEP_ARCH == sm_9* || $SWEEP_ARCH == sm_1* ]] && SWEEP_ARCH+=a
[[ -n $SWEEP_GPU ]] || SWEEP_GPU='CPU emulator' SWEEP_ARCH=sm_89
slug=$(sed -E 's/^NVIDIA //; s/[^A-Za-z0-9]+/_/g' <<<"$SWEEP_GPU" | tr '[:upper:]' '[:lower:]')
out=${out:-evidence/$slug}
mkdir -p "$out" 2>/dev/null || die 6 "cannot make $out"
log=$out/leaderboard.jsonl board=$out/leaderboard.json best=$out/micro_best.json

# What is compared with what: GPU, target, problem, class. The kernel comes on top for its own best tile.
code=0
probe=$("$FA_BENCH" --kernel "$kernel" "${problem_options[@]}" --compile-only --arch "$SWEEP_ARCH" --quiet --json - 2>&1) || code=$?
[[ $code -ne 2 ]] || die 2 "$probe"
SWEEP_GROUP=$(jq -r --arg gpu "$SWEEP_GPU" --arg arch "$SWEEP_ARCH" '.problem as $p | "\($gpu)|\($arch)|" +
    "\($p.batch),\($p.heads),\($p.kv_heads),\($p.seq_q),\($p.seq_kv),\($p.dim),\(if $p.causal then "causal" else "full" end)|\(.config.acc // "fp32")"' <<<"$probe")
export SWEEP_GPU SWEEP_DRIVER SWEEP_ARCH SWEEP_GROUP

known=$(mktemp)
trap 'rm -f "$known" "$known".*' EXIT

# A line that is no result (a torn write, an edit) is set aside, said, and not lost.
mend_log() {
    [[ -e $log ]] || : >>"$log" || die 6 "cannot write $log"
    jq -Rr 'select((try (fromjson | has("key") and has("knobs")) catch false) | not)' "$log" >"$known.bad"
    if [[ -s $known.bad ]]; then
        cat "$known.bad" >>"$log.corrupt"
        jq -Rr 'select(try (fromjson | has("key") and has("knobs")) catch false)' "$log" >"$log.tmp" && mv "$log.tmp" "$log"
        echo "evo_sweep.sh: $(wc -l <"$known.bad") corrupt line(s) of $log set aside in $log.corrupt" >&2
    elif [[ -s $log && $(tail -c 1 "$log" | wc -l) -eq 0 ]]; then
        echo >>"$log"
    fi
}
exec 9>"$out/.lock" || die 6 "cannot write in $out"
flock 9; mend_log; flock -u 9

results() { # of this kernel and group, as one array; the newest line of a configuration counts
    jq -cs --arg g "$SWEEP_GROUP" --arg k "$kernel" 'map(select(.group == $g and .kernel == $k)) | group_by(.knobs) | map(last) | map({'"$log_fields"', p90_us})' "$log"
}

# This session's view of what was tried: a configuration from another source or protocol is tried again.
tried=$known.tried
echo '[]' >"$tried"
next() { # COUNT
    jq -r --argjson space "$space" --arg strategy "$strategy" --argjson seed "$seed" --argjson count "$1" -f scripts/evo_next.jq "$tried"
}
if [[ $dry_run -eq 1 ]]; then
    next "$budget"
    exit 0
fi

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

append() { # LINE
    flock 9
    printf '%s\n' "$1" >>"$log" || { flock -u 9; die 6 "cannot append to $log: this result is lost, none before it: $1"; }
    flock -u 9
}

run_batch() { # configurations on stdin, log lines on stdout
    if [[ $jobs -gt 1 || -n $hosts ]]; then
        # shellcheck disable=SC2016 # parallel's own replacement strings
        parallel --will-cite --line-buffer --jobs "$jobs" ${hosts:+--sshloginfile "$hosts" --workdir "$PWD" --env FA_BENCH --env SWEEP_GPU --env SWEEP_DRIVER --env SWEEP_ARCH --env SWEEP_GROUP} \
            --joblog +"$out/joblog" 'CUDA_VISIBLE_DEVICES=$(({%} - 1))' scripts/evo_sweep.sh --measure "$kernel" {} "$known" "${problem_options[@]}"
    else
        xargs -r -d '\n' -P "$pool" -I{} scripts/evo_sweep.sh --measure "$kernel" {} "$known" "${problem_options[@]}"
    fi
}

# Beaten only by --vs, twice, each in a fresh process on a fresh seed (MEASURE.md section 2).
beats() { # KERNEL KNOBS OTHER_KERNEL OTHER_KNOBS
    local round
    for round in 1 2; do
        # shellcheck disable=SC2046
        "$FA_BENCH" --kernel "$1" $(knob_options "$2") --vs "$3:$4" "${problem_options[@]}" --seed $((1000 + round * 10 + start % 100000)) --quiet --json "$known.vs" 2>/dev/null || return 1
        jq -e '.vs.accepted' "$known.vs" >/dev/null || return 1
    done
}

entry() { # KNOBS: this kernel's line of the leaderboard, from the log
    jq -cs --arg g "$SWEEP_GROUP" --arg k "$kernel" --arg c "$1" --argjson vs "$(jq -c '.vs // null' "$known.vs" 2>/dev/null || echo null)" \
        'map(select(.group == $g and .kernel == $k and .knobs == $c)) | last | del(.key, .code, .reason, .status) + {over: ($vs | if . then {kernel, config, ratio, ratio_ci95} else null end)}' "$log"
}

update_board() {
    local champion holder leader now
    champion=$(jq -r 'map(select(.status == "pass" and .p50_us != null)) | min_by(.p50_us) | .knobs // empty' "$tried")
    [[ -n $champion ]] || return 0
    flock 9
    if [[ -e $board ]] && ! jq -e 'type == "array"' "$board" >/dev/null 2>&1; then
        mv "$board" "$board.corrupt"
        echo "evo_sweep.sh: $board is no leaderboard: set aside as $board.corrupt" >&2
    fi
    [[ -e $board ]] || echo '[]' >"$board"
    flock -u 9
    rm -f "$known.vs"
    holder=$(jq -r --arg g "$SWEEP_GROUP" --arg k "$kernel" '.[] | select(.group == $g) | .kernels[$k].knobs // empty' "$board")
    if [[ -n $holder && $holder != "$champion" ]]; then
        beats "$kernel" "$champion" "$kernel" "$holder" || champion=$holder
    fi
    now=$(entry "$champion")
    # The same tile from an edited source is a new entry, too.
    if [[ $champion != "$holder" || $(jq -r .source_sha256 <<<"$now") != $(jq -r --arg g "$SWEEP_GROUP" --arg k "$kernel" '.[] | select(.group == $g) | .kernels[$k].source_sha256' "$board") ]]; then
        flock 9
        jq --arg g "$SWEEP_GROUP" --arg k "$kernel" --argjson e "$now" 'if any(.[]; .group == $g) then . else . + [{group: $g, leader: null, kernels: {}}] end |
            map(if .group == $g then .kernels[$k] = $e else . end)' "$board" >"$board.tmp" && mv "$board.tmp" "$board"
        flock -u 9
    fi
    leader=$(jq -r --arg g "$SWEEP_GROUP" '.[] | select(.group == $g) | .leader // empty' "$board")
    if [[ -z $leader ]] || { [[ $leader != "$kernel" ]] && beats "$kernel" "$champion" "$leader" \
        "$(jq -r --arg g "$SWEEP_GROUP" --arg k "$leader" '.[] | select(.group == $g) | .kernels[$k].knobs' "$board")"; }; then
        flock 9
        jq --arg g "$SWEEP_GROUP" --arg k "$kernel" 'map(if .group == $g then .leader = $k else . end)' "$board" >"$board.tmp" && mv "$board.tmp" "$board"
        flock -u 9
    fi
    flock 9
    jq -s --arg g "$SWEEP_GROUP" 'map(select(.group == $g and .status == "pass" and .p50_us != null)) | group_by([.kernel, .knobs]) | map(last) |
        sort_by(.p50_us) | .[:8] | map({kernel, knobs, p50_us, p90_us, registers, smem_bytes, group})' "$log" >"$best.tmp" && mv "$best.tmp" "$best"
    flock -u 9
}

generation=$((pool * 2))
while [[ $done_count -lt $budget ]]; do
    if [[ $minutes != 0 ]] && awk -v m="$minutes" -v s="$(($(date +%s) - start))" 'BEGIN {exit !(s >= m * 60)}'; then
        break
    fi
    count=$((budget - done_count < generation ? budget - done_count : generation))
    mapfile -t batch < <(next "$count")
    [[ ${#batch[@]} -gt 0 ]] || break
    jq -r .key "$log" >"$known"
    while read -r line; do
        append "$line"
        measured=$((measured + 1))
    done < <(printf '%s\n' "${batch[@]}" | run_batch)
    done_count=$((done_count + ${#batch[@]}))
    results | jq -c --args --slurpfile before "$tried" '. as $all | ($before[0] | map(.knobs)) + $ARGS.positional | unique | map(. as $c | ($all[] | select(.knobs == $c)) // {knobs: $c, status: "not_run", p50_us: null})' \
        "${batch[@]}" >"$tried.new" && mv "$tried.new" "$tried"
    progress
done
[[ -t 2 ]] && echo >&2

if [[ $SWEEP_GPU == 'CPU emulator' ]]; then
    echo "NOT-RUN: times (no GPU here); $measured candidates compiled and checked on the emulator"
else
    update_board
fi
elapsed=$(($(date +%s) - start + 1))
jq -r --arg e "$elapsed" --arg m "$measured" 'group_by(.status) | map("\(.[0].status) \(length)") | join(", ") + "; \($m) measured in \($e) s"' "$tried"
[[ ! -s $best ]] || jq -r '.[] | "\(.p50_us * 100 | round / 100) us  \(.kernel) \(.knobs)  regs \(.registers) smem \(.smem_bytes)"' "$best"
