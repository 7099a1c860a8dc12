#!/usr/bin/env bash
# What must not break the bench: kills at any moment, damaged and full caches, faulting kernels, a busy GPU.
#
# usage: tests/faults/run.sh [--kills N] [--only NAME] [--json FILE] [--help]
#   --kills N    kill -9 at random moments of compile, record and sweep, N in all (default 15; the full proof: 200)
#   --only NAME  one group (repeatable): kill_compile kill_record kill_runs kill_sweep cache_readonly cache_full
#                cache_flips eight_processes json_full_disk; on a GPU (all of these: gpu) illegal_address misaligned
#                trap no_memory hang lost_signal kill_gpu memory_taken busy_gpu runs_gpu
#   --json FILE  summary (default build/faults.json)
# One line per fault: SURVIVED, FAILED or NOT-RUN. FA_BENCH names the binary (default ./fa_bench), FA_HOG a built
# tests/faults/hog.cu.
# Exit: 0 none failed, 1 one failed, 2 usage, 4 no fa_bench.
# shellcheck disable=SC2016 # what jq, or a shell inside another name space, expands
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
script=tests/faults/run.sh
opt=([kills]=15 [json]=build/faults.json)
many=([only]='')
parse_options "$@"
need_number 1 kills
kills=${opt[kills]} json=${opt[json]}
mapfile -t only < <(values_of only)
need_bench
bench=$(realpath "$bench")
gpu=0
"$bench" --version | grep -q '^gpu 0 ' && gpu=1
work=$(mktemp -d)
trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT
: >"$work/lines"
export FA_BENCH=$bench XDG_CACHE_HOME=$work/cache OMP_WAIT_POLICY=passive
# The two lowest rungs of the registry.
read -r baseline tiled < <("$bench" --list-kernels --json - |
    jq -r '[.[] | select(.kind == "hand" and .variant_of == null).name][:2] | join(" ")')
run=("$bench" --kernel "$tiled" --device emu --batch 1 --heads 1 --seq 17 --dim 16 --seeds 1 --check cpu --quiet)
compile=("$bench" --kernel "$tiled" --compile-only --arch sm_89 --dim 16 --quiet)

# The summary, after every group: a run that is cut off leaves what it had.
mkdir -p "$(dirname "$json")"
summarise() {
    lib=tests jqf summaries/faults -s "$work/lines" >"$json"
}
tally() { # VERDICT NAME COUNT NOTE
    printf '%-9s %-16s %4d  %s\n' "$1" "$2" "$3" "$4"
    jq -nc --arg verdict "$1" --arg name "$2" --argjson count "$3" --arg note "$4" \
        '{name: $name, verdict: $verdict, count: $count, note: $note}' >>"$work/lines"
    summarise
}
needs_gpu() { # NAME
    [[ $gpu -eq 1 ]] || { tally NOT-RUN "$1" 0 "needs a GPU"; return 1; }
}
bad=''
hold() { # WHAT COMMAND...: remembers what did not hold
    local what=$1
    shift
    "$@" >"$work/hold" 2>&1 || bad="${bad:-$what: $(head -c 300 "$work/hold" | tr '\n' ' ')}"
}
verdict() { # NAME COUNT NOTE
    if [[ -z $bad ]]; then tally SURVIVED "$1" "$2" "$3"; else tally FAILED "$1" "$2" "$bad"; fi
    bad=''
}
# A process group, killed whole at a random moment within so many milliseconds.
killed_within() { # MILLISECONDS COMMAND...
    local most=$1 leader
    shift
    setsid "$@" >/dev/null 2>&1 &
    leader=$!
    sleep "$(awk -v most="$most" -v r="$RANDOM" 'BEGIN {printf "%.3f", most * r / 32768 / 1000}')"
    kill -9 -- "-$leader" 2>/dev/null || true
    wait "$leader" 2>/dev/null || true
}

# Every published entry is whole, by its own list of digests.
entries_verify() { # CACHE
    local sums
    for sums in "$1"/fa_bench/*/sums; do
        [[ -e $sums ]] || continue
        [[ $(basename "$(dirname "$sums")") == building.* ]] && continue
        (cd "$(dirname "$sums")" && sha256sum --quiet -c sums) || return 1
    done
    local entry
    for entry in "$1"/fa_bench/[0-9a-f]*; do
        [[ ! -d $entry || -e $entry/sums || $(basename "$entry") =~ ^(code$|building\.) ]] || return 1
    done
}
passes() { # COMMAND...: exit 0 and a record that says pass
    rm -f "$work/p.json"
    "$@" --json "$work/p.json" && jq -e '.status == "pass"' "$work/p.json"
}
is_whole() { jq -e '.schema == "fa_bench.result/1" and .status == "pass"' "$1"; }

kill_compile() { # COUNT
    local i command
    for ((i = 0; i < $1; i++)); do
        rm -rf "$XDG_CACHE_HOME"
        command=("${compile[@]}")
        [[ $((i % 2)) -eq 1 ]] && command=("${run[@]}")
        killed_within $((i % 2 ? 2500 : 500)) "${command[@]}"
        hold "after kill $i" entries_verify "$XDG_CACHE_HOME"
        hold "the next run after kill $i" passes "${command[@]}"
    done
    verdict kill_compile "$1" "cache entries whole, the next run passes"
}
kill_record() {
    local i
    hold "the first record" passes "${run[@]}"
    cp "$work/p.json" "$work/record.json"
    for ((i = 0; i < $1; i++)); do
        killed_within 250 "${run[@]}" --json "$work/record.json"
        hold "record after kill $i" is_whole "$work/record.json"
    done
    rm -f "$work"/record.json*
    verdict kill_record "$1" "the old record or the new one, never a part"
}
kill_runs() { # a list of runs in one process
    local i
    printf -- '--seed %d\n' {1..30} >"$work/list"
    for ((i = 0; i < $1; i++)); do
        rm -f "$work/runs.jsonl"
        killed_within 1000 "${run[@]}" --runs "$work/list" --json "$work/runs.jsonl"
        [[ ! -e $work/runs.jsonl ]] || hold "records after kill $i" jq -es \
            'map(.provenance.line) == [range(1; length + 1)] and all(.[]; .status == "pass")' "$work/runs.jsonl"
    done
    verdict kill_runs "$1" "the records of the runs that had ended, whole and in order"
}
board_whole() {
    local file
    for file in "$1"/leaderboard.json "$1"/micro_best.json; do
        [[ ! -e $file ]] || jq -e 'type == "array"' "$file" || return 1
    done
    [[ ! -e $1/leaderboard.jsonl ]] || jq -es 'all(.[]; has("key") and has("knobs"))' "$1/leaderboard.jsonl"
}
kill_sweep() {
    local i sweep=(scripts/evo_sweep.sh --kernel "$baseline" --strategy grid --budget 4 --out "$work/board")
    local options=(--batch 1 --heads 1 --seq 9 --dim 64 --seeds 1 --check cpu)
    [[ $gpu -eq 1 ]] || options+=(--device emu)
    for ((i = 0; i < $1; i++)); do
        killed_within 4000 "${sweep[@]}" -- "${options[@]}" --seq $((9 + i))
        hold "leaderboard after kill $i" board_whole "$work/board"
    done
    hold "the resumed sweep" "${sweep[@]}" -- "${options[@]}"
    hold "leaderboard after the resumed sweep" board_whole "$work/board"
    verdict kill_sweep "$1" "leaderboard whole, the resumed sweep ends well"
}

inside() { # a private mount namespace: COMMAND in bash -c
    unshare -rm bash -euc "$1" _ "${@:2}"
}
can_mount() {
    mkdir -p "$work/m"
    inside 'mount -t tmpfs -o size=64k none "$1"' "$work/m" 2>/dev/null
}
cache_readonly() {
    local script='mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"; shift; exec "$@"'
    if ! can_mount; then
        tally NOT-RUN cache_readonly 0 "no mount namespaces here"
        return
    fi
    rm -rf "$XDG_CACHE_HOME"
    mkdir -p "$XDG_CACHE_HOME"
    hold "empty and read-only" passes unshare -rm bash -euc "$script" _ "$XDG_CACHE_HOME" "${run[@]}"
    hold "filling it" passes "${run[@]}"
    hold "filled and read-only" passes unshare -rm bash -euc "$script" _ "$XDG_CACHE_HOME" "${run[@]}"
    hold "a hit was used" jq -e '.provenance.cache_hit' "$work/p.json"
    rm -rf "$XDG_CACHE_HOME"
    : >"$XDG_CACHE_HOME"
    hold "a file where the cache should be" passes "${run[@]}"
    rm -f "$XDG_CACHE_HOME"
    verdict cache_readonly 4 "right results, with and without an entry"
}
# A pass, or a refusal in words that name the place or the space.
passes_or_says() { # COMMAND...
    local code=0
    rm -f "$work/p.json"
    "$@" --json "$work/p.json" >"$work/said" 2>&1 || code=$?
    [[ $code -eq 0 || $code -eq 6 ]] || { echo "exit $code"; cat "$work/said"; return 1; }
    [[ $code -eq 0 ]] ||
        grep -qiE 'No space|cannot write|cannot publish|File too large|file size|write error' "$work/said" ||
        { cat "$work/said"; return 1; }
}
cache_full() {
    local count=0 size
    rm -rf "$XDG_CACHE_HOME"
    mkdir -p "$XDG_CACHE_HOME"
    if can_mount; then
        for size in 4k 16k 64k 128k 256k; do
            hold "a cache of $size" passes_or_says unshare -rm bash -euc \
                'mount -t tmpfs -o size="$2" none "$1"; shift 2; exec "$@"' _ "$XDG_CACHE_HOME" "$size" "${run[@]}"
            count=$((count + 1))
        done
    fi
    for size in 1 8 32; do
        hold "files of at most $size KiB" passes_or_says bash -c \
            'trap "" XFSZ; ulimit -f "$1"; shift; exec "$@"' _ "$size" "${run[@]}"
        hold "entries with files of at most $size KiB" entries_verify "$XDG_CACHE_HOME"
        count=$((count + 1))
    done
    hold "the next run with room" passes "${run[@]}"
    verdict cache_full "$count" "a right result or a clear error, no entry in part"
}
flip() { # FILE: one bit, somewhere
    python3 - "$1" "$RANDOM$RANDOM" <<'EOP'
import random, sys
random.seed(sys.argv[2])
data = bytearray(open(sys.argv[1], 'rb').read())
data[random.randrange(len(data))] ^= 1 << random.randrange(8)
open(sys.argv[1], 'wb').write(data)
EOP
}
figures() { # of the last record: what a rebuilt entry must say again
    jq -c '[.provenance.code_sha256, .ptxas, .provenance.same_code_as, .config]' "$work/p.json"
}
cache_flips() {
    local file count=0 round want name
    rm -rf "$XDG_CACHE_HOME"
    hold "filling it" passes "${run[@]}"
    want=$(figures)
    for round in 1 2 3; do
        for file in "$XDG_CACHE_HOME"/fa_bench/*/*; do
            [[ -f $file && -s $file ]] || continue # the entry may have been rebuilt; an empty log has no bit
            flip "$file"
            name=$(basename "$file")
            hold "a bit of $name" passes "${run[@]}"
            hold "figures after a bit of $name, round $round" test "$want" = "$(figures)"
            hold "entries after a bit of $name" entries_verify "$XDG_CACHE_HOME"
            count=$((count + 1))
        done
    done
    verdict cache_flips "$count" "rebuilt, same figures: sources, logs, cubins, objects, digests, the index"
}
eight_processes() {
    local i codes=''
    rm -rf "$XDG_CACHE_HOME"
    for i in 1 2 3 4 5 6 7 8; do
        { "${run[@]}" --json "$work/e$i.json" >/dev/null 2>&1 || true; } &
    done
    wait
    for i in 1 2 3 4 5 6 7 8; do
        hold "process $i" is_whole "$work/e$i.json"
        codes+=" $(jq -r .provenance.code_sha256 "$work/e$i.json" 2>/dev/null)"
    done
    hold "one code" test "$(tr ' ' '\n' <<<"$codes" | sort -u | sed '/^$/d' | wc -l)" -eq 1
    hold "entries" entries_verify "$XDG_CACHE_HOME"
    hold "nothing left being built" test -z "$(find "$XDG_CACHE_HOME" -name 'building.*')"
    verdict eight_processes 8 "all pass, one entry, nothing left over"
}
json_full_disk() {
    local code=0
    "${compile[@]}" --json /dev/full 2>"$work/said" || code=$?
    hold "/dev/full: exit 6 (was $code)" test "$code" -eq 6
    hold "/dev/full: the reason" grep -q "No space" "$work/said"
    hold "/dev/full is still there" test -c /dev/full
    if can_mount; then
        # The old record fits, the new one beside it does not.
        hold "a full disk" inside 'mount -t tmpfs -o size=8k none "$1"; cd "$1"; echo "{\"old\": true}" >r.json
            dd if=/dev/zero of=fill bs=4k count=8 2>/dev/null || true
            code=0; "${@:2}" --json "$1/r.json" 2>said.$$ || code=$?
            [[ $code -eq 6 ]]; jq -e .old r.json; [[ $(ls | grep -c tmp) -eq 0 ]]' "$work/m" "${compile[@]}"
    fi
    verdict json_full_disk 2 "exit 6 with the reason, the old record stays"
}

# On the GPU: each ends in a record, and the next run on that GPU passes.
next_passes() {
    passes "$bench" --kernel "$tiled" --device cuda --batch 1 --heads 2 --seq 64 --seeds 1 --check cpu --timing none \
        --quiet
}
first_line() { # of the reason of the last record
    jq -r '.reason // "" | split("\n")[0]' "$work/g.json" 2>/dev/null | cut -c1-110
}
# A record that says so, and, after the command $after where there is one, the next run on the same GPU passes.
gpu_fault() { # NAME EXIT STATUS REASON OPTIONS...
    local name=$1 want=$2 status=$3 reason=$4 code=0
    shift 4
    needs_gpu "$name" || return 0
    rm -f "$work/g.json"
    "$bench" --device cuda --check cpu --seeds 1 --timing none --quiet "$@" --json "$work/g.json" >"$work/said" 2>&1 ||
        code=$?
    ${after:-true}
    hold "exit $code, not $want" test "$code" -eq "$want"
    hold "the record" jq -e --arg s "$status" --arg r "$reason" \
        '.status == $s and (.reason | test($r)) and .timing == null' "$work/g.json"
    hold "the next run" next_passes
    verdict "$name" 1 "$(first_line)"
}
tiny=(--m 32 --batch 1 --heads 1 --seq 32 --dim 16)
fault=("${tiny[@]}" --source tests/faults/fault.cu --define)
lost_signal() { # a kernel with TMA and an mbarrier, so Hopper's
    if [[ $gpu -eq 1 ]] && ! "$bench" --version | grep -q '^gpu 0 .*(sm_90)'; then
        tally NOT-RUN lost_signal 0 "needs sm_90"
        return
    fi
    gpu_fault lost_signal 5 timeout "killed after" --source tests/faults/lost_signal.cu --arch sm_90a "${tiny[@]}" \
        --dim 64 --timeout 4
}
kill_gpu() { # COUNT: while it checks or times on the GPU
    local i
    needs_gpu kill_gpu || return 0
    for ((i = 0; i < $1; i++)); do
        rm -f "$work/k.json"
        killed_within 2500 "$bench" --kernel "$tiled" --device cuda --check cpu --seeds 2 --warmup-ms 100 --max-time 1 \
            --quiet --json "$work/k.json"
        [[ ! -e $work/k.json ]] || hold "record after kill $i" is_whole "$work/k.json"
        hold "the next run after kill $i" next_passes
    done
    verdict kill_gpu "$1" "no record or a whole one, the next run on the GPU passes"
}
runs_gpu() { # a fault takes the context: the runs behind it go on in a new one
    local code=0 fine="--kernel $tiled --heads 2 --seq 64"
    needs_gpu runs_gpu || return 0
    cat >"$work/list" <<END
$fine
--source tests/faults/fault.cu --define FAULT=ILLEGAL_ADDRESS
$fine --seed 1
--source tests/faults/fault.cu --define FAULT=HANG --timeout 4
$fine --seed 2
--source tests/faults/fault.cu --define FAULT=MISALIGNED
$fine --stages 7
--source tests/faults/fault.cu --define FAULT=TRAP
$fine --seed 3
END
    "$bench" --device cuda --check cpu --seeds 1 --timing none --quiet "${tiny[@]}" --dim 64 --runs "$work/list" \
        --json "$work/runs.jsonl" >"$work/said" 2>&1 || code=$?
    hold "exit $code, not 6" test "$code" -eq 6
    hold "the records" jq -es 'map(.provenance.line) == [range(1; 10)] and
        map(.status) == ["pass", "error", "pass", "timeout", "pass", "error", "infeasible", "error", "pass"]' \
        "$work/runs.jsonl"
    hold "the next run" next_passes
    verdict runs_gpu 1 "$(jq -rs 'map(.status) | join(" ")' "$work/runs.jsonl" 2>/dev/null)"
}
hog=${FA_HOG:-$work/hog}
has_hog() { # NAME: another process that keeps the GPU or its memory
    needs_gpu "$1" || return 1
    if [[ ! -x $hog ]] && ! nvcc -o "$hog" tests/faults/hog.cu >"$work/said" 2>&1; then
        tally NOT-RUN "$1" 0 "no nvcc to build tests/faults/hog.cu"
        return 1
    fi
}
end_hog() {
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
}
start_hog() { # ARGUMENTS...: in the background, until it says that it has what it takes
    "$hog" "$@" >"$work/taken" &
    pid=$!
    for _ in {1..300}; do
        [[ ! -s $work/taken ]] || break
        sleep 0.1
    done
    hold "the hog" test -s "$work/taken"
}
# Another process leaves 1000 MiB, the tensors alone take more: words, no crash, and a pass when it has gone.
memory_taken() {
    local pid after=end_hog
    has_hog memory_taken || return 0
    start_hog 60 1000
    gpu_fault memory_taken 4 not_run "out of memory|OUT_OF_MEMORY" --kernel "$tiled" --batch 16 --heads 32 --seq 4096
}
times() { # of the last record that passed
    jq -c '.timing | [.p50_us, .mean_us, .noisy, .other_processes]' "$work/p.json" 2>/dev/null
}
busy_gpu() {
    local pid
    has_hog busy_gpu || return 0
    local line=(--kernel "$tiled" --device cuda --check cpu --seeds 1 --warmup-ms 100 --max-time 0.5 --quiet)
    hold "alone" passes "$bench" "${line[@]}"
    local alone
    alone=$(times)
    hold "alone is not noisy" jq -e '.timing.noisy == false' "$work/p.json"
    start_hog 12
    hold "beside the hog" passes "$bench" "${line[@]}"
    hold "marked noisy" jq -e '.timing.noisy and (.timing.noisy_reason | length > 0)' "$work/p.json"
    end_hog
    verdict busy_gpu 1 "alone $alone, busy $(times)"
}

gpu_groups=(illegal_address misaligned trap no_memory hang lost_signal kill_gpu memory_taken busy_gpu runs_gpu)
[[ ${#only[@]} -gt 0 ]] || only=(kill_compile kill_record kill_runs kill_sweep cache_readonly cache_full cache_flips
    eight_processes json_full_disk gpu)
if [[ " ${only[*]} " == *" gpu "* ]]; then
    mapfile -t only < <(printf '%s\n' "${only[@]}" | sed '/^gpu$/d')
    only+=("${gpu_groups[@]}")
fi
for name in "${only[@]}"; do
    case $name in
        kill_compile | kill_record) "$name" $(((kills * 2 + 4) / 5)) ;;
        kill_runs | kill_sweep | kill_gpu) "$name" $(((kills + 4) / 5)) ;;
        cache_readonly | cache_full | cache_flips | eight_processes | json_full_disk) "$name" ;;
        lost_signal | memory_taken | busy_gpu | runs_gpu) "$name" ;;
        hang) gpu_fault hang 5 timeout "killed after" "${fault[@]}" FAULT=HANG --timeout 4 ;;
        illegal_address) gpu_fault "$name" 6 error ILLEGAL_ADDRESS "${fault[@]}" FAULT=ILLEGAL_ADDRESS ;;
        misaligned) gpu_fault "$name" 6 error MISALIGNED "${fault[@]}" FAULT=MISALIGNED ;;
        trap) gpu_fault trap 6 error "LAUNCH_FAILED|ILLEGAL_INSTRUCTION" "${fault[@]}" FAULT=TRAP ;;
        no_memory)
            gpu_fault no_memory 3 infeasible "out of memory" --kernel "$tiled" --batch 4096 --heads 64 --seq 65536 \
                --dim 128
            ;;
        *) die 2 "no group '$name' (see --help)" ;;
    esac
done
jq -r '"\(.survived) faults survived, \(.failed) groups failed, \(.not_run) not run"' "$json"
jq -e '.failed == 0' "$json" >/dev/null
