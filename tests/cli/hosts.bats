#!/usr/bin/env bats
# Sweeps through a real Slurm and a real sshd, both of this machine and started for the test; the bench is made up.
# bats file_tags=slow
load stub_bench
load real_hosts

board() { jq -r ".[0] | $1" "$work/lb/leaderboard.json"; }
all_there() { # COUNT: results, none twice, all right
    jq -es --argjson n "$1" 'length == $n and (map([.kernel, .knobs]) | unique | length == $n) and
        all(.[]; .status == "pass")' "$work/lb/leaderboard.jsonl"
}
# The bench knows its folder by itself and notes its GPU: a job's environment is that of its host.
make_far_stub() {
    make_stub
    local note="[[ \$* != *--runs* ]] \\|\\| echo \"gpu \${CUDA_VISIBLE_DEVICES:-all}\" >>\$STUB/gpus"
    sed -i "s|^set -eu|export STUB=$STUB\n&\n$note|" "$FA_BENCH"
}
teardown() {
    end_hosts
    [[ -z ${slurm:-} ]] || rm -rf "$slurm"
    [[ -z ${FA_TEST_OUT:-} ]] || note_times "$FA_TEST_OUT/times.tsv"
    rm -rf "$work"
}

@test "Slurm: a kernel per task, each on its GPU, one leaderboard; a task that is cancelled goes on where it was" {
    start_slurm
    make_far_stub
    local submit=(sbatch --parsable --gpus=1 --chdir="$PWD" --output="$work/said-%a")
    local sweep=(scripts/evo_slurm.sh --strategy grid --pool 1 --out "$work/lb")
    "${submit[@]}" --wait --array=0-1 "${sweep[@]}"
    all_there 8
    [ "$(board .leader)" = one ]
    grep -q 'gpu 0' "$STUB/gpus"
    grep -q 'gpu 1' "$STUB/gpus"
    rm -r "$work/lb"
    : >"$STUB/runs"
    echo 2 >"$STUB/hold" # two candidates; the third hangs
    job=$("${submit[@]}" --array=0 "${sweep[@]}")
    eventually lines "$work/lb/leaderboard.jsonl" 2
    scancel "${job%%;*}"
    eventually is_over "${job%%;*}"
    rm "$STUB/hold"
    : >"$STUB/runs"
    "${submit[@]}" --wait --array=0 "${sweep[@]}"
    all_there 4
    [ "$(timed_runs)" -eq 2 ] # those that were missing
}
is_over() { ! squeue -h -j "$1" 2>/dev/null | grep -q .; }

@test "GNU parallel over ssh: a worker that is killed is tried again; a dead host is named, exit 4" {
    start_sshd
    make_far_stub
    sed -i 's/^us=/if [[ "$compile $kernel $m $warps" == "0 one 16 8" ]] \&\& mkdir "$STUB\/once" 2>\/dev\/null; then\n\
    kill -9 "$(ps -o ppid= -p $PPID)" $PPID; sleep 9\nfi\nus=/' "$FA_BENCH"
    echo "2/$ssh_line" >"$work/hosts"
    run scripts/evo_sweep.sh --kernel one --strategy grid --pool 4 --out "$work/lb" --sshloginfile "$work/hosts"
    echo "$output"
    [ "$status" -eq 0 ]
    [ -d "$STUB/once" ]
    all_there 4
    [ "$(board .kernels.one.knobs)" = m=16,warps=8 ]
    [ "$(awk -F'\t' '$7 == 0' "$work/lb/joblog" | wc -l)" -eq 2 ] # GNU parallel's log: two candidates each
    echo "${ssh_line/-p $ssh_port/-p $(free_port)}" >>"$work/hosts"
    refused 4 "host 127.0.0.1 does not answer" scripts/evo_sweep.sh --kernel one --out "$work/lb" \
        --sshloginfile "$work/hosts"
}
