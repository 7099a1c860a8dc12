#!/usr/bin/env bats
# Sweeps: the leaderboard's rules on made-up records, the search on the emulator, kills, full disks, torn lines.
load stub_bench

sweep() { scripts/evo_sweep.sh --out "$work/lb" "$@"; }
# The bench of each test is made up, until the test says `unset FA_BENCH`.
prepare() { make_stub; }
board() { jq -r ".[0] | $1" "$work/lb/leaderboard.json"; }

# A sweep of the stub's default kernel, once for the file; a test that begins with it takes a copy.
setup_file() {
    local work=$BATS_FILE_TMPDIR
    cd "$BATS_TEST_DIRNAME/../.." || return 1
    (make_stub && sweep --strategy grid) 2>"$work/said" # what is exported stays in there
}
swept() {
    cp -r "$BATS_FILE_TMPDIR/stub" "$BATS_FILE_TMPDIR/fa_stub" "$BATS_FILE_TMPDIR/lb" "$work"
    export STUB=$work/stub FA_BENCH=$work/fa_stub
}

@test "what cannot be swept is refused in one line" {
    unset FA_BENCH
    refused 2 "no kernel 'nosuch'" sweep --kernel nosuch
    refused 2 "no kernel 'cublas'" sweep --kernel cublas
    refused 2 "--budget takes a whole number from 1, not '0'" sweep --budget 0
    refused 2 "--budget needs a value" sweep --budget ''
    refused 2 "--seconds takes a number above 0" sweep --seconds 0
    refused 2 "--strategy takes grid, random, evo or tpe" sweep --strategy best
    refused 2 "--prune takes none, bound or estimate" sweep --prune all
    refused 2 "--seq" sweep --kernel light -- --seq nine
    refused 2 "--source takes a file that can be read, not '$PWD/nowhere.cu'" sweep --source nowhere.cu
    echo '// FA_SPACE(m)' >"$work/k.cu"
    refused 2 "k.cu:1: FA_SPACE takes knob=value,value..., not 'm'" sweep --source "$work/k.cu"
    refused 2 "--vs is this script's own" sweep -- --vs light
    refused 2 "--list-kernels is this script's own" sweep -- --dim 64 --list-kernels
    refused 2 "--arch is this script's own" sweep -- --arch=sm_80
    FA_BENCH=$work/none refused 4 "no $work/none: run make" sweep
    refused 6 "cannot make /dev/null/x" scripts/evo_sweep.sh --kernel light --out /dev/null/x -- --device emu
    [ ! -e "$work/lb/leaderboard.json" ]
}

@test "--dry-run prints candidates of the registry's space and writes nothing" {
    unset FA_BENCH
    run -0 sweep --kernel light --budget 5 --dry-run
    [ "${#lines[@]}" -eq 5 ]
    [[ ${lines[0]} =~ ^m=[0-9]+,n=[0-9]+,warps=[0-9]+,vec=[0-9]+$ ]]
    [ ! -e "$work/lb" ]
    # The same seed makes the same candidates, another one others.
    a=$(sweep --kernel light --strategy random --budget 9 --seed 3 --dry-run)
    [ "$a" = "$(sweep --kernel light --strategy random --budget 9 --seed 3 --dry-run)" ]
    [ "$a" != "$(sweep --kernel light --strategy random --budget 9 --seed 4 --dry-run)" ]
}

@test "evo begins beside the tile that the registry would take; others end with what compiles longest" {
    PYTHONPATH=scripts/lib/evo python3 -c '
from propose import Proposer, every, point_of
space = {"m": [16, 32, 64], "n": [16, 32, 64], "warps": [1, 2, 4, 8]}
seconds = lambda text: point_of(text)["m"] * point_of(text)["n"] / point_of(text)["warps"]
for strategy in "grid", "random":
    proposer, handed = Proposer(space, strategy, 1), []
    while batch := proposer.propose(5):
        handed += batch
        for text in batch:
            proposer.tell({"knobs": text, "status": "infeasible", "cold_s": seconds(text)})
    assert sorted(handed) == sorted(every(space)) and handed[:25] != sorted(handed[:25], key=seconds, reverse=True)
    assert handed[25:] == sorted(handed[25:], key=seconds, reverse=True), handed[25:]
for strategy, least, most in ("evo", 4, 6), ("random", 0, 1):
    proposer = Proposer({"m": [16, 32, 64], "n": list(range(99))}, strategy, 1)
    proposer.start = "m=32,n=50"
    proposer.tell({"knobs": proposer.start, "status": "pending"})
    batch = proposer.propose(12)
    assert len(set(batch)) == 12 and proposer.start not in batch
    assert least <= len(set(batch) & set(proposer.neighbours(point_of(proposer.start)))) <= most, (strategy, batch)
steps = Proposer(space, "evo", 1).neighbours({"m": 32, "n": 32, "warps": 2})
moved = sorted(tuple(point_of(text)[name] for name in space) for text in set(steps))
assert moved == [(16, 16, 2), (16, 32, 1), (16, 32, 2), (32, 16, 1), (32, 16, 2), (32, 32, 1), (32, 32, 4), (32, 64, 2),
                 (32, 64, 4), (64, 32, 2), (64, 32, 4), (64, 64, 2)], moved
'
}

@test "on the emulator: proven, never timed" {
    unset FA_BENCH
    run sweep --kernel light --strategy random --budget 2 -- --device emu --batch 1 --heads 1 --seq 17 --dim 16 --vec 8
    [ "$status" -eq 0 ]
    [[ $output == *"NOT-RUN: times"*"2 candidates"* ]]
    jq -es 'length == 2 and all(.[]; .p50_us == null and .problem.seq_q == 17 and (.knobs | endswith("vec=8")) and
        (.status == "pass" or .status == "infeasible"))' "$work/lb/leaderboard.jsonl"
    sweep --kernel wgmma --budget 1 --out "$work/sm_90" -- --device emu --batch 1 --heads 1 --seq 64 --dim 64
    jq -e '.variant == "wgmma" and .arch == "sm_90a" and .status == "pass"' "$work/sm_90/leaderboard.jsonl"
    [ ! -e "$work/lb/leaderboard.json" ]
}

@test "a sweep without a GPU is not run, and says what can be" {
    unset FA_BENCH
    ! ls /dev/nvidia[0-9]* 2>/dev/null || skip "there is a GPU"
    refused 4 "no GPU here, and a sweep needs times (-- --device emu" sweep --kernel light --budget 2
    [ ! -e "$work/lb" ]
}

@test "the fastest candidate leads, explored with one seed as --help says, confirmed without it" {
    swept
    [ "$(board .leader)" = one ]
    [ "$(board .kernels.one.knobs)" = m=16,warps=8 ]
    jq -e 'map(.p50_us) == [40, 45, 50, 60]' "$work/lb/micro_best.json"
    grep -q -- '--seeds 1 --check cpu --warmup-ms 60 --max-time 0.1 --no-bound --quiet *--m 16 --warps 4' \
        "$STUB/commands"
    grep -- '--m 16 --warps 8 --seed [0-9]' "$STUB/commands" >"$work/confirm"
    [ "$(wc -l <"$work/confirm")" -eq 1 ]
    [ -z "$(grep -e --seeds -e --check "$work/confirm")" ]
    grep -q -- --no-bound "$work/confirm" # of what the bound takes half a second nothing is kept
    [ "$(grep -nm1 -- --compile-only "$STUB/commands")" = "$(grep -nm1 -- '--compile-only.* --m' "$STUB/commands")" ]
    scripts/evo_sweep.sh --help | grep -q -- '--seeds 1'
}

@test "what a kernel serves and needs stands in the log, the leaderboard and what is printed" {
    echo '"serves":["varlen","window"],"needs":["packed"],' >"$STUB/says"
    run -0 sweep --kernel one --strategy grid
    [[ $output == *"one m=16,warps=8  regs 64 smem 1000  serves varlen window  needs packed"* ]]
    jq -es 'all(.[]; .serves == ["varlen", "window"] and .needs == ["packed"])' "$work/lb/leaderboard.jsonl"
    jq -e '.[0].kernels.one | .serves == ["varlen", "window"] and .needs == ["packed"]' "$work/lb/leaderboard.json"
    jq -e 'all(.[]; .serves and .needs)' "$work/lb/micro_best.json"
    swept # a kernel of dense forward alone has none
    jq -e 'all(.[]; has("serves") or has("needs") | not)' "$work/lb/micro_best.json"
}

@test "--prune: what its bound says is slower than the fastest so far is not run, and is no result" {
    printf '%s\n' 'one 16 4 30' 'one 16 8 30' "one 32 4 55 $work/lb/leaderboard.jsonl" 'one 32 8 30' >"$STUB/bounds"
    sweep --kernel one --strategy grid --prune bound --pool 1
    [ "$(board .kernels.one.knobs)" = m=16,warps=8 ]
    grep -q -- '--compile-only --arch sm_90a --bound' "$STUB/commands"
    jq -es 'length == 3 and all(.[]; .knobs != "m=32,warps=4")' "$work/lb/leaderboard.jsonl"
    jq -e '.status.pruned == 1 and .measured == 3' "$work/lb/sweeps.jsonl"
}

@test "--prune: by the bound or the estimate at the clock of this GPU, which has no more multiprocessors" {
    local gpu='{"sm_count": 58, "clock_mhz_max": 2000}'
    local bound='{"clocks": 80000, "clock_mhz_max": 1000, "sm_count": 58, "estimate_us_low": 90}'
    pruned() { # BY BEST
        PYTHONPATH=scripts/lib/evo python3 -c 'import json, sys; from candidate import is_pruned
sys.exit(10 + is_pruned(json.loads(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), float(sys.argv[4])))' \
            "$bound" "$1" "$gpu" "$2" || [ $? -eq "${3:-11}" ]
    }
    kept() { pruned "$@" 10; }
    pruned bound 39 # 40 us at 2000 MHz
    kept bound 41
    pruned estimate 44 # 45 us
    kept estimate 46
    gpu=${gpu/58/59}
    kept bound 39
    bound='{"unknown": "no nvdisasm"}'
    kept bound 39
}

@test "a loser is not timed to the end: the log says so, no board has it, a winner that falls brings it back" {
    touch "$STUB/beats"
    run -0 sweep --kernel one --strategy grid --pool 1
    [[ $output == *"beaten 2, pass 2; 4 measured"* ]]
    jq -es 'map({(.knobs): [.status, .p50_us, .at_least_us]}) | add == {"m=16,warps=4": ["pass", 50, null],
        "m=16,warps=8": ["pass", 40, null], "m=32,warps=4": ["beaten", null, 60],
        "m=32,warps=8": ["beaten", null, 45]}' "$work/lb/leaderboard.jsonl"
    jq -e 'map(.p50_us) == [40, 50]' "$work/lb/micro_best.json"
    sweep --kernel one --strategy grid --pool 1 # known to be beaten by what leads today
    jq -es '.[1] | .measured == 0 and .status == {beaten: 2, pass: 2}' "$work/lb/sweeps.jsonl"
    rm -r "$work/lb"
    echo 'one 16 8' >"$STUB/flaky" # what beat them is wrong on fresh seeds
    sweep --kernel one --strategy grid --pool 1
    [ "$(board .kernels.one.knobs)" = m=32,warps=8 ]
    jq -e 'map(.p50_us) == [45, 50]' "$work/lb/micro_best.json"
}

@test "the first candidate runs alone: all others have a time to beat" {
    sweep --kernel one --strategy grid --pool 4
    [ "$(grep -c -- '--beat' "$STUB/commands")" -eq 3 ]
    jq -es 'length == 4 and all(.[]; .status == "pass")' "$work/lb/leaderboard.jsonl"
}

@test "the fastest tiles are tried with the register limits that let more blocks in; the board says what that gains" {
    limits() { PYTHONPATH=scripts/lib/evo python3 -c 'import json, sys; from candidate import register_limits
print(*register_limits(json.loads(sys.argv[1])))' "$1"; }
    [ "$(limits '{"registers": 128, "blocks_per_sm": 2, "config": {"warps": 8}}')" = "80 64" ] # 3 and 4 blocks
    [ "$(limits '{"registers": 168, "blocks_per_sm": 3, "config": {"warps": 4}}')" = "128 96" ]
    [ -z "$(limits '{"registers": 40, "blocks_per_sm": 4, "config": {"warps": 16}}')" ] # 64 warps are the most
    [ -z "$(limits '{"registers": 255, "blocks_per_sm": 1, "config": {"warps": 16}}')" ] # 64 of 255: it would spill
    [ -z "$(limits '{"registers": null, "blocks_per_sm": 1, "config": {"warps": 4}}')" ]
    printf '%s\n' 'one 16 8 40 0 4' 'one 16 8 38 48 5' 'one 16 8 37 40 4' 'one 32 8 45 0 4' >"$STUB/limits"
    run -0 sweep --kernel one --strategy grid
    jq -es 'map(.knobs) | sort == ["m=16,warps=4", "m=16,warps=8", "m=16,warps=8,maxreg=48", "m=32,warps=4",
        "m=32,warps=8"]' "$work/lb/leaderboard.jsonl"
    jq -e '.status.pruned == 3' "$work/lb/sweeps.jsonl" # they let no further block in
    [ "$(board .kernels.one.knobs)" = m=16,warps=8,maxreg=48 ]
    [ "$(board .kernels.one.maxreg_gain)" = 1.053 ]
    [[ $output == *"m=16,warps=8,maxreg=48  regs 64 smem 1000  the register limit gains 1.053"* ]]
    rm -r "$work/lb"
    sweep --kernel one --strategy grid --budget 3 # they are part of the budget
    jq -e '.candidates == 3' "$work/lb/sweeps.jsonl"
    rm -r "$work/lb"
    sweep --kernel one --strategy grid -- --maxreg 64 # it is given: none is derived
    jq -e '.candidates == 4' "$work/lb/sweeps.jsonl"
}

@test "a tile larger than one with too much shared memory is not compiled; of recorded sweeps none of these ran" {
    printf '%s\n' 'one 16 8' >"$STUB/too_large"
    sweep --kernel one --strategy grid --pool 1
    jq -e '.status == {infeasible: 1, pass: 2, pruned: 1}' "$work/lb/sweeps.jsonl" # m=32,warps=8 is larger
    [ "$(grep -c -- '--m 32 --warps 8' "$STUB/commands")" -eq 0 ]
    gunzip -c studies/*_candidates.jsonl.gz evidence/*/leaderboard.jsonl.gz >"$work/recorded"
    PYTHONPATH=scripts/lib/evo python3 - "$work/recorded" <<'END'
import collections, json, sys
from candidate import TOO_LARGE, is_larger
spaces, spared = collections.defaultdict(dict), 0
for line in open(sys.argv[1]):
    row = json.loads(line)
    spaces[row["kernel"], row["group"]][row["knobs"]] = row
for points in spaces.values():
    large = [knobs for knobs, row in points.items() if TOO_LARGE in (row.get("reason") or "")]
    for knobs, row in points.items():
        if any(knobs != than and is_larger(knobs, than) for than in large):
            assert row["status"] != "pass", row
            spared += 1
assert spared > 50, spared
END
    grep -rqF 'bytes of shared memory per block against the limit' src/compile
}

# Recorded sweeps once more in other orders: each candidate's first samples are drawn around its recorded median, with
# the clock off by up to 4 %, and the driver's rule stops it or not.
@test "the stop for losers loses no winner of a recorded sweep, and stops most candidates" {
    gcc -shared -fPIC -Isrc -o "$work/stats.so" -x c - src/timing/stats.c src/base/status.c -lm <<'END'
#include "timing/stats.h"
int samples(void);
int samples(void) { return FA_BEATEN_SAMPLES; }
END
    gunzip -c studies/*_candidates.jsonl.gz >"$work/recorded"
    PYTHONPATH=studies python3 - "$work" <<'END'
import ctypes, random, sys
from replay import recorded
rule = ctypes.CDLL(f"{sys.argv[1]}/stats.so")
rule.fa_stats_beyond.argtypes, rule.fa_stats_beyond.restype = [ctypes.c_double] * 2, ctypes.c_bool
random.seed(1)
spaces = recorded(f"{sys.argv[1]}/recorded")
assert len(spaces) >= 6
def beaten(us, by): # half of the samples are above the median, some far above, as beside another process
    us *= random.uniform(0.96, 1.04)
    return all(rule.fa_stats_beyond(us * random.choice([0.98, 0.99, 1, 1.01, 1.02, 1.3]), by)
               for _ in range(rule.samples()))
for name, points in spaces.items():
    times = [point["p50_us"] for point in points.values() if point["status"] == "pass" and point["p50_us"]]
    winner, stopped = min(times), 0
    for _ in range(20):
        incumbent = None
        for us in random.sample(times, len(times)):
            if incumbent and beaten(us, incumbent):
                assert us > winner, (name, us)
                stopped += 1
            else:
                incumbent = min(us, incumbent or us)
        assert incumbent == winner
    assert stopped > 0.6 * 20 * len(times), (name, stopped / 20, len(times))
END
}

@test "a wrong candidate does not lead, nor one that fails on fresh seeds, and the log says so" {
    echo 'one 16 8' >"$STUB/flaky"
    echo 'one 32 8' >"$STUB/wrong"
    run -0 sweep --kernel one --strategy grid
    [[ $output == *"m=16,warps=8 does not hold on fresh seeds"* ]]
    [ "$(board .kernels.one.knobs)" = m=16,warps=4 ]
    jq -es 'map(select(.knobs == "m=32,warps=8")) | length == 1 and .[0].status == "wrong" and .[0].p50_us == null' \
        "$work/lb/leaderboard.jsonl"
    jq -es '[.[] | select(.knobs == "m=16,warps=8")] | length == 2 and last.status == "wrong"' \
        "$work/lb/leaderboard.jsonl"
    jq -e 'map(.p50_us) == [50, 60]' "$work/lb/micro_best.json"
}

@test "the incumbent falls only to a paired comparison in two fresh processes; 2 % faster is noise" {
    swept
    sed -i 's/^one 32 8 .*/one 32 8 39.2/' "$STUB/times"
    printf '%064d' 7 >"$STUB/source.one"
    sweep --kernel one --strategy grid -- --warps 8
    [ "$(board .kernels.one.knobs)" = m=16,warps=8 ]
    [ "$(board .kernels.one.source_sha256)" = "$(cat "$STUB/source.one")" ] # with its time of the new source
    : >"$STUB/runs"
    sed -i 's/^one 32 8 .*/one 32 8 20/' "$STUB/times"
    printf '%064d' 8 >"$STUB/source.one"
    sweep --kernel one --strategy grid -- --warps 8
    [ "$(board .kernels.one.knobs)" = m=32,warps=8 ]
    [ "$(board .kernels.one.over.ratio)" = 2 ]
    [ "$(grep -c 'vs one:m=16,warps=8' "$STUB/runs")" -eq 2 ]
    [ "$(grep 'vs one:m=16,warps=8' "$STUB/runs" | sort -u | wc -l)" -eq 2 ] # two seeds
}

@test "a knob among the options stays at its value; without a name: FA_KERNEL, else the registry's default" {
    swept
    [ "$(sweep --strategy grid --dry-run -- --warps 8)" = $'m=16,warps=8\nm=32,warps=8' ]
    [ "$(sweep --strategy grid --dry-run -- --warps=8)" = $'m=16,warps=8\nm=32,warps=8' ]
    jq -es 'all(.[]; .kernel == "one")' "$work/lb/leaderboard.jsonl"
    FA_KERNEL=nosuch refused 2 "no kernel 'nosuch'" sweep
    [[ $(scripts/evo_test_one.sh 16 4 1 --dry-run) == "$FA_BENCH --m 16 --warps 4 --vec 1" ]]
}

@test "corrupt lines are set aside and said, the rest counts" {
    sweep --kernel one --strategy grid
    printf '%s\n' 'not json' '{"key":"x"}' >>"$work/lb/leaderboard.jsonl"
    printf '{"key":"torn' >>"$work/lb/leaderboard.jsonl"
    run -0 sweep --kernel one --strategy grid
    [[ $output == *"3 corrupt line(s)"*"leaderboard.jsonl.corrupt"* ]]
    [[ $output == *"; 0 measured in"* ]]
    [ "$(wc -l <"$work/lb/leaderboard.jsonl.corrupt")" -eq 3 ]
    [ "$(wc -l <"$work/lb/leaderboard.jsonl")" -eq 4 ]
    echo garbage >"$work/lb/leaderboard.json"
    run sweep --kernel one --strategy grid
    [[ $output == *"is no leaderboard: set aside"* ]]
    [ "$(board .leader)" = one ]
}

@test "kill -9 in the middle loses at most what was in flight" {
    echo 2 >"$STUB/hold" # a candidate or two; the others hang
    setsid scripts/evo_sweep.sh --kernel one --strategy grid --pool 2 --out "$work/lb" >/dev/null 2>&1 3>&- &
    victim=$!
    eventually lines "$work/lb/leaderboard.jsonl" 1
    kill -9 -- "-$victim"
    wait "$victim" || true
    before=$(wc -l <"$work/lb/leaderboard.jsonl")
    [ "$before" -ge 1 ]
    [ "$before" -lt 4 ]
    rm "$STUB/hold"
    run -0 sweep --kernel one --strategy grid --pool 2
    [[ $output == *"; $((4 - before)) measured in"* ]]
    jq -es 'length == 4 and (map(.key) | unique | length == 4)' "$work/lb/leaderboard.jsonl"
    [ "$(board .leader)" = one ]
}

@test "kill -9 of the script alone leaves no worker behind" {
    echo 2 >"$STUB/hold"
    scripts/evo_sweep.sh --kernel one --strategy grid --pool 2 --out "$work/lb" >/dev/null 2>&1 3>&- &
    eventually lines "$work/lb/leaderboard.jsonl" 1
    pgrep -f "$FA_BENCH"
    kill -9 $!
    rm "$STUB/hold" # what a worker is at ends; it finds no further line
    eventually no_worker
}
no_worker() { ! pgrep -f "$FA_BENCH"; }

# 8 x 5 tiles, one valley: the time grows with the distance from m=96, warps=8.
make_valley() {
    sed -i 's/"m":\[16,32\],"n":\[64\],"warps":\[4,8\]/"m":[16,32,48,64,80,96,112,128],"n":[64],"warps":[1,2,4,8,16]/' \
        "$FA_BENCH"
    for m in 16 32 48 64 80 96 112 128; do
        for w in 1 2 4 8 16; do
            echo "one $m $w $(awk -v m="$m" -v w="$w" \
                'BEGIN {d = log(w / 8) / log(2); print 20 + (m > 96 ? m - 96 : 96 - m) / 4 + 6 * (d < 0 ? -d : d)}')"
        done
    done >"$STUB/times"
}

# Notes the start of every program that is found by PATH, and of the bench. The stub's own are left out.
count_starts() { # COMMAND...: prints how many
    local path file
    mkdir -p "$work/bin" "$work/real"
    printf '#!/bin/sh\necho "$0" >>%s\nexec "%s/${0##*/}" "$@"\n' "$work/starts" "$work/real" | executable "$work/shim"
    IFS=: read -ra path <<<"$PATH"
    for file in "${path[@]/%//*}"; do
        for file in $file; do
            [[ ! -x $file || -e $work/real/${file##*/} ]] || ln -s "$file" "$work/real/" || return 1
        done
    done
    for file in "$work"/real/*; do ln -sf "$work/shim" "$work/bin/${file##*/}"; done
    : >"$work/starts"
    PATH=$work/bin:$PATH "$@" >/dev/null 2>&1 || return 1
    wc -l <"$work/starts"
}

@test "32 candidates more start at most 3 processes more: workers live as long as the sweep" {
    make_valley
    sed -i '1s|.*|#!/bin/bash\n[[ -n ${STUB_LINE:-} ]] \|\| echo bench >>"'"$work/starts"'"|' "$FA_BENCH"
    few=$(count_starts scripts/evo_sweep.sh --kernel one --pool 2 --budget 8 --out "$work/few")
    many=$(count_starts scripts/evo_sweep.sh --kernel one --pool 2 --budget 40 --out "$work/many")
    [ "$(wc -l <"$work/few/leaderboard.jsonl")" -eq 8 ]
    [ "$(wc -l <"$work/many/leaderboard.jsonl")" -eq 40 ]
    [ "$few" -ge 5 ] # the workers' benches alone
    [ "$((many - few))" -le 3 ] || { echo "$few, then $many"; sort "$work/starts" | uniq -c; return 1; }
}

@test "the table of strategies in docs/sweeps.md is that of the evidence" {
    diff <(sed -n '/strategies:begin/,/strategies:end/p' docs/sweeps.md | grep '^|') \
        <(studies/replay.py --table studies/strategies.jsonl)
}

@test "a host that is dead, or lacks rsync or the repository, is not run and named" {
    mkdir "$work/bin"
    # ssh to `gone` fails, `bare` has no rsync, `empty` no repository.
    printf '%s\n' '#!/bin/sh' 'case "$*" in *gone*) exit 255 ;; *bare*rsync*) exit 1 ;; *empty*test*) exit 1 ;; esac' \
        >"$work/bin/ssh"
    printf '#!/bin/sh\n' >"$work/bin/rsync"
    chmod +x "$work/bin/ssh" "$work/bin/rsync"
    export PATH=$work/bin:$PATH
    printf '%s\n' ':' '# a comment' '8/alive' 'gone' >"$work/hosts"
    refused 4 "host gone does not answer" sweep --kernel one --sshloginfile "$work/hosts"
    echo 'ssh -p 22 bare' >"$work/hosts"
    refused 4 "host bare has no rsync" sweep --kernel one --sshloginfile "$work/hosts"
    echo 'empty' >"$work/hosts"
    refused 4 "host empty has no $PWD/scripts/evo_sweep.sh" sweep --kernel one --sshloginfile "$work/hosts"
    [ ! -e "$work/lb" ]
}

@test "--strategy tpe without Optuna is not run" {
    unset FA_BENCH
    echo 'raise ImportError' >"$work/optuna.py"
    PYTHONPATH=$work refused 4 "no Python package optuna: run scripts/setup.sh" sweep --kernel light --strategy tpe
}

@test "evo_test_one: one line, one record, the bench's exit code" {
    unset FA_BENCH
    run -0 scripts/evo_test_one.sh 16 4 8 --kernel light --json "$work/r.json" -- "${small[@]}"
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == "M=16 W=4 V=8  PASS  p50 - "*"regs "*"smem "* ]]
    record_holds "$work/r.json" '.config.m == 16' '.config.warps == 4' '.config.vec == 8'
    scripts/evo_test_one.sh 16 4 8 --kernel light --json - -- "${small[@]}" 2>"$work/line" | jq -e '.status == "pass"'
    grep -q '^M=16 W=4 V=8  PASS' "$work/line"
    run -3 scripts/evo_test_one.sh 16 4 8 --kernel light -- "${small[@]}" --stages 7
    [[ $output == *INFEASIBLE* ]]
    refused 2 "takes M WARPS VEC" scripts/evo_test_one.sh 16 4
    # What goes wrong in the script itself is an error: 1 would say that the kernel is wrong.
    refused 6 "write error" bash -c "scripts/evo_test_one.sh 16 4 8 --kernel light -- ${small[*]} >/dev/full"
    refused 6 "/nowhere" env TMPDIR="$work/nowhere" scripts/evo_test_one.sh 16 4 8 --kernel light -- "${small[@]}"
    [[ $(FA_KERNEL=scalar scripts/evo_test_one.sh 8 4 2 --dry-run) == *"--kernel scalar --m 8 --warps 4 --vec 2"* ]]
}

@test "a cluster's array: a kernel per task, or a seed per task" {
    refused 4 "no array task" scripts/evo_slurm.sh
    refused 2 "--seed is the task's number" scripts/evo_slurm.sh --seed 3
    scripts/evo_slurm.sh -h | grep -q '^usage: sbatch'
    export SLURM_ARRAY_TASK_ID=1
    [ "$(scripts/evo_slurm.sh --dry-run --budget 3)" = "scripts/evo_sweep.sh --kernel two --budget 3" ]
    [ "$(scripts/evo_slurm.sh --dry-run --kernel one)" = "scripts/evo_sweep.sh --seed 1 --kernel one" ]
    scripts/evo_slurm.sh --strategy grid --out "$work/lb"
    [ "$(board .leader)" = two ]
    SLURM_ARRAY_TASK_ID=7 run -0 scripts/evo_slurm.sh
    [[ $output == *"nothing to do"* ]]
}

@test "a worker that is killed: its candidate is tried again; nothing is lost, nothing twice" {
    # A compiler over one candidate, a runner over another.
    sed -i 's/^us=/case "$compile $kernel $m $warps" in "1 one 16 8" | "0 one 32 8")\n\
    if mkdir "$STUB\/killed.$compile" 2>\/dev\/null; then kill -9 $PPID; exit 9; fi ;;\nesac\nus=/' "$FA_BENCH"
    run -0 sweep --kernel one --strategy grid --pool 1
    [[ $output != *"left out"* && $output == *"pass 4; 4 measured"* ]]
    [ -d "$STUB/killed.0" ] && [ -d "$STUB/killed.1" ]
    jq -es 'length == 4 and (map(.knobs) | unique | length == 4)' "$work/lb/leaderboard.jsonl"
    [ "$(board .kernels.one.knobs)" = m=16,warps=8 ]
}

@test "--seconds ends a sweep between candidates" {
    sweep --kernel one --strategy grid --pool 1 --seconds 0.0001 # less than any candidate takes
    jq -es 'length >= 1 and length < 4' "$work/lb/leaderboard.jsonl"
    [ "$(board .leader)" = one ]
}

# Without a tile a variant with a source of its own serves the problem, as wgmma_small serves one of wgmma's.
@test "a sweep of a kernel whose variant serves the problem is over the kernel's own tiles and source" {
    sed -i 's/"defaults":{"m":16}/"defaults":{"m":16,"warps":4}/
        s/^provenance+=.*source_sha256/[[ $given == *"--m "* ]] || { sha=${sha\/0\/7}; variant=small m=32; }\n&/
        s/"variant":"'"'\\\$kernel'"'"/"variant":"'"'\${variant:-\$kernel}'"'"/' "$FA_BENCH"
    sweep --kernel one --strategy evo --budget 1
    jq -es '.[0] | .knobs == "m=16,warps=4" and .variant == "one"' "$work/lb/leaderboard.jsonl" # its default tile
    sweep --kernel one,two --strategy grid
    jq -e 'map("\(.kernel) \(.knobs)") | length == 8 and .[0] == "one m=16,warps=8"' "$work/lb/micro_best.json"
    [ "$(board '.kernels | keys | join(" ")')" = "one two" ]
    refused 2 "no kernel 'nosuch'" sweep --kernel one,nosuch
}

# bats file_tags=slow
@test "the lead passes between kernels by comparison alone" {
    sweep --kernel one --strategy grid
    sweep --kernel two --strategy grid
    [ "$(board .leader)" = one ]
    [ "$(board .kernels.two.knobs)" = m=32,warps=4 ]
    sed -i 's/^two 32 8 .*/two 32 8 10/' "$STUB/times"
    printf '%064d' 9 >"$STUB/source.two"
    sweep --kernel two --strategy grid
    [ "$(board .leader)" = two ]
    jq -e '.[0].kernel == "two" and (map(.kernel) | unique == ["one", "two"])' "$work/lb/micro_best.json"
}

@test "an edited source is measured again, an untouched one is not, a reverted one is known" {
    sweep --kernel one --strategy grid
    [ "$(timed_runs)" -eq 4 ]
    run sweep --kernel one --strategy grid
    [[ $output == *"; 0 measured in"* ]]
    printf '%064d' 3 >"$STUB/source.one"
    sed -i 's/^one 16 8 .*/one 16 8 99/' "$STUB/times"
    run sweep --kernel one --strategy grid
    [[ $output == *"; 4 measured in"* ]]
    jq -e '.[0].p50_us == 45 and all(.[]; .p50_us != 40)' "$work/lb/micro_best.json" # nothing of the old source
    printf '%064d' 1 >"$STUB/source.one"
    run sweep --kernel one --strategy grid
    [[ $output == *"best 40 us m=16,warps=8"*"; 0 measured in"* ]]
    jq -e '.[0].p50_us == 40 and length == 4' "$work/lb/micro_best.json"
}

@test "another driver, compiler or option makes a result old" {
    sweep --kernel one --strategy grid
    for change in 's/"driver":"1"/"driver":"2"/' 's/"compiler":"stub 1"/"compiler":"stub 2"/' \
        's/"options":\[\]/"options":["-O1"]/'; do
        sed -i "$change" "$FA_BENCH"
        run sweep --kernel one --strategy grid
        [[ $output == *"; 4 measured in"* ]]
        run sweep --kernel one --strategy grid
        [[ $output == *"; 0 measured in"* ]]
    done
}

@test "another problem, L2 state or GPU has a leaderboard of its own; a loosened tolerance has none" {
    sweep --kernel one --strategy grid
    sweep --kernel one --strategy grid -- --seq 64
    sweep --kernel one --strategy grid -- --l2 cold
    echo 'NVIDIA Other' >"$STUB/device"
    sweep --kernel one --strategy grid
    jq -e 'map(.group) | length == 4 and (unique | length == 4)' "$work/lb/leaderboard.json"
    rm -rf "$work/lb"
    sweep --kernel one --strategy grid -- --atol 1.5
    jq -e '. == []' "$work/lb/leaderboard.json"
    jq -e '. == []' "$work/lb/micro_best.json"
}

@test "a folder, a pipe or half a .gz in the place of a sweep's file is refused before anything runs" {
    local name
    for name in leaderboard.jsonl leaderboard.json micro_best.json sweeps.jsonl; do
        mkdir -p "$work/$name/$name" "$work/pipe.$name"
        mkfifo "$work/pipe.$name/$name"
        refused 2 "$name is not a file" timeout 60 scripts/evo_sweep.sh --kernel one --out "$work/$name"
        refused 2 "$name is not a file" timeout 60 scripts/evo_sweep.sh --kernel one --out "$work/pipe.$name"
    done
    mkdir "$work/gz"
    echo '{}' | gzip | head -c 15 >"$work/gz/leaderboard.jsonl.gz"
    refused 2 "leaderboard.jsonl.gz: damaged .gz" scripts/evo_sweep.sh --kernel one --out "$work/gz"
    [ ! -s "$STUB/runs" ]
}

@test "two sweeps at once share one leaderboard" {
    sweep --kernel one --strategy grid >"$work/a" 2>&1 3>&- &
    first=$!
    sweep --kernel two --strategy grid >"$work/b" 2>&1
    wait "$first"
    jq -es 'length == 8 and all(.[]; .status == "pass")' "$work/lb/leaderboard.jsonl"
    [ "$(board .leader)" = one ]
    [ "$(board '.kernels | keys | join(" ")')" = "one two" ]
}

@test "a full disk: said, exit 6, no line is torn, and there is room again after" {
    mkdir "$work/lb"
    mount -t tmpfs -o size=64k tmpfs "$work/lb" 2>/dev/null || skip "no right to mount a small file system"
    sweep --kernel one --strategy grid
    dd if=/dev/zero of="$work/lb/filler" bs=4k 2>/dev/null || true
    printf '%064d' 5 >"$STUB/source.one"
    code=0
    sweep --kernel one --strategy grid >"$work/out" 2>&1 || code=$?
    cp "$work/lb/leaderboard.jsonl" "$work/kept"
    rm "$work/lb/filler"
    again=0
    sweep --kernel one --strategy grid >"$work/again" 2>&1 || again=$?
    lines=$(wc -l <"$work/lb/leaderboard.jsonl")
    umount "$work/lb"
    [ "$code" -eq 6 ] || { cat "$work/out"; false; }
    grep -q 'cannot append to .* none before it' "$work/out"
    jq -es 'length >= 4' "$work/kept"
    [ "$(tail -c 1 "$work/kept" | wc -l)" -eq 1 ]
    [ "$again" -eq 0 ]
    [ "$lines" -eq 8 ]
    [ -z "$(grep corrupt "$work/again")" ]
}

@test "GPUs of one machine take candidates at once, as many as there are to see, and no single --gpu" {
    sed -i 's/^while/echo "gpu ${CUDA_VISIBLE_DEVICES:-all}" >>"$STUB\/gpus"\nwhile/' "$FA_BENCH"
    run -0 sweep --kernel one --strategy grid --jobs 2
    [ "$(board .leader)" = one ]
    [ "$(wc -l <"$work/lb/leaderboard.jsonl")" -eq 4 ]
    grep -q 'gpu 0' "$STUB/gpus"
    grep -q 'gpu 1' "$STUB/gpus"
    CUDA_VISIBLE_DEVICES=3,5 run sweep --kernel two --strategy grid --jobs 2
    grep -q 'gpu 3' "$STUB/gpus"
    grep -q 'gpu 5' "$STUB/gpus"
    refused 2 "CUDA_VISIBLE_DEVICES names 1" env CUDA_VISIBLE_DEVICES=3 scripts/evo_sweep.sh --kernel one --jobs 2
    refused 2 "--gpu names one GPU" sweep --kernel one --jobs 2 -- --gpu 1
}

@test "hosts of GNU parallel get the task whole (the local host stands for one)" {
    echo : >"$work/hosts"
    run -0 sweep --kernel one --strategy grid --pool 4 --sshloginfile "$work/hosts" -- --seq 64
    jq -es 'length == 4 and all(.[]; .status == "pass" and .problem.seq_q == 64)' "$work/lb/leaderboard.jsonl"
    [ "$(grep -c evo_sweep.sh "$work/lb/joblog")" -eq 2 ] # two candidates each
    run sweep --kernel one --strategy grid --sshloginfile "$work/hosts" -- --seq 64
    [[ $output == *"; 0 measured in"* ]]
    refused 2 "--sshloginfile takes a file" sweep --sshloginfile "$work/none"
}

@test "a bar with an ETA on a terminal, a line per generation elsewhere" {
    run sweep --kernel one --strategy grid --pool 1
    [[ $output == *"2/4 candidates"*"4/4 candidates"* ]]
    rm -rf "$work/lb"
    script -qec "scripts/evo_sweep.sh --kernel one --strategy grid --out $work/lb" /dev/null >"$work/terminal" \
        </dev/null
    grep -q '\[#.*\] 4/4  4 measured  best 40 us m=16,warps=8  ETA [0-9]*:[0-9][0-9]' "$work/terminal"
}

@test "a slow candidate on a host holds no other one up" {
    make_valley
    touch "$STUB/held"
    sed -i 's/^us=/while [[ "$compile $m $warps" == "0 16 2" \&\& -e $STUB\/held ]]; do sleep 0.05; done\nus=/' \
        "$FA_BENCH"
    echo : >"$work/hosts"
    sweep --kernel one --strategy grid --pool 2 --jobs 2 --budget 10 --sshloginfile "$work/hosts" 3>&- &
    eventually lines "$work/lb/leaderboard.jsonl" 7
    run ! grep -q 'm=16,warps=2' "$work/lb/leaderboard.jsonl"
    rm "$STUB/held"
    wait $!
    jq -es 'map(.knobs) | length == 10 and (unique | length == 10)' "$work/lb/leaderboard.jsonl"
}

@test "a candidate that no host answers for is left out and said; the sweep goes on" {
    sed -i 's/^us=/[[ "$compile $m $warps" != "0 16 8" ]] || kill -9 "$(ps -o ppid= -p $PPID)" $PPID\nus=/' "$FA_BENCH"
    echo : >"$work/hosts"
    run -0 sweep --kernel one --strategy grid --pool 2 --sshloginfile "$work/hosts"
    [[ $output == *"left out: no worker answered for m=16,warps=8"*"not_run 1, pass 3; 3 measured"* ]]
    jq -es 'length == 3' "$work/lb/leaderboard.jsonl"
}

@test "evolution finds the best of a space it does not try whole" {
    make_valley
    sweep --kernel one --strategy evo --budget 24 --pool 2 --seed 1
    [ "$(wc -l <"$work/lb/leaderboard.jsonl")" -eq 24 ]
    [ "$(board .kernels.one.knobs)" = m=96,warps=8 ]
}

@test "Optuna's model finds it, too, and hands out nothing twice" {
    PYTHONPATH=build/tools/optuna python3 -c 'import optuna' 2>/dev/null || skip "no Python package optuna"
    make_valley
    sweep --kernel one --strategy tpe --budget 24 --pool 2 --seed 1
    jq -es 'length == 24 and (map(.knobs) | unique | length == 24)' "$work/lb/leaderboard.jsonl"
    jq -es '.[0].strategy == "tpe"' "$work/lb/sweeps.jsonl"
    [ "$(board .kernels.one.p50_us)" = 20 ]
    sweep --kernel one --strategy tpe --budget 64 --pool 2 --seed 2
    jq -es 'map(.knobs) | unique | length == 40' "$work/lb/leaderboard.jsonl" # the whole space
}

@test "the tables of docs/scaling.md are what the simulation and the evidence say" {
    diff <(sed -n '/scaling:begin/,/scaling:end/p' docs/scaling.md | grep '^|') \
        <(studies/scaling.py)
    diff <(sed -n '/rates:begin/,/rates:end/p' docs/scaling.md | grep '^|') \
        <(scripts/evidence/sweep_scaling.sh --table evidence/h200/sweep_scaling.jsonl)
}

@test "strategies replayed over recorded times: curves that only fall, the optimum in the end" {
    PYTHONPATH=build/tools/optuna python3 -c 'import optuna' 2>/dev/null || skip "no Python package optuna"
    zcat studies/sweep_candidates.jsonl.gz | jq -c 'select(.kernel == "light")' | tail -n 40 >"$work/recorded.jsonl"
    studies/replay.py "$work/recorded.jsonl" --seeds 2 --budget 48 >"$work/r.jsonl"
    jq -es 'map(.strategy) == ["grid", "random", "evo", "tpe"] and all(.[];
        (.points <= 40) and .median_over_best == (.median_over_best | sort | reverse) and last(.median_over_best[]) == 1
        and last(.found_best[]) == .seeds)' "$work/r.jsonl"
    studies/replay.py --table "$work/r.jsonl" | grep -qE '^\| light, [0-9]+ points \| tpe \| 2 \| 1'
}

@test "what a sweep did stands in sweeps.jsonl, also when it is told to stop" {
    sweep --kernel one --strategy grid
    jq -es 'length == 1 and (.[0] | .kernel == "one" and .candidates == 4 and .measured == 4 and
        .status == {pass: 4} and .seconds > 0 and .per_second > 0 and .git == "stub")' "$work/lb/sweeps.jsonl"
    sweep --kernel one --strategy grid
    jq -es 'length == 2 and (.[1] | .candidates == 4 and .measured == 0)' "$work/lb/sweeps.jsonl"
    echo $(($(wc -l <"$STUB/runs") + 2)) >"$STUB/hold" # two candidates; the third hangs
    setsid scripts/evo_sweep.sh --kernel two --strategy grid --pool 1 --out "$work/lb" >"$work/said" 2>&1 3>&- &
    sweep=$!
    eventually grep -q '^2/4 candidates' "$work/said"
    kill -TERM -- "-$sweep"
    wait "$sweep" || [ $? -eq 143 ]
    jq -es 'length == 3 and (.[2] | .kernel == "two" and .candidates >= 1 and .candidates < 4 and
        .measured == .candidates)' "$work/lb/sweeps.jsonl"
}

@test "a candidate whose worker leaves no record, or is killed each time, is left out and said; the sweep goes on" {
    local how
    cp "$FA_BENCH" "$work/whole"
    for how in 'exit 6' 'kill -9 $PPID'; do
        rm -rf "$work/lb"
        sed 's/^us=/[[ "$kernel $m $warps" != "one 16 8" ]] || '"$how"'\nus=/' "$work/whole" >"$FA_BENCH"
        run -0 sweep --kernel one --strategy grid --pool 1
        [[ $output == *"left out: the worker of m=16,warps=8 died twice"*"not_run 1, pass 3; 3 measured"* ]]
        jq -es 'length == 3 and all(.[]; .status == "pass")' "$work/lb/leaderboard.jsonl"
        jq -es '.[0].lost == ["m=16,warps=8"]' "$work/lb/sweeps.jsonl"
        [ "$(board .kernels.one.knobs)" = m=32,warps=8 ]
    done
}
