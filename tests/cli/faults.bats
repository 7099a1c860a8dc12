#!/usr/bin/env bats
# What must not break the bench (tests/faults/run.sh; its long mode: --kills 200).
load helper

survives() { # GROUP OPTIONS...
    local name=$1
    shift
    tests/faults/run.sh --only "$name" "$@" --json "$work/f.json"
    jq -e '.not_run == 0' "$work/f.json" >/dev/null || skip "$(jq -r '.faults[0].note' "$work/f.json")"
    jq -e '.survived > 0 and .failed == 0' "$work/f.json"
}

@test "kill -9 while compiling: cache entries whole" { survives kill_compile --kills 2; }
@test "kill -9 while writing a record: the old or the new one" { survives kill_record --kills 5; }
@test "kill -9 of a list of runs: the records of those that had ended" { survives kill_runs --kills 3; }
@test "a record on a full disk" { survives json_full_disk; }
@test "a kernel that hangs on the GPU" { survives hang; }
@test "an illegal address on the GPU" { survives illegal_address; }
@test "a misaligned access on the GPU" { survives misaligned; }
@test "a trap on the GPU" { survives trap; }
@test "a problem that the GPU's memory does not hold" { survives no_memory; }
@test "a wait for a signal that never comes, on the GPU" { survives lost_signal; }
@test "kill -9 while the GPU works" { survives kill_gpu; }
@test "a GPU whose memory another process has taken" { survives memory_taken; }
@test "faults on the GPU in the middle of a list of runs" { survives runs_gpu; }
@test "a GPU that is busy with another process: noisy" { survives busy_gpu; }

# bats file_tags=slow
@test "kill -9 while compiling, more often" { survives kill_compile --kills 15; }
@test "kill -9 while writing a record, more often" { survives kill_record --kills 15; }
@test "kill -9 of a list of runs, more often" { survives kill_runs --kills 15; }
@test "kill -9 of a sweep: leaderboard whole, it goes on" { survives kill_sweep --kills 15; }
@test "a cache that is read-only, or no folder" { survives cache_readonly; }
@test "a cache that is full" { survives cache_full; }
@test "a flipped bit in every kind of file of the cache" { survives cache_flips; }
@test "eight processes on one cache" { survives eight_processes; }
